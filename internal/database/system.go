package database

import "context"

// Engine is the name of the database's engine.
func (db *DB) Engine() string {
	if _, postgres := db.dialect.(postgresDialect); postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}

// Size is how much the database takes on its disk, in bytes, without SQLite's log.
func (db *DB) Size(ctx context.Context) (int64, error) {
	if db.Engine() == "PostgreSQL" {
		return value[int64](ctx, db.read(), `SELECT pg_database_size(current_database())`)
	}
	return value[int64](ctx, db.read(), `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`)
}

// Replicas returns how many replicas of the service said within their lease that they run.
func (db *DB) Replicas(ctx context.Context) (int, error) {
	all, err := db.replicas(ctx, db.read())
	return len(all), err
}

// maxQueue bounds the count of a queue.
const maxQueue = 10_000

// Queues counts what of a company is under way, each up to 10,000: commands without a final
// state, and jobs that are not over.
func (db *DB) Queues(ctx context.Context, companyID string) (commands, jobs int, err error) {
	commands, err = value[int](ctx, db.read(), `SELECT COUNT(*) FROM (SELECT id FROM commands WHERE company_id = ? AND `+isOpen+` LIMIT ?) q`, companyID, maxQueue)
	if err != nil {
		return 0, 0, err
	}
	jobs, err = value[int](ctx, db.read(), `SELECT COUNT(*) FROM (SELECT id FROM jobs WHERE company_id = ? AND status IN ('RUNNING', 'PAUSED') LIMIT ?) q`, companyID, maxQueue)
	return commands, jobs, err
}
