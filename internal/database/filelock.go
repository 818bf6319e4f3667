//go:build unix

package database

import (
	"os"
	"syscall"
)

// SQLite locks bytes from pendingByte on of a file that it has open.
const pendingByte, lockBytes = 0x40000000, 512

// heldByOther reports whether another process has a SQLite file open.
func heldByOther(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: pendingByte, Len: lockBytes}
	err = syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock)
	return lock.Type != syscall.F_UNLCK, err
}
