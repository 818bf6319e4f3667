//go:build unix

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// AccessError says why this process cannot use a file, and what to do.
type AccessError struct{ Detail, Remedy string }

func (e *AccessError) Error() string { return e.Detail + ": " + e.Remedy }

// Usable returns an *AccessError if this process cannot write to a SQLite file, to the
// files beside it, or to its directory. What does not exist is usable.
func Usable(path string) error {
	path = Linked(path)
	for _, file := range []string{filepath.Dir(path), path, path + "-wal", path + "-shm"} {
		if err := writable(file); err != nil {
			return err
		}
	}
	return nil
}

const readAndWrite = 4 | 2 // of access(2)

func writable(path string) error {
	err := syscall.Access(path, readAndWrite)
	switch {
	case errors.Is(err, syscall.EROFS):
		return &AccessError{path + " is on a disk that is mounted read-only",
			"mount it for writing (under systemd with StateDirectory= or ReadWritePaths=), or move the database to another disk"}
	case errors.Is(err, syscall.EACCES):
		return NoAccess(path)
	}
	return nil
}

// NoAccess is the error of a file that exists and that this user may not use.
func NoAccess(path string) error {
	owner := "another user"
	if info, err := os.Stat(path); err == nil {
		if stat, known := info.Sys().(*syscall.Stat_t); known {
			owner = fmt.Sprintf("user id %d with mode %04o", stat.Uid, info.Mode().Perm())
		}
	} else if errors.Is(err, fs.ErrPermission) {
		return &AccessError{"this user (id " + fmt.Sprint(os.Geteuid()) + ") may not look into " + filepath.Dir(path),
			fmt.Sprintf("chown %d %s, or run as the user that owns it", os.Geteuid(), filepath.Dir(path))}
	}
	return &AccessError{fmt.Sprintf("this user (id %d) may not read and write %s, which belongs to %s", os.Geteuid(), path, owner),
		fmt.Sprintf("as root, give it to the service's user: chown %d %s", os.Geteuid(), path)}
}

// May reports whether a user can read a file, and write to it, by its owner and mode.
func May(info os.FileInfo, uid, gid uint32, write bool) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known || uid == 0 {
		return true
	}
	wanted, mode := fs.FileMode(4), info.Mode().Perm()
	if write {
		wanted |= 2
	}
	switch {
	case stat.Uid == uid:
		mode >>= 6
	case stat.Gid == gid:
		mode >>= 3
	}
	return mode&wanted == wanted
}

// OwnerOf returns the user and the group of a file; false: they are not known.
func OwnerOf(path string) (uid, gid uint32, known bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return stat.Uid, stat.Gid, true
}
