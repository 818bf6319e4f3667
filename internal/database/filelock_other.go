//go:build !unix

package database

import "errors"

// heldByOther cannot be known here.
func heldByOther(string) (bool, error) { return false, errors.ErrUnsupported }
