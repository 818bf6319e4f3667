package durable

// RowExporter keeps rows of the database before they are deleted, in a file or in memory. Each method
// fails as what it writes to does; after an error, the caller deletes nothing. Concurrent use is not safe.
type RowExporter interface {
	// Begin begins the export. A transaction that is tried again calls it again: it then discards
	// the rows that were kept.
	Begin() error
	// Keep adds a row of a table, by the names of its columns.
	Keep(table string, row map[string]any) error
	// Commit ends the export: a file is durable when it returns. It fails with fault.Unsupported if
	// the rows are not those that are to be deleted.
	Commit() error
}
