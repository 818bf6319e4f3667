package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errPooler refuses a pooler that lends a server's connection for less than a
// session. Prepared statements, LISTEN and session locks would be lost with it.
var errPooler = errors.New("the address leads to a connection pooler in transaction or statement mode, such as PgBouncer: " +
	"set its pool_mode to session for this database, or give PostgreSQL's own address in MUSTER_DATABASE")

const (
	// directRounds and poolerRounds are how often connections are asked which
	// process serves them, without and with a pooler between.
	directRounds, poolerRounds = 2, 10
	// hearLimit is how long a notification may take. Between connections that
	// keep their servers it takes milliseconds.
	hearLimit = 10 * time.Second
)

// refusePooler finds out whether a connection keeps its server process for as
// long as it is open. It uses no prepared statement: without it, poolers fail at
// random, and some keep statements themselves, which hides what is asked here.
func refusePooler(ctx context.Context, config *pgx.ConnConfig) error {
	first, second, err := connectPair(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		_ = first.Close(context.WithoutCancel(ctx))
		_ = second.Close(context.WithoutCancel(ctx))
	}()
	mine, err := serverOf(ctx, first, "")
	if err != nil {
		return err
	}
	// A pooler hands out process ids of its own, by which it finds the
	// connection to cancel; PostgreSQL's are those of its processes.
	pooled := mine != first.PID()
	rounds := directRounds
	if pooled {
		rounds = poolerRounds
	}
	for range rounds {
		if err := askPooler(ctx, first, second, mine); err != nil {
			return err
		}
	}
	if !pooled {
		return nil
	}
	// Another process is proof, but beside other clients each round may meet the
	// same one by chance. That a notification arrives is not left to chance.
	return hears(ctx, first, second, hearLimit)
}

// connectPair opens two connections.
func connectPair(ctx context.Context, config *pgx.ConnConfig) (first, second *pgconn.PgConn, err error) {
	config = config.Copy()
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // else there is no waiting for one
	if first, err = pgconn.ConnectConfig(ctx, &config.Config); err != nil {
		return nil, nil, err
	}
	if second, err = pgconn.ConnectConfig(ctx, &config.Config); err != nil {
		return nil, nil, errors.Join(err, first.Close(context.WithoutCancel(ctx)))
	}
	return first, second, nil
}

// hears returns errPooler unless the first connection receives what the second
// one sends to it. A pooler in transaction or statement mode takes the server
// away after LISTEN. The first connection asks for nothing after that, so it is
// given no server, and nothing can reach it.
func hears(ctx context.Context, first, second *pgconn.PgConn, limit time.Duration) error {
	channel := "muster_start_" + strings.ToLower(rand.Text())
	if err := first.Exec(ctx, "LISTEN "+channel).Close(); err != nil {
		return err
	}
	if err := second.Exec(ctx, "NOTIFY "+channel).Close(); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := first.WaitForNotification(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return errPooler
	}
	return err
}

// askPooler holds a server with the second connection and asks whether the first
// one still has its own.
func askPooler(ctx context.Context, first, second *pgconn.PgConn, mine uint32) error {
	held, err := serverOf(ctx, second, "BEGIN; ")
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && strings.Contains(e.Message, "statement pooling") {
		return errPooler
	}
	if err != nil {
		return err
	}
	same := held != mine
	if same {
		now, err := serverOf(ctx, first, "")
		if err != nil {
			return err
		}
		same = now == mine
	}
	if err := second.Exec(ctx, "ROLLBACK").Close(); err != nil {
		return err
	}
	if !same {
		return errPooler
	}
	return nil
}

// serverOf asks which process serves a connection.
func serverOf(ctx context.Context, c *pgconn.PgConn, before string) (uint32, error) {
	results, err := c.Exec(ctx, before+"SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return 0, err
	}
	rows := results[len(results)-1].Rows
	if len(rows) != 1 {
		return 0, errors.New("PostgreSQL does not say which process serves the connection")
	}
	var pid uint32
	for _, digit := range rows[0][0] {
		pid = 10*pid + uint32(digit-'0')
	}
	return pid, nil
}
