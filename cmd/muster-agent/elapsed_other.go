//go:build !linux

package main

import "time"

// sinceStart is for devices, which are all of the other kind.
func sinceStart() func() time.Duration { return nil }
