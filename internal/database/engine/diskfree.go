//go:build linux || darwin

package engine

import "syscall"

// DiskFree is how many bytes a directory's disk has left for this user; false:
// that is not known.
func DiskFree(directory string) (int64, bool) {
	var found syscall.Statfs_t
	if err := syscall.Statfs(directory, &found); err != nil {
		return 0, false
	}
	return int64(found.Bavail) * int64(found.Bsize), true
}
