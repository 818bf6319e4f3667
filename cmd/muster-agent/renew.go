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
