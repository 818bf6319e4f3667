// Package migrations has the changes of the database's tables, one file each, in the order of
// their numbers. A file that was released is never edited again.
package migrations

import "embed"

// Files are the migrations.
//
//go:embed *.sql
var Files embed.FS

const (
	// First is how many migrations the first version of Muster had. A database that names no
	// version is of that one, whose number is 1.
	First = 19
	// LowestWriter is the number of the oldest program that may write beside this one. Raise it
	// to the number that schema.sql shows with every migration that an older program would
	// break, or that its writing would make wrong.
	LowestWriter = 50
)
