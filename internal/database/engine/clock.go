package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// clock is the time by which leases, budgets and proposals end. On PostgreSQL,
// with Options.ServerClock, it is the server's, so that replicas on machines
// whose clocks differ agree on it: this machine's, corrected by how far the
// server's was ahead when last asked. Asking the server each time would cost a
// round trip.
type clock struct {
	local func() time.Time
	ahead atomic.Int64 // nanoseconds
}

// Now is the time by the database's clock.
func (c *clock) Now() time.Time { return c.local().Add(time.Duration(c.ahead.Load())) }

// Now is the time by which what is kept in the database begins and ends.
func (db *DB) Now() time.Time { return db.now() }

// clockQuestions is how often the server is asked the time; the quickest answer
// is the most exact one.
const clockQuestions = 3

// SetClock asks the server the time, where that is wanted.
func (db *DB) SetClock(ctx context.Context) error {
	if db.clock == nil {
		return nil
	}
	best := time.Duration(-1)
	for range clockQuestions {
		asked := db.clock.local()
		micros, err := Value[int64](ctx, db.Read(), `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`)
		if err != nil {
			return fmt.Errorf("cannot ask the database the time: %w", err)
		}
		if took := db.clock.local().Sub(asked); best < 0 || took < best {
			best = took
			db.clock.ahead.Store(int64(time.UnixMicro(micros).Sub(asked.Add(took / 2))))
		}
	}
	return nil
}

// ClockAhead is how far the server's clock is ahead of a local one. An embedded
// database has no clock of its own.
func (db *DB) ClockAhead(ctx context.Context, local func() time.Time) (time.Duration, error) {
	if db.Embedded() {
		return 0, nil
	}
	asking := &DB{dialect: db.dialect, reader: db.reader, clock: &clock{local: local}}
	err := asking.SetClock(ctx)
	return time.Duration(asking.clock.ahead.Load()), err
}
