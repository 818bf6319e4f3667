package database

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/oauth"
)

// connectionColumns are a connection's, with the scopes of all its grants. One
// without grants shows the scopes that it had.
const connectionColumns = `o.id, o.company_id, o.user_id, o.client_id, o.client_name, COALESCE(` + grantedScopes + `, o.scopes),
	(SELECT COUNT(*) FROM oauth_grants g WHERE g.connection_id = o.id), o.frozen, o.created_at, o.last_used_at, o.revoked_at`

// grantColumns are the same of one grant g of the connection.
const grantColumns = `o.id, o.company_id, o.user_id, o.client_id, o.client_name, g.scopes, 1, o.frozen, o.created_at,
	g.last_used_at, o.revoked_at`

// grantedScopes are the scopes of all grants of a connection o; NULL without
// grants. Neither engine has a portable aggregate for "or", so the bits are
// added one by one.
const grantedScopes = `(SELECT MAX(g.scopes & 1) + MAX(g.scopes & 2) + MAX(g.scopes & 4) + MAX(g.scopes & 8) + MAX(g.scopes & 16)
	+ MAX(g.scopes & 32) FROM oauth_grants g WHERE g.connection_id = o.id)`

// connectionFields receives connectionColumns.
func connectionFields(o *oauth.Connection) []any {
	return []any{&o.ID, &o.CompanyID, &o.UserID, &o.ClientID, &o.ClientName, &o.Scopes, &o.Grants, &o.Frozen,
		at(&o.CreatedAt), at(&o.LastUsedAt), at(&o.RevokedAt)}
}

// ConnectionByToken finds the connection of a live access token, as a
// principal: the scopes of the token's grant limited to what its user may do
// now. A frozen connection is found and may do nothing: a client that is told
// that its token is invalid makes its user sign in again, with the same result.
func (db *DB) ConnectionByToken(ctx context.Context, token access.SecretHash) (oauth.Connection, access.Principal, error) {
	type caller struct {
		oauth.Connection
		user     account.User
		narrowed access.Permission
		expires  time.Time
		company  access.Principal // see callersColumns
	}
	fields := func(c *caller) []any {
		return slices.Concat(connectionFields(&c.Connection), userFields(&c.user), []any{&c.GrantID, &c.narrowed, at(&c.expires)},
			callersFields(&c.company))
	}
	c, err := find(ctx, db.read(), "connection", into(fields), `SELECT `+grantColumns+`, `+userColumns+`, g.id, k.scopes, k.expires_at, `+
		callersColumns+`
		FROM oauth_tokens k
		JOIN oauth_grants g ON g.id = k.grant_id
		JOIN oauth_connections o ON o.id = g.connection_id
		JOIN users u ON u.id = o.user_id
		JOIN companies c ON c.id = o.company_id
		WHERE k.hash = ? AND NOT k.refresh AND k.expires_at > ? AND o.revoked_at = 0 AND NOT u.disabled`,
		hex.EncodeToString(token[:]), millis(db.now()))
	if err != nil {
		return oauth.Connection{}, access.Principal{}, err
	}
	p := c.user.Principal(c.company.CompanySlug, c.company.Settings)
	p.Kind, p.ID, p.Name, p.Frozen = access.Connection, c.ID, c.ClientName, c.Frozen
	p.Version, p.Expires = c.company.Version, c.expires
	c.Grantable = p.Permissions
	p.Permissions &= c.Scopes.WithImplied()
	if c.narrowed != 0 {
		p.Permissions &= c.narrowed
	}
	return c.Connection, p, nil
}

// callerEnds is, as a part of a query, when a caller of a kind, with an id and the user behind it, can never call again: 0
// for never, 1 for already. It follows KeyByPrefix with apikey.Key.Usable, and ConnectionByToken. A connection can get other
// tokens, and a user can be enabled again, which ends the user's connections.
func callerEnds(kind, id, user string) string {
	return `CASE ` + kind + ` WHEN 'API_KEY'
		THEN COALESCE((SELECT CASE WHEN k.revoked_at = 0 THEN k.expires_at ELSE 1 END FROM api_keys k WHERE k.id = ` + id + `), 0)
		ELSE COALESCE((SELECT CASE WHEN u.disabled AND ` + kind + ` = 'CONNECTION' OR EXISTS (SELECT 1 FROM oauth_connections o
			WHERE o.id = ` + id + ` AND o.revoked_at <> 0) THEN 1 ELSE 0 END FROM users u WHERE u.id = ` + user + `), 1) END`
}

