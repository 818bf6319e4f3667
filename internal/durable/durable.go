// Package durable writes files whole: at any moment, also after a power cut, a file
// holds what it held before or what was written. RowExporter keeps rows before they are deleted.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// newMark follows a file's name in the names of those that are to take its place.
const newMark = ".new-"

// Write replaces a file, whole or not at all. The new one has the owner and the mode
// of the old one (TakeAfter); without an old one, its owner alone can read it.
func Write(path string, data []byte) error {
	file, err := Replace(path, data)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), Sync(filepath.Dir(path)))
}

// Replace puts a new file in the place of another, as Write does, and returns it open.
// A symbolic link stays: the file that it names is replaced. After an error the other
// is still there. The caller makes the place durable (Sync).
func Replace(path string, data []byte) (*os.File, error) {
	if named, err := filepath.EvalSymlinks(path); err == nil {
		path = named
	}
	file, err := Prepare(path, data)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// Prepare writes what is to take the place of the file at path under another name
// beside it, with the owner and the mode of that file, and returns it open.
func Prepare(path string, data []byte) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+newMark+"*") // 0600
	if err != nil {
		return nil, err
	}
	_, err = file.Write(data)
	if err == nil {
		err = TakeAfter(file, path)
	}
	if err = errors.Join(err, file.Sync()); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// RemoveLeftovers removes what calls of Prepare that were killed left beside the file at path. A call
// that is under way at the same time, of any process, fails with fs.ErrNotExist where it uses its file's name.
func RemoveLeftovers(path string) error {
	if named, err := filepath.EvalSymlinks(path); err == nil {
		path = named
	}
	files, err := os.ReadDir(filepath.Dir(path))
	for _, file := range files {
		if strings.HasPrefix(file.Name(), filepath.Base(path)+newMark) {
			if gone := os.Remove(filepath.Join(filepath.Dir(path), file.Name())); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// Sync forces a file, or the names of a directory, to the disk.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
