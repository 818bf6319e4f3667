package database

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/job"
)

// restored is why a job is paused that ran in a database that was restored or copied.
const restored = "the database was restored or copied: devices may have got the command since"

// BeginHistory begins the history of events where there is none: see holdUp. A service calls
// it before its work in the background begins.
func (db *DB) BeginHistory(ctx context.Context) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := beginHistory(ctx, t)
		return err
	})
}

// holdUp keeps from going on by itself what a restored database brings back: people may
// have canceled it since the backup, and devices may have got what a job sends. Jobs are
// paused. What waits to loosen a control is canceled, and can be asked for again.
func (db *DB) holdUp(ctx context.Context, t *tx) error {
	ctx = access.WithActor(ctx, access.ServiceActor(), "")
	waiting, err := list(ctx, t, scanLoosening,
		`SELECT `+looseningColumns+` FROM loosenings l WHERE l.effective_at > 0 ORDER BY l.effective_at, l.id`)
	for _, l := range waiting {
		if err == nil {
			err = db.dropLoosenings(ctx, t, l.CompanyID, l.Control)
		}
	}
	if err != nil {
		return err
	}
	running, err := list(ctx, t, into(jobFields),
		`SELECT `+jobColumns+` FROM jobs WHERE status = 'RUNNING' AND next_at > 0 ORDER BY next_at, id`+t.lock())
	for _, j := range running {
		if err == nil {
			_, err = db.moveJob(ctx, t, j, job.Paused, restored)
		}
	}
	return err
}
