package database

// OnStatement has f told of every statement that db runs.
func (db *DB) OnStatement(f func(query string, args []any)) { db.trace = f }
