//go:build !unix

package service

// openFileLimit is how many files the process may have open.
func openFileLimit() int { return unknownFiles }
