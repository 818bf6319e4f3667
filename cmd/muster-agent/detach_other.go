//go:build !unix

package main

import "errors"

// detach is for devices, which are all of the other kind.
func (*runCommand) detach(*environment) error {
	return errors.New("--detach works on Android and Linux alone")
}
