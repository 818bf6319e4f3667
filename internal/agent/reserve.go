package agent

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// The reserve is a file that gives its place up when the storage is full. Without
// it, a person who fills a device's storage could keep it from noting a wipe, and so from
// being erased.
const (
	reserveFile = "reserve"
	reserveSize = 32 << 10
)

// keepReserve makes the reserve where it is missing. Without room it goes on without.
func keepReserve(dir string) {
	path := filepath.Join(dir, reserveFile)
	if _, err := os.Lstat(path); err == nil {
		return
	}
	data := make([]byte, reserveSize)
	_, _ = rand.Read(data) // it never fails; no file system can compress this
	if os.WriteFile(path, data, 0o600) != nil {
		_ = os.Remove(path)
	}
}

// withReserve tries a write that failed again, in the place of the reserve.
func withReserve(dir string, write func() error) error {
	err := write()
	if err != nil && os.Remove(filepath.Join(dir, reserveFile)) == nil {
		err = write()
	}
	return err
}
