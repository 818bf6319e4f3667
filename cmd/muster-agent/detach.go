//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/musterhq/muster/internal/agent"
)

// detach starts this program again in a session of its own, so that it outlives
// the USB session's shell. The child inherits a lock on the state directory and
// holds it while it lives: a second one is not started.
func (c *runCommand) detach(env *environment) error {
	if _, err := agent.LoadConnection(c.State); err != nil {
		return err // not enrolled
	}
	program, state, err := c.places()
	if err != nil {
		return err
	}
	lock, err := c.lock()
	if busy := (*busyError)(nil); errors.As(err, &busy) {
		fmt.Fprintln(env.out, "The agent runs already.")
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	ended, err := os.OpenFile(filepath.Join(state, agent.EndedFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer ended.Close()
	child := exec.Command(program, "run", "--state", state, "--driver", c.Driver, "--serial", c.Serial, "--root", c.Root,
		"--locked", "--quiet")
	child.Dir, child.Stdout, child.Stderr = "/", ended, ended
	child.ExtraFiles = []*os.File{lock}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return fmt.Errorf("cannot start the agent: %w", err)
	}
	fmt.Fprintf(env.out, "The agent runs as process %d.\n", child.Process.Pid)
	return child.Process.Release()
}

// places are this program and the state directory, from wherever one looks.
func (c *runCommand) places() (program, state string, err error) {
	if state, err = filepath.Abs(c.State); err != nil {
		return "", "", err
	}
	if program = os.Args[0]; !filepath.IsAbs(program) {
		program, err = os.Executable()
	}
	return program, state, err
}
