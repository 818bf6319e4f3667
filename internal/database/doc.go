// Package database keeps everything that Muster knows, in SQLite inside the
// process or in PostgreSQL. With its package engine it is the only one that speaks SQL.
//
// It has the queries, one file a subject. Package engine has what runs them: connections,
// transactions, the differences between SQLite and PostgreSQL, notifications, versions and
// backups. engine.go and rows.go give its names to the queries; transaction.go adds to its
// transactions what is about companies: hints to open pages, events, and callers' permits.
//
// A *DB implements the store interfaces that the nouns and verbs declare, one
// file per domain, as plain methods. The same SQL text runs on both engines.
//
// # Adding a store
//
//  1. The domain package declares the interface that it needs.
//  2. The tables go into the next free file of migrations/, one file per topic
//     (0002_idempotency.sql, 0003_proposals.sql, …). A file that was released is
//     never edited again. `go test ./internal/database -run Schema -update`
//     refreshes schema.sql; its diff shows what changed.
//  3. The methods go into <domain>.go, with the row's columns and its scan
//     function side by side.
//  4. The tests go into <domain>_test.go and run on both engines through each.
//
// # The dialect
//
// Placeholders are ?, in order, on both engines; a question mark may occur
// nowhere else in a statement. Types are TEXT, BIGINT and BOOLEAN; an instant is
// a BIGINT of Unix milliseconds, and 0 where there is none; JSON is TEXT. Columns
// are NOT NULL (primary keys too: SQLite takes NULL there) with an empty default wherever empty means none: NULL sorts
// differently on the engines. Text compares byte by byte on both (migrations
// write TEXT, PostgreSQL gets TEXT COLLATE "C"). A statement that would break a
// unique index says ON CONFLICT, or ends its transaction and is recognized by taken:
// a failed statement spoils a PostgreSQL transaction. RETURNING, UPDATE … FROM,
// common table expressions and partial indexes are the same on both.
//
// # Reading
//
// list, one and value run a query on db.read() or on a transaction: both are a
// conn (engine.Conn). A finder that is also needed inside a transaction takes the conn as an
// argument. Every query is explained by a test that fails on a full scan of a
// table (see explain_test.go); a small table may be exempted there, by name.
//
// # Writing
//
//   - db.write runs a function in a transaction and returns when its outcome is
//     durable. Commands' and proposals' intents go this way.
//   - db.writeRelaxed is the same for what may be lost with the machine's power:
//     budgets, last-seen times. It survives the death of the process.
//   - db.statement is db.write for a function of one single statement: on
//     PostgreSQL it saves the round trips of BEGIN and COMMIT.
//
// In a transaction, t.do runs a statement and t.check takes the error of a step. Neither returns
// the error: after it, no statement of the transaction reaches the database, reads included, and
// the transaction fails with it. Where something else than a statement follows, such as a call of
// a caller's function, the error is returned at once instead.
//
// The function gets its own context, which the caller's cancellation does not
// reach, and may run more than once; see engine.Work.
// tx.lock is " FOR UPDATE" where that is needed, skipLocked its sibling for
// workers that claim rows, and hold the one that lets others make rows that refer to the
// locked one.
//
// # The order of locks
//
// A transaction locks rows in this order, so that no two wait for each other:
//
//  1. the API key or connection of the caller
//  2. the company
//  3. users, by their ids
//  4. a proposal, or authorizations
//  5. assets, by their ids
//  6. policies, by their ids, and enrollment codes
//  7. leases, and last, when it concludes, the version of the company's controls
//
// What a person decided is used, made and taken back under the lock of the company: a
// transaction that takes a right, a passkey or an account holds the company before the user,
// and one that claims a proposal or decides holds the company in the place of the user. The
// company is locked by hold: another lock would wait for all who add a row to the company.
//
// What may take minutes and locks many assets, in an order of its own, has the inventory (holdInventory)
// and not the company: a stop, and the end of a user's rights, must not wait for it. What locks assets while it
// holds the company or a key, and what decides which asset a device is, shares the inventory
// (shareInventory). A transaction does not wait for the inventory: one that finds it taken ends with all
// its locks, and write runs it again. So the inventory has no place in the order above. An import locks
// its assets by hold, so that the row of a command, which refers to one, does not wait either. What an
// import writes to that others of the company write to, such as the counts, it writes last.
//
// PostgreSQL ends one of two transactions that wait for each other with the code 40P01,
// after a second. It is run again, and its caller notices nothing but the second.
package database
