package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/engine"
)

// Abandoned returns intents that no replica works on, oldest first: those
// made before a time, and those of a replica that is no longer present.
func (db *DB) Abandoned(ctx context.Context, before time.Time, limit int) ([]command.Command, error) {
	now := db.now()
	return list(ctx, db.read(), into(commandFields), `SELECT `+commandColumns+` FROM commands
		WHERE `+isOpen+` AND state = 'PREPARED' AND (created_at < ? OR created_at < ? AND sender <> '' AND NOT EXISTS
			(SELECT 1 FROM leases WHERE name = ? || sender AND expires_at > ?))
		ORDER BY created_at, id LIMIT ?`, millis(before), millis(now.Add(-engine.PresentFor)), engine.ReplicaPrefix, millis(now), limit)
}
