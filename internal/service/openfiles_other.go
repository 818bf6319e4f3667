//go:build !unix

package service

// OpenFileLimit is how many files the process may have open.
func OpenFileLimit() int { return unknownFiles }
