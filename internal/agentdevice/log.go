package agentdevice

import (
	"context"
	"time"
)

// What is kept of the logs that devices upload. The oldest goes first.
const (
	LogLifetime    = 30 * 24 * time.Hour
	LogsPerDevice  = 20
	LogsPerCompany = 1000
)

// Log is what a device uploaded of its agent's log when a command asked for it.
type Log struct {
	ID    string // the command's
	At    time.Time
	Bytes int    // of Text
	Text  string // lines of printable UTF-8; empty in lists
}

// LogStore keeps logs. Every method is bound to one company or device.
type LogStore interface {
	// KeepLog keeps a log of a device that has the open command ID, once: a log that
	// is kept stays as it is. It fails with fault.NotFound for any other command.
	KeepLog(ctx context.Context, d Device, l Log) error
	// Logs lists those of an asset, newest first, without their texts.
	Logs(ctx context.Context, companyID, assetID string) ([]Log, error)
	// Log returns one with its text; fault.NotFound.
	Log(ctx context.Context, companyID, assetID, id string) (Log, error)
}
