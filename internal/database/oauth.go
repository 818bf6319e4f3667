package database

import (
	"context"
	"encoding/hex"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
)

func scanOAuthClient(r row) (c oauth.Client, err error) {
	var secret string
	if err := r.Scan(&c.ID, &c.Name, encoded{&c.RedirectURIs}, &c.Dynamic, &secret, at(&c.CreatedAt), at(&c.ExpiresAt)); err != nil ||
		secret == "" {
		return c, err
	}
	return c, digest(c.SecretHash[:]).Scan(secret)
}

// OAuthClient returns a client, also one that has expired, or fault.NotFound.
func (db *DB) OAuthClient(ctx context.Context, id string) (oauth.Client, error) {
	return find(ctx, db.read(), "client", scanOAuthClient, `SELECT id, name, redirect_uris, dynamic, secret_hash, created_at, expires_at
		FROM oauth_clients WHERE id = ?`, id)
}

// SaveOAuthClient adds or replaces a client.
func (db *DB) SaveOAuthClient(ctx context.Context, c oauth.Client) error {
	secret := ""
	if c.Confidential() {
		secret = hex.EncodeToString(c.SecretHash[:])
	}
	return db.exec(ctx, `INSERT INTO oauth_clients (id, name, redirect_uris, dynamic, secret_hash, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, redirect_uris = excluded.redirect_uris, expires_at = excluded.expires_at`,
		c.ID, c.Name, encode(c.RedirectURIs), c.Dynamic, secret, millis(c.CreatedAt), millis(c.ExpiresAt))
}

// SaveCode records a consent with its code.
func (db *DB) SaveCode(ctx context.Context, c oauth.AuthorizationCode) error {
	return db.statement(ctx, func(ctx context.Context, t conn) error {
		return t.Insert(ctx, "oauth_codes", codeColumns+", hash", append(codeFields(&codeRow{AuthorizationCode: c}), digest(c.Hash[:])))
	})
}

// ConsentedScopes returns what the user lets the client do already.
func (db *DB) ConsentedScopes(ctx context.Context, userID, clientID string) (access.Permission, error) {
	scopes, _, err := maybe(value[access.Permission](ctx, db.read(), `SELECT COALESCE(`+grantedScopes+`, 0) FROM oauth_connections o
		WHERE o.user_id = ? AND o.client_id = ? AND o.revoked_at = 0`, userID, clientID))
	return scopes, err
}

// codeRow is a code with the grant that it was redeemed for; empty: none yet.
type codeRow struct {
	oauth.AuthorizationCode
	grantID string
}

const codeColumns = `k.company_id, k.user_id, k.client_id, k.client_name, k.scopes, k.redirect_uri, k.code_challenge, k.resource, k.expires_at, k.grant_id`

func codeFields(c *codeRow) []any {
	return []any{&c.CompanyID, &c.UserID, &c.ClientID, &c.ClientName, &c.Scopes, &c.RedirectURI, &c.CodeChallenge, &c.Resource,
		at(&c.ExpiresAt), &c.grantID}
}

// findCode returns a code of a user who is not disabled.
func findCode(ctx context.Context, t *tx, hash, lock string) (codeRow, error) {
	return find(ctx, t, "code", into(codeFields), `SELECT `+codeColumns+`
		FROM oauth_codes k WHERE k.hash = ? AND EXISTS (SELECT 1 FROM users u WHERE u.id = k.user_id AND NOT u.disabled)`+lock, hash)
}

// refusedSecret returns the fault of a code or token that is unknown, expired or used.
func refusedSecret() error { return fault.New(fault.Refused, "unknown, expired or used") }

// connectionOfClient is the condition of the connection of a user with a client.
const connectionOfClient = `o.user_id = ? AND o.client_id = ? AND o.revoked_at = 0`

