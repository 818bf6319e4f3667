//go:build !linux && !darwin

package database

// DiskFree is not known on this system.
func DiskFree(string) (int64, bool) { return 0, false }
