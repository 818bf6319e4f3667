//go:build !unix

package main

// keepPrivate has nothing to do where files inherit their folder's rights.
func keepPrivate() {}
