//go:build race

package contract_test

// raceEnabled: the race detector watches.
const raceEnabled = true
