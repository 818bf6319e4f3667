//go:build !unix

package durable

import "os"

// TakeAfter has nothing to do where files inherit their directory's rights.
func TakeAfter(*os.File, string) error { return nil }

// Inherit: see TakeAfter.
func Inherit(*os.File) error { return nil }
