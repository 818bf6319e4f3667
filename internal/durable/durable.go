// Package durable writes files whole: at any moment, also after a power cut, a file
// holds what it held before or what was written.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file, whole or not at all, readable by its owner alone.
func Write(path string, data []byte) error {
	file, err := Replace(path, data)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), Sync(filepath.Dir(path)))
}

// Replace puts a new file in the place of another and returns it open. After an
// error the other is still there. The caller makes the place durable (Sync).
func Replace(path string, data []byte) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // 0600
	if err != nil {
		return nil, err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// Sync forces a file, or the names of a directory, to the disk.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
