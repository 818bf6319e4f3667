//go:build unix

package main

import "syscall"

// keepPrivate makes every file that the process makes readable by its owner
// alone: the database, its copies, the keys.
func keepPrivate() { syscall.Umask(0o077) }
