//go:build !unix

package main

import (
	"errors"
	"os"
)

func (c *runCommand) renew(*environment, *os.File) error {
	return errors.New("this system runs no new version")
}
