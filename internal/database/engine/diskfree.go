//go:build linux || darwin

package engine

import (
	"path/filepath"
	"syscall"
)

// DiskFree is how many bytes the disk of a SQLite file has left for this user; false:
// that is not known.
func DiskFree(path string) (int64, bool) {
	var found syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(Linked(path)), &found); err != nil {
		return 0, false
	}
	return int64(found.Bavail) * int64(found.Bsize), true
}
