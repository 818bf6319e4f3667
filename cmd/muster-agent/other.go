//go:build !unix

package main

import (
	"errors"
	"os"
)

// flock is for devices, which are all of the other kind.
func flock(*os.File) (bool, error) { return true, nil }

func onWake(func()) (stop func()) { return func() {} }

func wake(int) error { return errors.ErrUnsupported }

// detach is for devices, which are all of the other kind.
func (*runCommand) detach(*environment) error {
	return errors.New("--detach works on Android and Linux alone")
}

func (c *runCommand) renew(*environment, *os.File) error {
	return errors.New("this system runs no new version")
}
