package database

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errPooler refuses a pooler that lends a server's connection for less than a
// session. Prepared statements, LISTEN and session locks would be lost with it.
var errPooler = errors.New("the address leads to a connection pooler in transaction or statement mode, such as PgBouncer: " +
	"set its pool_mode to session for this database, or give PostgreSQL's own address in MUSTER_DATABASE")

// poolerRounds is how often a connection behind a pooler is asked. One answer that
// differs is proof; among those who work at the same time it can fail to differ.
const poolerRounds, directRounds = 40, 2

// refusePooler finds out whether a connection keeps its server. It uses no
// prepared statement, which would fail at random or hide what it looks for.
func refusePooler(ctx context.Context, config *pgx.ConnConfig) error {
	first, err := pgconn.ConnectConfig(ctx, &config.Copy().Config)
	if err != nil {
		return err
	}
	defer func() { _ = first.Close(context.WithoutCancel(ctx)) }()
	second, err := pgconn.ConnectConfig(ctx, &config.Copy().Config)
	if err != nil {
		return err
	}
	defer func() { _ = second.Close(context.WithoutCancel(ctx)) }()
	mine, err := serverOf(ctx, first, "")
	if err != nil {
		return err
	}
	// A pooler hands out process ids of its own, with which it finds whom to
	// cancel; PostgreSQL's are those of its processes.
	rounds := directRounds
	if mine != first.PID() {
		rounds = poolerRounds
	}
	for range rounds {
		if err := askPooler(ctx, first, second, mine); err != nil {
			return err
		}
	}
	return nil
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
