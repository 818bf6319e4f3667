// Package engine runs statements, transactions and notifications on SQLite inside the process
// or on PostgreSQL, whatever the statements are about. The queries are in package database,
// which alone uses this one.
//
// # What is here
//
//   - connections: Open and Look (open.go, look.go, sqlite.go, postgres.go, pooler.go, dial.go)
//   - statements: Conn, List, One, Value (conn.go, argument.go), and what they cost (cost.go)
//   - transactions: Write, WriteOne, Snapshot (transaction.go, writer.go)
//   - what differs between the engines: Dialect (dialect.go)
//   - hints to other replicas: Notify, Listen (notify.go, notifypostgres.go)
//   - versions, replicas and leases (version.go, migrate.go, replica.go, olderreplica.go)
//   - whole databases: backup, restore, copy, checks (backup.go, restore.go, copy.go, foreign.go)
//
// It knows these tables: versions, applied_migrations, leases, and where a dialect or a
// backup needs it, events and event_history.
//
// # Writing
//
// On SQLite there is one writing connection, owned by a goroutine that commits
// the functions of concurrent callers together: one fsync serves many. If one of them
// fails, all run once more, each in a savepoint of its own. Other processes (the command line beside the service)
// may write the same file; they wait for each other.
package engine
