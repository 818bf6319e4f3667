package database

import (
	"context"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/resource"
)

// lockConnection finds a connection and locks it until the transaction ends. Lock its codes, grants and tokens only after
// it: the same order everywhere prevents deadlocks.
func lockConnection(ctx context.Context, t *tx, where string, args ...any) (oauth.Connection, error) {
	id, err := find(ctx, t, "connection", scanValue[string], `SELECT o.id FROM oauth_connections o WHERE `+where+t.lock(), args...)
	if err != nil {
		return oauth.Connection{}, err
	}
	return findConnection(ctx, t, id)
}

func findConnection(ctx context.Context, t *tx, id string) (oauth.Connection, error) {
	return find(ctx, t, "connection", into(connectionFields), `SELECT `+connectionColumns+` FROM oauth_connections o WHERE o.id = ?`, id)
}

// addGrant adds a grant with a code's scopes to the user's connection with the client. It makes the connection if there is
// none, frozen if the last one of the user with the client was frozen when it ended, and ends the grant that was unused for
// longest if the connection has oauth.MaxGrants already. It returns the connection with the id and the scopes of the new
// grant.
func (db *DB) addGrant(ctx context.Context, t *tx, code oauth.AuthorizationCode) (oauth.Connection, error) {
	now := millis(db.now())
	t.do(ctx, `INSERT INTO oauth_connections (id, company_id, user_id, client_id, client_name, scopes, frozen,
			created_at, last_used_at, revoked_at)
		VALUES (?, ?, ?, ?, ?, ?, COALESCE((SELECT p.frozen FROM oauth_connections p WHERE p.user_id = ? AND p.client_id = ?
			ORDER BY p.created_at DESC, p.id DESC LIMIT 1), FALSE), ?, 0, 0)
		ON CONFLICT (user_id, client_id) WHERE revoked_at = 0 DO UPDATE SET client_name = excluded.client_name`,
		resource.NewID(), code.CompanyID, code.UserID, code.ClientID, code.ClientName, int64(code.Scopes),
		code.UserID, code.ClientID, now)
	o, err := lockConnection(ctx, t, connectionOfClient, code.UserID, code.ClientID)
	t.check(err)
	grantID := resource.NewID()
	t.do(ctx, `INSERT INTO oauth_grants (id, connection_id, scopes, created_at, last_used_at) VALUES (?, ?, ?, ?, ?)`,
		grantID, o.ID, int64(code.Scopes), now, 0)
	changes := []activity.Change{{Field: "scopes", After: strings.Join(code.Scopes.Scopes(), " ")}}
	if o.Grants >= oauth.MaxGrants {
		t.raises(o.CompanyID)
		t.check(endUnused(ctx, t, o.ID, grantID))
		changes = append(changes, activity.Change{Field: "ended", After: "the grant that was unused for longest"})
	}
	t.check(sumGrants(ctx, t, o.ID))
	// A registration that led to a grant stays. A client's metadata document is
	// fetched again when its time is over.
	t.do(ctx, `UPDATE oauth_clients SET expires_at = 0 WHERE id = ? AND dynamic`, code.ClientID)
	if o.Grants == 0 { // o was read before the new grant: the connection is new, or had no grant left
		t.check(db.tell(ctx, t, event.Event{CompanyID: o.CompanyID, Type: event.ConnectionCreated}))
	}
	o.GrantID, o.Scopes = grantID, code.Scopes
	return o, db.recordGrant(ctx, t, activity.ConnectionGranted, o, changes...)
}

// endUnused deletes the grants of a connection that were unused for longest, with their tokens, so that oauth.MaxGrants
// stay. The grant newest stays in any case: it was not used yet.
func endUnused(ctx context.Context, t *tx, connectionID, newest string) error {
	ended := `(SELECT g.id FROM oauth_grants g WHERE g.connection_id = ? AND g.id <> ? 
		ORDER BY CASE WHEN g.last_used_at > g.created_at THEN g.last_used_at ELSE g.created_at END DESC, g.id LIMIT ? OFFSET ?)`
	args := []any{connectionID, newest, oauth.MaxGrants, oauth.MaxGrants - 1}
	t.do(ctx, `DELETE FROM oauth_tokens WHERE grant_id IN `+ended, args...)
	return t.Exec(ctx, `DELETE FROM oauth_grants WHERE id IN `+ended, args...)
}

