//go:build !unix

package engine

import (
	"context"
	"errors"
	"os"
)

// heldByOther cannot be known here.
func heldByOther(string) (bool, error) { return false, errors.ErrUnsupported }

// lockFile has nothing to do where a file that is open cannot be removed.
func lockFile(*os.File) error { return nil }

// LockedBy finds no process here.
func LockedBy(context.Context, string) (int, error) { return 0, nil }
