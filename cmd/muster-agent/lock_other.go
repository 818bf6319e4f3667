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
