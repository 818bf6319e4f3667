package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/fault"
)

// find is one for a row that has a name: if there is none, fault.NotFound says so.
func find[T any](ctx context.Context, c conn, noun string, scan func(row) (T, error), query string, args ...any) (T, error) {
	t, err := one(ctx, c, scan, query, args...)
	return found(t, err, noun)
}

// maybe reports whether there was a row, instead of sql.ErrNoRows.
func maybe[T any](t T, err error) (T, bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return t, false, nil
	}
	return t, err == nil, err
}

// found turns the absence of a row into fault.NotFound with the noun's name.
func found[T any](t T, err error, noun string) (T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return t, fault.New(fault.NotFound, "no such %s", noun)
	}
	return t, err
}

// taken turns an error because another row has the same key into fault.Refused.
func taken(err error, format string, args ...any) error {
	if engine.Unique(err) {
		return fault.New(fault.Refused, format, args...)
	}
	return err
}
