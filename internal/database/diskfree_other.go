//go:build !linux && !darwin

package database

// DiskFree cannot be told on this system.
func DiskFree(string) (int64, bool) { return 0, false }
