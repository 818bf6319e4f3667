package database

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
)

const connectionColumns = `o.id, o.company_id, o.user_id, o.client_id, o.client_name, o.scopes, o.frozen, o.created_at,
	o.last_used_at, o.revoked_at`

// connectionRow receives connectionColumns.
type connectionRow struct {
	connection             access.OAuthConnection
	scopes                 int64
	created, used, revoked int64
}

func (r *connectionRow) fields() []any {
	o := &r.connection
	return []any{&o.ID, &o.CompanyID, &o.UserID, &o.ClientID, &o.ClientName, &r.scopes, &o.Frozen, &r.created, &r.used, &r.revoked}
}

func (r *connectionRow) value() access.OAuthConnection {
	o := r.connection
	o.Scopes = access.Permission(r.scopes)
	o.CreatedAt, o.LastUsedAt, o.RevokedAt = instant(r.created), instant(r.used), instant(r.revoked)
	return o
}

func scanConnection(r row) (access.OAuthConnection, error) {
	var o connectionRow
	err := r.Scan(o.fields()...)
	return o.value(), err
}

// ConnectionByToken finds the connection of a live access token, as a
// principal: its scopes cut by what its user may do now. A frozen one is found
// and may do nothing: a client that was told that its token is no good would
// have its person sign in again, to the same end.
func (db *DB) ConnectionByToken(ctx context.Context, token access.SecretHash) (access.OAuthConnection, access.Principal, error) {
	type caller struct {
		connection access.OAuthConnection
		principal  access.Principal
	}
	scan := func(r row) (caller, error) {
		var o connectionRow
		var u userRow
		var slug string
		var s access.Settings
		fields := append(append(o.fields(), u.fields()...), &slug, &s.DeviceCommands, &s.DestructiveCommands,
			&s.PolicyChanges, &s.Provisioning, &s.OAuthConnections)
		if err := r.Scan(fields...); err != nil {
			return caller{}, err
		}
		user, err := u.account()
		if err != nil {
			return caller{}, err
		}
		c := caller{connection: o.value(), principal: user.Principal(slug, s)}
		c.principal.Kind, c.principal.ID = access.Connection, c.connection.ID
		c.principal.Name, c.principal.Frozen = c.connection.ClientName, c.connection.Frozen
		c.connection.Grantable = c.principal.Permissions
		c.principal.Permissions &= c.connection.Scopes.WithImplied()
		return c, nil
	}
	c, err := one(ctx, db.read(), scan, `SELECT `+connectionColumns+`, `+userColumns+`, c.slug, `+settingsColumns+`
		FROM oauth_tokens k
		JOIN oauth_connections o ON o.id = k.connection_id
		JOIN users u ON u.id = o.user_id
		JOIN companies c ON c.id = o.company_id
		WHERE k.hash = ? AND NOT k.refresh AND k.expires_at > ? AND o.revoked_at = 0 AND NOT u.disabled`,
		hex.EncodeToString(token[:]), millis(db.now()))
	c, err = found(c, err, "connection")
	return c.connection, c.principal, err
}

