package database

import (
	"context"
	"encoding/hex"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"
)

func scanOAuthClient(r row) (c access.OAuthClient, err error) {
	var uris, secret string
	var created, expires int64
	if err := r.Scan(&c.ID, &c.Name, &uris, &c.Dynamic, &secret, &created, &expires); err != nil {
		return c, err
	}
	c.CreatedAt, c.ExpiresAt = instant(created), instant(expires)
	if _, err := hex.Decode(c.SecretHash[:], []byte(secret)); err != nil {
		return c, err
	}
	return c, decode(uris, &c.RedirectURIs)
}

// OAuthClient finds a client, also one whose time has run out.
func (db *DB) OAuthClient(ctx context.Context, id string) (access.OAuthClient, error) {
	c, err := one(ctx, db.read(), scanOAuthClient, `SELECT id, name, redirect_uris, dynamic, secret_hash, created_at, expires_at
		FROM oauth_clients WHERE id = ?`, id)
	return found(c, err, "client")
}

// SaveOAuthClient adds or replaces a client.
func (db *DB) SaveOAuthClient(ctx context.Context, c access.OAuthClient) error {
	secret := ""
	if c.Confidential() {
		secret = hex.EncodeToString(c.SecretHash[:])
	}
	return db.statement(ctx, func(ctx context.Context, t conn) error {
		_, err := t.exec(ctx, `INSERT INTO oauth_clients (id, name, redirect_uris, dynamic, secret_hash, created_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, redirect_uris = excluded.redirect_uris,
				expires_at = excluded.expires_at`,
			c.ID, c.Name, encode(c.RedirectURIs), c.Dynamic, secret, millis(c.CreatedAt), millis(c.ExpiresAt))
		return err
	})
}

// Connect records a consent and its code.
func (db *DB) Connect(ctx context.Context, c access.OAuthConnection, code access.AuthorizationCode) (access.OAuthConnection, error) {
	var connected access.OAuthConnection
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		id := name.NewID()
		if _, err := t.exec(ctx, `INSERT INTO oauth_connections (id, company_id, user_id, client_id, client_name, scopes, frozen,
				created_at, last_used_at, revoked_at)
			VALUES (?, ?, ?, ?, ?, ?, FALSE, ?, 0, 0)
			ON CONFLICT (user_id, client_id) WHERE revoked_at = 0
			DO UPDATE SET scopes = excluded.scopes, client_name = excluded.client_name`,
			id, c.CompanyID, c.UserID, c.ClientID, c.ClientName, int64(c.Scopes), millis(db.now())); err != nil {
			return err
		}
		var err error
		if connected, err = one(ctx, t, scanConnection, `SELECT `+connectionColumns+` FROM oauth_connections o
			WHERE o.user_id = ? AND o.client_id = ? AND o.revoked_at = 0`, c.UserID, c.ClientID); err != nil {
			return err
		}
		// A registration that somebody consented to stays; a document is fetched anew in its time.
		if _, err := t.exec(ctx, `UPDATE oauth_clients SET expires_at = 0 WHERE id = ? AND dynamic`, c.ClientID); err != nil {
			return err
		}
		_, err = t.exec(ctx, `INSERT INTO oauth_codes (hash, connection_id, client_id, redirect_uri, code_challenge, resource,
				expires_at, used)
			VALUES (?, ?, ?, ?, ?, ?, ?, FALSE)`, hex.EncodeToString(code.Hash[:]), connected.ID, code.ClientID,
			code.RedirectURI, code.CodeChallenge, code.Resource, millis(code.ExpiresAt))
		if err != nil {
			return err
		}
		return db.recordConsent(ctx, t, connected)
	})
	return connected, err
}

// secretRow is a code or a refresh token with its connection.
type secretRow struct {
	code       access.AuthorizationCode
	connection access.OAuthConnection
	used       bool
}

// userEnabled keeps the connections of people who are shut out.
const userEnabled = `EXISTS (SELECT 1 FROM users u WHERE u.id = o.user_id AND NOT u.disabled)`

