//go:build !unix

package database

import (
	"context"
	"errors"
)

// heldByOther cannot be known here.
func heldByOther(string) (bool, error) { return false, errors.ErrUnsupported }

// LockedBy finds no process here.
func LockedBy(context.Context, string) (int, error) { return 0, nil }