// TouchConnection notes a connection's last use, at most ten seconds late.
func (db *DB) TouchConnection(ctx context.Context, id string) error {
	now := millis(db.now())
	return db.writeRelaxed(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE oauth_connections SET last_used_at = ? WHERE id = ? AND last_used_at < ?`, now, id, now-touchEvery)
		return err
	})
}

// touchEvery is how far a last use may lag behind, in milliseconds.
const touchEvery = 10_000

// Connections lists a company's connections, the newest first.
func (db *DB) Connections(ctx context.Context, companyID string) ([]access.OAuthConnection, error) {
	return list(ctx, db.read(), scanConnection, `SELECT `+connectionColumns+` FROM oauth_connections o
		WHERE o.company_id = ? ORDER BY o.created_at DESC, o.id`, companyID)
}

// UpdateConnection changes what change changes of name, scopes, freezing and
// revocation.
func (db *DB) UpdateConnection(ctx context.Context, companyID, id string, change func(*access.OAuthConnection) error) (access.OAuthConnection, error) {
	var updated access.OAuthConnection
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		o, err := one(ctx, t, scanConnection, `SELECT `+connectionColumns+` FROM oauth_connections o
			WHERE o.id = ? AND o.company_id = ?`+t.lock(), id, companyID)
		if o, err = found(o, err, "connection"); err != nil {
			return err
		}
		before := o
		if err := change(&o); err != nil {
			return err
		}
		updated = o
		if _, err = t.exec(ctx, `UPDATE oauth_connections SET client_name = ?, scopes = ?, frozen = ?, revoked_at = ? WHERE id = ?`,
			o.ClientName, int64(o.Scopes), o.Frozen, millis(o.RevokedAt), id); err != nil {
			return err
		}
		return db.recordConnection(ctx, t, before, o)
	})
	return updated, err
}

// recordConnection records what a save changed about a connection.
func (db *DB) recordConnection(ctx context.Context, t *tx, before, after access.OAuthConnection) error {
	action := activity.ConnectionChanged
	if before.RevokedAt.IsZero() != after.RevokedAt.IsZero() {
		action = activity.ConnectionRevoked
	}
	changes := activity.Differences(
		activity.Change{Field: "scopes", Before: strings.Join(before.Scopes.Scopes(), " "), After: strings.Join(after.Scopes.Scopes(), " ")},
		activity.Change{Field: "frozen", Before: onOff(before.Frozen), After: onOff(after.Frozen)},
	)
	if len(changes) == 0 && action == activity.ConnectionChanged {
		return nil
	}
	return db.record(ctx, t, after.CompanyID, activity.Event{Action: action, Target: connectionTarget(after), Changes: changes})
}

func connectionTarget(o access.OAuthConnection) activity.Target {
	return activity.Target{Kind: activity.Connection, ID: o.ID, Name: o.ClientName}
}

// recordConsent records that a person let an application act for them.
func (db *DB) recordConsent(ctx context.Context, t *tx, o access.OAuthConnection) error {
	return db.recordGrant(ctx, t, activity.ConnectionGranted, o, activity.Change{Field: "scopes", After: strings.Join(o.Scopes.Scopes(), " ")})
}

// recordGrant records an event of the authorization server, where the context
// has nobody: the connection's user it is.
func (db *DB) recordGrant(ctx context.Context, t *tx, action activity.Action, o access.OAuthConnection, changes ...activity.Change) error {
	u, err := findUser(ctx, t, `u.id = ?`, o.UserID)
	if err != nil {
		return err
	}
	e := activity.Event{Action: action, Target: connectionTarget(o), Changes: changes}
	if access.OriginOf(ctx).Actor == (access.Actor{}) {
		e.Actor = access.Actor{Kind: access.Connection, ID: o.ID, UserID: u.ID, Name: o.ClientName}
		if action == activity.ConnectionGranted {
			e.Actor = access.Actor{Kind: access.User, ID: u.ID, UserID: u.ID, Name: u.Name}
		}
	}
	return db.record(ctx, t, o.CompanyID, e)
}

// revokeRecorded ends a connection and records it, once, with the reason.
func (db *DB) revokeRecorded(ctx context.Context, t *tx, id, reason string) error {
	o, err := one(ctx, t, scanConnection, `SELECT `+connectionColumns+` FROM oauth_connections o WHERE o.id = ?`+t.lock(), id)
	if o, err = found(o, err, "connection"); err != nil || !o.RevokedAt.IsZero() {
		return err
	}
	if err := revoke(ctx, t, id, millis(db.now())); err != nil {
		return err
	}
	return db.recordGrant(ctx, t, activity.ConnectionRevoked, o, activity.Change{Field: "reason", After: reason})
}