// RedeemCode makes a grant of a code, once. A second attempt ends the grant:
// another party has the code.
func (db *DB) RedeemCode(ctx context.Context, hash access.SecretHash, take func(oauth.AuthorizationCode) error,
	issue oauth.Tokens) (oauth.Connection, error) {
	text := hex.EncodeToString(hash[:])
	var made oauth.Connection
	err := db.refusing(ctx, func(ctx context.Context, t *tx) (refused, err error) {
		seen, err := findCode(ctx, t, text, "")
		if err != nil {
			return nil, orRefused(err)
		}
		// The connection is locked before its codes and grants, everywhere.
		known, err := lockConnection(ctx, t, connectionOfClient, seen.UserID, seen.ClientID)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		code, err := findCode(ctx, t, text, t.lock())
		switch {
		case err != nil:
			return nil, orRefused(err)
		case code.grantID != "":
			return refusedSecret(), db.replay(ctx, t, known, code)
		case !db.now().Before(code.ExpiresAt):
			return nil, refusedSecret()
		}
		if err := take(code.AuthorizationCode); err != nil {
			return nil, err
		}
		made, err = db.grantCode(ctx, t, code, text, issue)
		return nil, err
	})
	return made, err
}

// grantCode makes the grant of a code, with tokens: fault.Forbidden while changes in the portal are stopped, as the consent
// is one.
func (db *DB) grantCode(ctx context.Context, t *tx, code codeRow, hash string, issue oauth.Tokens) (oauth.Connection, error) {
	t.check(refuseStopped(ctx, t, code.CompanyID, "connect the application again once they are resumed"))
	made, err := db.addGrant(ctx, t, code.AuthorizationCode)
	t.check(err)
	t.do(ctx, `UPDATE oauth_codes SET grant_id = ? WHERE hash = ?`, made.GrantID, hash)
	return made, issueTokens(ctx, t, made.GrantID, "", 0, issue)
}

// replay ends the grant of a code that is used again. known is the connection of the
// code's client, locked; zero: there was none before the code was locked.
func (db *DB) replay(ctx context.Context, t *tx, known oauth.Connection, code codeRow) (err error) {
	if known.ID == "" { // the first use made it while this one waited for the code
		if known, err = lockConnection(ctx, t, connectionOfClient, code.UserID, code.ClientID); err != nil {
			return orRefused(err)
		}
	}
	return db.endGrant(ctx, t, known, code.grantID, "an authorization code was used twice")
}

func orRefused(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return refusedSecret()
	}
	return err
}

// refreshRow is a refresh token with its grant's scopes.
type refreshRow struct {
	clientID, grantID           string
	granted                     access.Permission
	expires, rotated, reuses    int64
	userDisabled, successorUsed bool
	siblingUsed                 bool
}

func refreshFields(s *refreshRow) []any {
	return []any{&s.clientID, &s.grantID, &s.granted, &s.expires, &s.rotated, &s.reuses, &s.userDisabled, &s.successorUsed, &s.siblingUsed}
}

// theft reports whether the use of a token cannot be a client's: of a token that was
// rotated, unless it is a parallel or repeated request; and of a token beside another of
// the same parent that was rotated. A client goes on with one of the tokens that parallel
// requests got; where two are used, two hold them.
func (s refreshRow) theft(now int64) bool {
	return s.siblingUsed || s.rotated != 0 && (now-s.rotated > oauth.ReuseWindow.Milliseconds() ||
		s.reuses >= oauth.MaxReuses || s.successorUsed)
}

// readRefresh returns the refresh token with a hash, or fault.NotFound.
func readRefresh(ctx context.Context, t *tx, hash string) (refreshRow, error) {
	return find(ctx, t, "token", into(refreshFields),
		`SELECT o.client_id, g.id, g.scopes, k.expires_at, k.rotated_at, k.reuses, u.disabled,
			EXISTS (SELECT 1 FROM oauth_tokens n WHERE n.parent = k.hash AND n.parent <> '' AND n.refresh AND n.rotated_at > 0),
			EXISTS (SELECT 1 FROM oauth_tokens n WHERE n.parent = k.parent AND n.parent <> '' AND n.refresh AND n.hash <> k.hash
				AND n.rotated_at > 0)
		FROM oauth_tokens k JOIN oauth_grants g ON g.id = k.grant_id JOIN oauth_connections o ON o.id = g.connection_id
		JOIN users u ON u.id = o.user_id WHERE k.hash = ? AND k.refresh`, hash)
}

