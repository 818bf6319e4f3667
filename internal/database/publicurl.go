package database

import "context"

// publicURL is the name under which operator_acts has the service's public URL.
const publicURL = "public_url"

// SetPublicURL records the public URL with which the service starts.
func (db *DB) SetPublicURL(ctx context.Context, url string) error {
	return db.exec(ctx, `INSERT INTO operator_acts (name, at, value) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET at = excluded.at, value = excluded.value`, publicURL, millis(db.now()), url)
}

// PublicURL returns the public URL with which the service last started; empty: it never did.
func (db *DB) PublicURL(ctx context.Context) (string, error) {
	return value[string](ctx, db.read(), `SELECT COALESCE(MAX(value), '') FROM operator_acts WHERE name = ?`, publicURL)
}
