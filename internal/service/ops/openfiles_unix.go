//go:build unix

package ops

import "syscall"

// OpenFileLimit is how many files the process may have open. The Go runtime has
// raised the soft limit to the hard one.
func OpenFileLimit() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > unknownFiles {
		return unknownFiles
	}
	return int(limit.Cur) // not above unknownFiles
}