// sumGrants writes the scopes of all grants together into the connection. Without a grant the last ones stay there, to be
// shown.
func sumGrants(ctx context.Context, t *tx, connectionID string) error {
	return t.Exec(ctx, `UPDATE oauth_connections AS o SET scopes = COALESCE(`+grantedScopes+`, o.scopes) WHERE o.id = ?`, connectionID)
}

// endGrant deletes a grant of a locked connection with its tokens, and records that with the reason. The end of the last
// grant revokes the connection. If the grant has ended before, nothing changes.
func (db *DB) endGrant(ctx context.Context, t *tx, o oauth.Connection, grantID, reason string) error {
	t.do(ctx, `DELETE FROM oauth_tokens WHERE grant_id = ?`, grantID)
	if t.count(ctx, `DELETE FROM oauth_grants WHERE id = ? AND connection_id = ?`, grantID, o.ID) == 0 {
		return nil
	}
	t.raises(o.CompanyID)
	action := activity.ConnectionChanged
	if o.Grants == 1 {
		action = activity.ConnectionRevoked
		t.do(ctx, `UPDATE oauth_connections SET revoked_at = ? WHERE id = ?`, millis(db.now()), o.ID)
		t.changed(o.CompanyID, attentionHint, "") // what waits for a person because of the connection does no more
	}
	t.check(sumGrants(ctx, t, o.ID))
	return db.recordGrant(ctx, t, action, o, activity.Change{Field: "reason", After: reason})
}

// changeGrants applies a change of a connection to its grants. Scopes that were added or removed are added to or removed
// from each grant. A connection that was revoked loses its grants, tokens and codes.
func changeGrants(ctx context.Context, t *tx, before oauth.Connection, after *oauth.Connection) error {
	const codes = `DELETE FROM oauth_codes WHERE user_id = ? AND client_id = ?`
	if before.RevokedAt.IsZero() && !after.RevokedAt.IsZero() {
		t.do(ctx, `DELETE FROM oauth_tokens WHERE grant_id IN (SELECT g.id FROM oauth_grants g WHERE g.connection_id = ?)`, before.ID)
		t.do(ctx, `DELETE FROM oauth_grants WHERE connection_id = ?`, before.ID)
		after.Grants = 0
		return t.Exec(ctx, codes, before.UserID, before.ClientID)
	}
	if before.Scopes == after.Scopes {
		return nil
	}
	if before.Scopes&^after.Scopes != 0 {
		// Codes that are not redeemed yet would bring the removed scopes back. A redeemed code stays: its replay ends its grant.
		t.do(ctx, codes+` AND grant_id = ''`, before.UserID, before.ClientID)
	}
	return t.Exec(ctx, `UPDATE oauth_grants SET scopes = (scopes & ?) | ? WHERE connection_id = ?`,
		int64(after.Scopes), int64(after.Scopes&^before.Scopes), before.ID)
}

// recordGrant records an event of the authorization server. If the context names no actor, the actor is the connection
// or, for activity.ConnectionGranted, its user.
func (db *DB) recordGrant(ctx context.Context, t *tx, action activity.Action, o oauth.Connection, changes ...activity.Change) error {
	u, err := findUser(ctx, t, `u.id = ?`, o.UserID)
	t.check(err)
	e := activity.Event{Action: action, Target: connectionTarget(o), Changes: changes}
	if access.OriginOf(ctx).Actor == (access.Actor{}) {
		e.Actor = access.Actor{Kind: access.Connection, ID: o.ID, UserID: u.ID, Name: o.ClientName}
		if action == activity.ConnectionGranted {
			e.Actor = access.Actor{Kind: access.User, ID: u.ID, UserID: u.ID, Name: u.Name}
		}
	}
	return db.record(ctx, t, o.CompanyID, e)
}