// checkRefresh decides whether a client may use a refresh token of a locked connection now,
// in milliseconds, for the wanted scopes: fault.Refused or fault.Forbidden if not. It ends
// the grant of a token that another party has, and reports that as stolen.
func (db *DB) checkRefresh(ctx context.Context, t *tx, c oauth.Connection, s refreshRow, clientID string, wanted access.Permission,
	now int64) (stolen bool, err error) {
	switch {
	case s.userDisabled || s.clientID != clientID:
		return false, refusedSecret()
	case s.theft(now):
		return true, db.endGrant(ctx, t, c, s.grantID, "a refresh token was used twice")
	case now >= s.expires || !c.RevokedAt.IsZero():
		return false, refusedSecret()
	case !s.granted.WithImplied().Has(wanted):
		return false, fault.New(fault.Forbidden, "the scopes are more than those granted")
	}
	return false, nil
}

// RotateToken swaps a refresh token for new tokens.
func (db *DB) RotateToken(ctx context.Context, refresh access.SecretHash, clientID string, wanted access.Permission,
	issue oauth.Tokens) (oauth.Connection, error) {
	text := hex.EncodeToString(refresh[:])
	var connection oauth.Connection
	err := db.refusing(ctx, func(ctx context.Context, t *tx) (refused, err error) {
		// The connection's lock puts the refreshes of all its grants in a row.
		connection, err = lockConnection(ctx, t,
			`o.id = (SELECT g.connection_id FROM oauth_tokens k JOIN oauth_grants g ON g.id = k.grant_id
			WHERE k.hash = ? AND k.refresh)`, text)
		if err != nil {
			return nil, orRefused(err)
		}
		s, err := readRefresh(ctx, t, text)
		if err != nil {
			return nil, orRefused(err)
		}
		now := millis(db.now())
		if stolen, err := db.checkRefresh(ctx, t, connection, s, clientID, wanted, now); stolen || err != nil {
			return refusedSecret(), err
		}
		t.do(ctx, `UPDATE oauth_tokens SET reuses = CASE WHEN rotated_at = 0 THEN 0 ELSE reuses + 1 END,
				rotated_at = CASE WHEN rotated_at = 0 THEN ? ELSE rotated_at END WHERE hash = ?`, now, text)
		connection.GrantID, connection.Scopes = s.grantID, s.granted
		if wanted != 0 {
			connection.Scopes = wanted
		}
		return nil, issueTokens(ctx, t, s.grantID, text, wanted, issue)
	})
	return connection, err
}

// issueTokens keeps a pair that was made for a refresh token, or a code. The
// access token has the narrower scopes, or 0: the grant's.
func issueTokens(ctx context.Context, t *tx, grantID, parent string, scopes access.Permission, issue oauth.Tokens) error {
	return t.Exec(ctx, `INSERT INTO oauth_tokens (hash, grant_id, refresh, scopes, expires_at, parent, rotated_at, reuses)
		VALUES (?, ?, FALSE, ?, ?, ?, 0, 0), (?, ?, TRUE, 0, ?, ?, 0, 0)`,
		hex.EncodeToString(issue.Access[:]), grantID, int64(scopes), millis(issue.AccessExpires), parent,
		hex.EncodeToString(issue.Refresh[:]), grantID, millis(issue.RefreshExpires), parent)
}

// RevokeToken ends the grant of a client's token.
func (db *DB) RevokeToken(ctx context.Context, token access.SecretHash, clientID string) error {
	text := hex.EncodeToString(token[:])
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		o, err := lockConnection(ctx, t, `o.client_id = ? AND o.id = (SELECT g.connection_id FROM oauth_tokens k
			JOIN oauth_grants g ON g.id = k.grant_id WHERE k.hash = ?)`, clientID, text)
		t.check(err)
		id, err := find(ctx, t, "token", scanValue[string], `SELECT grant_id FROM oauth_tokens WHERE hash = ?`, text)
		t.check(err)
		return db.endGrant(ctx, t, o, id, "the application gave its token back")
	})
}
