//go:build unix

package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/wait"
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

// lockFile locks a file against other calls of it, until it is closed. An error says
// that it is locked already. SQLite's locks are of another kind.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

const (
	// exclusiveByte is locked for writing by a process that lets no other read.
	exclusiveByte = pendingByte + 2
	// writeByte of the file of shared memory is locked by the process that writes.
	writeByte = 120
	// A service that works locks its file for moments only.
	lockPatience, lockPause = 2 * time.Second, 50 * time.Millisecond
)

// LockedBy returns the id of another process that keeps a SQLite file locked, so
// that a service could not work on it; 0: there is none. It looks for two seconds
// before it says so. It must not be called while this process writes to the file:
// closing the file ends the process's own locks on it.
func LockedBy(ctx context.Context, path string) (pid int, err error) {
	path = Linked(path)
	for waited := time.Duration(0); ; waited += lockPause {
		exclusive, err := lockHolder(path, exclusiveByte)
		if err != nil {
			return 0, err
		}
		writing, err := lockHolder(path+"-shm", writeByte)
		if err != nil {
			return 0, err
		}
		now := max(exclusive, writing)
		if now == 0 || waited > 0 && now != pid {
			return 0, nil
		}
		if pid = now; waited >= lockPatience {
			return pid, nil
		}
		if !wait.For(ctx, lockPause) {
			return 0, ctx.Err()
		}
	}
}

// lockHolder is the process that has locked a byte of a file for writing; 0: none,
// or there is no such file.
func lockHolder(path string, at int64) (pid int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Start: at, Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil || lock.Type == syscall.F_UNLCK {
		return 0, err
	}
	return int(lock.Pid), nil
}
