package engine

import "context"

// Engine is the name of the database's engine.
func (db *DB) Engine() string {
	if db.Embedded() {
		return "SQLite"
	}
	return "PostgreSQL"
}

// Size is how much the database takes on its disk, in bytes, without SQLite's log.
func (db *DB) Size(ctx context.Context) (int64, error) {
	if !db.Embedded() {
		return Value[int64](ctx, db.Read(), `SELECT pg_database_size(current_database())`)
	}
	return Value[int64](ctx, db.Read(), `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`)
}

// Replicas returns how many replicas of the service said within their lease that they run.
func (db *DB) Replicas(ctx context.Context) (int, error) {
	all, err := db.replicas(ctx, db.Read())
	return len(all), err
}