// RedeemCode takes a code for tokens, once. A second attempt revokes the
// connection: somebody else has the code.
func (db *DB) RedeemCode(ctx context.Context, hash access.SecretHash, take func(access.AuthorizationCode) error, issue access.OAuthTokens) (access.OAuthConnection, error) {
	text := hex.EncodeToString(hash[:])
	scan := func(r row) (s secretRow, err error) {
		var o connectionRow
		var expires int64
		c := &s.code
		fields := append([]any{&c.ConnectionID, &c.ClientID, &c.RedirectURI, &c.CodeChallenge, &c.Resource, &expires, &s.used}, o.fields()...)
		err = r.Scan(fields...)
		c.Hash, c.ExpiresAt, s.connection = hash, instant(expires), o.value()
		return s, err
	}
	return db.exchange(ctx, issue, func(ctx context.Context, t *tx) (secretRow, error) {
		s, err := one(ctx, t, scan, `SELECT k.connection_id, k.client_id, k.redirect_uri, k.code_challenge, k.resource,
				k.expires_at, k.used, `+connectionColumns+`
			FROM oauth_codes k JOIN oauth_connections o ON o.id = k.connection_id
			WHERE k.hash = ? AND `+userEnabled+t.lock(), text)
		if s, err = found(s, err, "code"); err != nil || s.used {
			return s, err
		}
		if err := take(s.code); err != nil {
			return s, err
		}
		_, err = t.exec(ctx, `UPDATE oauth_codes SET used = TRUE WHERE hash = ?`, text)
		return s, err
	})
}

// RotateToken swaps a refresh token for new tokens, once.
func (db *DB) RotateToken(ctx context.Context, refresh access.SecretHash, clientID string, issue access.OAuthTokens) (access.OAuthConnection, error) {
	text := hex.EncodeToString(refresh[:])
	scan := func(r row) (s secretRow, err error) {
		var o connectionRow
		var expires int64
		err = r.Scan(append([]any{&expires, &s.used}, o.fields()...)...)
		s.code.ExpiresAt, s.connection = instant(expires), o.value()
		return s, err
	}
	return db.exchange(ctx, issue, func(ctx context.Context, t *tx) (secretRow, error) {
		s, err := one(ctx, t, scan, `SELECT k.expires_at, k.used, `+connectionColumns+`
			FROM oauth_tokens k JOIN oauth_connections o ON o.id = k.connection_id
			WHERE k.hash = ? AND k.refresh AND `+userEnabled+t.lock(), text)
		if s, err = found(s, err, "token"); err != nil || s.used {
			return s, err
		}
		if s.connection.ClientID != clientID {
			return s, fault.New(fault.Refused, "the token is another client's")
		}
		_, err = t.exec(ctx, `UPDATE oauth_tokens SET used = TRUE WHERE hash = ?`, text)
		return s, err
	})
}

// exchange swaps what find finds for new tokens. What was used before revokes
// its connection, in the same transaction.
func (db *DB) exchange(ctx context.Context, issue access.OAuthTokens, find func(context.Context, *tx) (secretRow, error)) (access.OAuthConnection, error) {
	refused := fault.New(fault.Refused, "unknown, expired or used")
	var connection access.OAuthConnection
	var replayed bool
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		replayed = false
		s, err := find(ctx, t)
		if fault.CodeOf(err) == fault.NotFound {
			return refused
		}
		if err != nil {
			return err
		}
		if s.used {
			replayed = true
			return db.revokeRecorded(ctx, t, s.connection.ID, "a code or a refresh token was used twice")
		}
		if !db.now().Before(s.code.ExpiresAt) || !s.connection.RevokedAt.IsZero() {
			return refused
		}
		connection = s.connection
		return issueTokens(ctx, t, connection.ID, issue)
	})
	if err == nil && replayed {
		err = refused
	}
	return connection, err
}

func issueTokens(ctx context.Context, t *tx, connectionID string, issue access.OAuthTokens) error {
	_, err := t.exec(ctx, `INSERT INTO oauth_tokens (hash, connection_id, refresh, expires_at, used)
		VALUES (?, ?, FALSE, ?, FALSE), (?, ?, TRUE, ?, FALSE)`,
		hex.EncodeToString(issue.Access[:]), connectionID, millis(issue.AccessExpires),
		hex.EncodeToString(issue.Refresh[:]), connectionID, millis(issue.RefreshExpires))
	return err
}

// RevokeToken ends the connection of a client's token.
func (db *DB) RevokeToken(ctx context.Context, token access.SecretHash, clientID string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		id, err := value[string](ctx, t, `SELECT o.id FROM oauth_tokens k JOIN oauth_connections o ON o.id = k.connection_id
			WHERE k.hash = ? AND o.client_id = ?`, hex.EncodeToString(token[:]), clientID)
		if id, err = found(id, err, "token"); err != nil {
			return err
		}
		return db.revokeRecorded(ctx, t, id, "the application gave its token back")
	})
}

func revoke(ctx context.Context, c conn, connectionID string, at int64) error {
	_, err := c.exec(ctx, `UPDATE oauth_connections SET revoked_at = ? WHERE id = ? AND revoked_at = 0`, at, connectionID)
	return err
}
