//go:build !linux

package main

import "time"

// sinceStart returns nil: agent.Options.Elapsed then uses the wall clock. Devices have Linux (elapsed.go); on other systems
// the agent is only for tests.
func sinceStart() func() time.Duration { return nil }