// TouchConnection notes the last use of a connection and its grant, at most ten
// seconds late.
func (db *DB) TouchConnection(ctx context.Context, id, grantID string) error {
	now := millis(db.now())
	return db.writeRelaxed(ctx, func(ctx context.Context, t *tx) error {
		t.do(ctx, `UPDATE oauth_connections SET last_used_at = ? WHERE id = ? AND last_used_at < ?`, now, id,
			now-lastUsedEvery)
		return t.Exec(ctx, `UPDATE oauth_grants SET last_used_at = ? WHERE id = ? AND last_used_at < ?`, now, grantID, now-lastUsedEvery)
	})
}

// lastUsedEvery is how far a last use may lag behind, in milliseconds.
const lastUsedEvery = 10_000

// Connections lists a company's connections, the newest first.
func (db *DB) Connections(ctx context.Context, companyID string) ([]oauth.Connection, error) {
	return list(ctx, db.read(), into(connectionFields), `SELECT `+connectionColumns+` FROM oauth_connections o
		WHERE o.company_id = ? ORDER BY o.created_at DESC, o.id`, companyID)
}

// UpdateConnection changes what change changes of name, scopes, freezing and
// revocation.
func (db *DB) UpdateConnection(ctx context.Context, companyID, id string, change func(*oauth.Connection) error) (oauth.Connection, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (oauth.Connection, error) {
		o, err := lockConnection(ctx, t, `o.id = ? AND o.company_id = ?`, id, companyID)
		if err != nil {
			return o, err
		}
		updated := o
		if err := change(&updated); err != nil {
			return updated, err
		}
		err = db.saveConnection(ctx, t, o, &updated)
		return updated, err
	})
}

// lockConnectionsOf locks the live connections of a user and returns their ids.
func lockConnectionsOf(ctx context.Context, t *tx, companyID, userID string) []string {
	return listed(ctx, t, scanValue[string], `SELECT o.id FROM oauth_connections o WHERE o.user_id = ? AND o.company_id = ?
		AND o.revoked_at = 0 ORDER BY o.id`+t.lock(), userID, companyID)
}

// endConnections revokes the connections of a user, and consents that are not redeemed yet, in
// the transaction that disables or enables the user: they do not work again if the user does.
func (db *DB) endConnections(ctx context.Context, t *tx, u account.User) {
	// A code that is being redeemed is waited for: its connection is found after it.
	t.do(ctx, `DELETE FROM oauth_codes WHERE user_id = ?`, u.ID)
	for _, id := range lockConnectionsOf(ctx, t, u.CompanyID, u.ID) {
		o, err := findConnection(ctx, t, id)
		t.check(err)
		ended := o
		ended.RevokedAt = db.now()
		t.check(db.saveConnection(ctx, t, o, &ended))
	}
}

// saveConnection saves a locked connection with its grants, and records what changed.
func (db *DB) saveConnection(ctx context.Context, t *tx, before oauth.Connection, after *oauth.Connection) error {
	if after.Scopes != before.Scopes || after.Frozen != before.Frozen || !after.RevokedAt.Equal(before.RevokedAt) {
		t.raises(before.CompanyID)
		t.changed(before.CompanyID, attentionHint, "")
	}
	t.check(changeGrants(ctx, t, before, after))
	t.do(ctx, `UPDATE oauth_connections SET client_name = ?, scopes = ?, frozen = ?, revoked_at = ? WHERE id = ?`,
		after.ClientName, int64(after.Scopes), after.Frozen, millis(after.RevokedAt), before.ID)
	return db.recordConnection(ctx, t, before, *after)
}

// recordConnection records what a save changed about a connection.
func (db *DB) recordConnection(ctx context.Context, t *tx, before, after oauth.Connection) error {
	action := activity.ConnectionChanged
	if before.RevokedAt.IsZero() != after.RevokedAt.IsZero() {
		action = activity.ConnectionRevoked
	}
	changes := activity.Differences(
		activity.Change{Field: "scopes", Before: strings.Join(before.Scopes.Scopes(), " "),
			After: strings.Join(after.Scopes.Scopes(), " ")},
		activity.Change{Field: "frozen", Before: access.OnOff(before.Frozen), After: access.OnOff(after.Frozen)},
	)
	if len(changes) == 0 && action == activity.ConnectionChanged {
		return nil
	}
	return db.record(ctx, t, after.CompanyID, activity.Event{Action: action, Target: connectionTarget(after), Changes: changes})
}

func connectionTarget(o oauth.Connection) activity.Target {
	return activity.Target{Kind: activity.Connection, ID: o.ID, Name: o.ClientName}
}
