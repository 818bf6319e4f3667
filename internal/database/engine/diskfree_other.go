//go:build !linux && !darwin

package engine

// DiskFree is not known on this system.
func DiskFree(string) (int64, bool) { return 0, false }
