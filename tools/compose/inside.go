package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// container is a process and what it may see and do.
type container struct {
	Root     string // its files; empty: this machine's, for what stands in for an image
	ReadOnly bool   // its files, but for mounts
	Tmpfs    []string
	Mounts   []mount
	UID, GID int
	NoCaps   bool // not even by a program that has some
	NoGain   bool // no_new_privs
	Env      []string
	Dir      string
	Args     []string
}

// mount is a file or directory of this machine at a path of the container.
type mount struct {
	From, To string
	ReadOnly bool
}

// inside becomes the container that a file describes. It runs in namespaces for mounts, network
// and processes that its parent made.
func inside(file string) error {
	runtime.LockOSThread() // what this thread gives up is what the program does not have
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c container
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.Root != "" {
		if err := c.enter(); err != nil {
			return err
		}
	}
	if err := c.drop(); err != nil {
		return err
	}
	if err := os.Chdir(c.Dir); err != nil {
		return err
	}
	return fmt.Errorf("cannot start %s: %w", c.Args[0], syscall.Exec(c.Args[0], c.Args, c.Env))
}

// enter makes the container's files the root.
func (c container) enter() error {
	bind := func(from, to string, flags uintptr) error {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot mount %s: %w", to, err)
		}
		if flags == 0 {
			return nil
		}
		return unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "")
	}
	if err := bind(c.Root, c.Root, 0); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(c.Root, "proc"), "proc", 0, ""); err != nil {
		return err
	}
	for _, path := range c.Tmpfs {
		if err := unix.Mount("tmpfs", filepath.Join(c.Root, path), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return err
		}
	}
	for _, m := range c.Mounts {
		flags := uintptr(0)
		if m.ReadOnly {
			flags = unix.MS_RDONLY
		}
		if err := bind(m.From, filepath.Join(c.Root, m.To), flags); err != nil {
			return err
		}
	}
	if c.ReadOnly {
		if err := unix.Mount("", c.Root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return err
		}
	}
	return errors.Join(os.Chdir(c.Root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/"))
}

// drop gives up what the container does not have.
func (c container) drop() error {
	for capability := uintptr(0); c.NoCaps; capability++ {
		if unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0) != nil {
			break // there are no more
		}
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(c.GID), syscall.Setuid(c.UID)); err != nil {
		return err
	}
	if c.NoGain {
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return nil
}
