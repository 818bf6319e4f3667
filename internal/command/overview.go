package command

import (
	"context"
	"time"
)

// Tally counts the commands of one day by what has become of them.
type Tally struct {
	Day   time.Time // its beginning, in UTC
	State State
	Count int64
}

// Overview reads commands across devices, for people. Policies limits all of
// it to devices of these policies; nil: no limit.
type Overview interface {
	// Tallies counts the commands since a time by day and state.
	Tallies(ctx context.Context, companyID string, policies []string, since time.Time) ([]Tally, error)
	// Unfinished counts the commands that are not final and were created from a
	// time until before another, up to limit.
	Unfinished(ctx context.Context, companyID string, policies []string, from, before time.Time, limit int) (int, error)
	// UnfinishedList returns the newest of them, each with the name of its asset.
	UnfinishedList(ctx context.Context, companyID string, policies []string, from, before time.Time, limit int) ([]Named, error)
}

// Named is a command with the identification of its asset.
type Named struct {
	Command
	Identification string
}
