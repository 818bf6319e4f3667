package engine

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Cost is what work costs at the database.
type Cost struct {
	// RoundTrips are how often PostgreSQL was asked and waited for; 0 on SQLite. What happens once in
	// a connection's life, such as that a statement is prepared, is not counted.
	RoundTrips int
	Statements int // without BEGIN and COMMIT
	Commits    int // of transactions, and of single statements that write
}

// Plus returns the sum of both.
func (c Cost) Plus(more Cost) Cost {
	return Cost{c.RoundTrips + more.RoundTrips, c.Statements + more.Statements, c.Commits + more.Commits}
}

// spend reports what the work of the context cost, if Options.Spent is set.
func (db *DB) spend(ctx context.Context, c Cost) {
	if db.spent != nil {
		db.spent(ctx, c)
	}
}

// meter counts what pgx sends, below everything that this package does.
type meter struct{ db *DB }

// TraceQueryStart implements pgx.QueryTracer.
func (m meter) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	cost := costOf(data.SQL, c.PgConn().TxStatus() != 'I')
	cost.RoundTrips = 1
	m.db.spend(ctx, cost)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (meter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer. A batch is one transaction.
func (m meter) TraceBatchStart(ctx context.Context, c *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	cost := Cost{RoundTrips: 1}
	for _, q := range data.Batch.QueuedQueries {
		cost = cost.Plus(costOf(q.SQL, c.PgConn().TxStatus() != 'I'))
	}
	cost.Commits = min(cost.Commits, 1)
	m.db.spend(ctx, cost)
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (meter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (meter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// costOf is what a text costs apart from the round trip. Outside a transaction a statement
// that writes is committed by itself.
func costOf(query string, inside bool) Cost {
	writing := Cost{Statements: 1, Commits: 1}
	if inside {
		writing.Commits = 0
	}
	switch first, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(query, "( \n\t")), " "); first {
	case "commit":
		return Cost{Commits: 1}
	case "begin", "rollback":
		return Cost{}
	case "insert", "update", "delete":
		return writing
	case "with":
		if strings.Contains(query, "UPDATE ") || strings.Contains(query, "INSERT INTO") || strings.Contains(query, "DELETE FROM") {
			return writing
		}
	}
	return Cost{Statements: 1}
}
