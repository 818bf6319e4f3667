//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/durable"
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

// renew runs the new version as a child until it is in touch, and then takes its place. This
// program's file is replaced only then: whatever happens before, the version that is known
// to work starts again. It returns nil if that has to go on.
func (c *runCommand) renew(env *environment, lock *os.File) error {
	path, err := programPath()
	if err != nil {
		return err
	}
	trial := path + newSuffix
	why := c.try(env, trial, lock)
	if env.ctx.Err() != nil {
		return env.ctx.Err() // the next start tries again
	}
	if _, err := agent.LoadConnection(c.State); errors.Is(err, agent.ErrNotEnrolled) {
		return errors.Join(agent.ErrEnded, os.Remove(trial))
	}
	if !agent.Proved(c.State) {
		if why == nil {
			why = errors.New("it ended before")
		}
		env.log.Warn("the new version had no contact: this one goes on", "error", why)
		return errors.Join(agent.WentBack(c.State, "the new version had no contact: "+why.Error(), time.Now()), os.Remove(trial))
	}
	if err := errors.Join(os.Rename(trial, path), durable.Sync(filepath.Dir(path))); err != nil {
		return fmt.Errorf("cannot put the new version in the place of this one: %w", err)
	}
	if !c.Locked {
		_ = lock.Close() // the new program takes it again
	}
	return syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ())
}

// try runs the new version until it ends, for a limited time.
func (c *runCommand) try(env *environment, path string, lock *os.File) error {
	_, state, err := c.places()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(env.ctx, trialTime)
	defer cancel()
	child := exec.CommandContext(ctx, path, "run", "--state", state, "--driver", c.Driver, "--serial", c.Serial, "--push", c.Push, "--root",
		c.Root, "--locked", "--trial")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.ExtraFiles = []*os.File{lock}
	err = child.Run()
	if ctx.Err() != nil && env.ctx.Err() == nil {
		err = fmt.Errorf("not within %s", trialTime)
	}
	return err
}
