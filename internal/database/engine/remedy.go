package engine

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

// Remedy says what to do about an error of Open or Look.
func Remedy(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return remedyPostgres(refused)
	}
	if unusable, ok := errors.AsType[*AccessError](err); ok {
		return unusable.Remedy
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "end the program that has locked the file, or try again"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "correct the path in MUSTER_DATABASE, or put a backup in the file's place with `muster restore FILE`"
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return "look whether the disk is full or failing; nothing that was answered for is lost"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY:
		return "let this user read and write the file and its directory, or correct the path in MUSTER_DATABASE"
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return "correct the host in MUSTER_DATABASE"
	}
	switch {
	case errors.Is(err, errSilent), pgconn.Timeout(err):
		return "look whether PostgreSQL runs, and at what is between it and Muster"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the database, or correct host and port in MUSTER_DATABASE"
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return "make the directory, or correct the path in MUSTER_DATABASE"
	case errors.Is(err, syscall.EACCES):
		return "let this user read and write the file and its directory, or correct the path in MUSTER_DATABASE"
	}
	return "correct MUSTER_DATABASE, or what it names"
}

// remedyPostgres goes by PostgreSQL's error codes.
func remedyPostgres(e *pgconn.PgError) string {
	switch {
	case e.Code == "3D000":
		return "create the database (`createdb`), or correct its name in MUSTER_DATABASE"
	case strings.HasPrefix(e.Code, "28"):
		return "correct the user or the password in MUSTER_DATABASE, or let the user in by pg_hba.conf"
	case e.Code == "42501":
		return "give the user of MUSTER_DATABASE the right to use the database and to create tables in it"
	case e.Code == "53300":
		return "raise max_connections of PostgreSQL or the CONNECTION LIMIT of the role, or end what uses the connections"
	case strings.HasPrefix(e.Code, "57P"):
		return "wait until PostgreSQL has started, or start it"
	case strings.HasPrefix(e.Code, "53"):
		return "give PostgreSQL's machine more disk or memory"
	}
	return "correct MUSTER_DATABASE, or what PostgreSQL complains of"
}
