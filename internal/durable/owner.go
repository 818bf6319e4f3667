//go:build unix

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// TakeAfter gives a file that is to stand at place the owner and the mode of the file
// there; where there is none, it does what Inherit does. An error says that the owner
// cannot be kept; then the file must not take the place.
func TakeAfter(file *os.File, place string) error {
	before, err := os.Stat(place)
	if errors.Is(err, fs.ErrNotExist) {
		return Inherit(file)
	}
	if err != nil {
		return err
	}
	return give(file, before, before.Mode().Perm(), place)
}

// Inherit gives a file that root has made to the owner of its directory: the user of
// the service, who must be able to open what root leaves beside its files.
func Inherit(file *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir := filepath.Dir(file.Name())
	above, err := os.Stat(dir)
	if err != nil {
		return err
	}
	own, err := file.Stat()
	if err != nil {
		return err
	}
	return give(file, above, own.Mode().Perm(), dir)
}

// give makes the owner of a file that of another, which is at place.
func give(file *os.File, like os.FileInfo, mode fs.FileMode, place string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	wanted, known := like.Sys().(*syscall.Stat_t)
	own, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !known || wanted.Uid == own.Uid && wanted.Gid == own.Gid:
	case file.Chown(int(wanted.Uid), int(wanted.Gid)) == nil:
	case wanted.Uid != own.Uid:
		return fmt.Errorf("%s belongs to another user (id %d), to whom this one cannot give a file: run the command as that "+
			"user or as root", place, wanted.Uid)
	default:
		mode &^= 0o070 // its rights were those of another group
	}
	return file.Chmod(mode)
}
