//go:build !unix

package engine

import "os"

// AccessError says why this process cannot use a file, and what to do.
type AccessError struct{ Detail, Remedy string }

func (e *AccessError) Error() string { return e.Detail + ": " + e.Remedy }

// Usable knows nothing of rights on this system.
func Usable(string) error { return nil }

// NoAccess is the error of a file that exists and that this user may not use.
func NoAccess(path string) error {
	return &AccessError{"this user may not read and write " + path, "give it to the service's user"}
}

// May knows nothing of rights on this system.
func May(os.FileInfo, uint32, uint32, bool) bool { return true }

// OwnerOf knows no owners on this system.
func OwnerOf(string) (uid, gid uint32, known bool) { return 0, 0, false }
