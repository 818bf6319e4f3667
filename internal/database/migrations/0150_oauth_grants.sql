-- Each consent has a grant of its own: its scopes and its tokens. A connection
-- is the sum of a person's grants to one application. A connection that exists
-- becomes one grant with the scopes that it has and the tokens that are in use.

-- +goose Up
CREATE TABLE oauth_grants (
    id TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES oauth_connections (id),
    scopes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX oauth_grants_connection ON oauth_grants (connection_id);
CREATE INDEX oauth_grants_created ON oauth_grants (created_at);
INSERT INTO oauth_grants (id, connection_id, scopes, created_at, last_used_at)
SELECT id, id, scopes, created_at, last_used_at
FROM oauth_connections WHERE revoked_at = 0;

-- A code carries the consent until it is redeemed. Codes live for a minute, so
-- the ones of the old form are dropped: those sign-ins start again.
DROP TABLE oauth_codes;
CREATE TABLE oauth_codes (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    client_id TEXT NOT NULL,
    client_name TEXT NOT NULL,
    scopes BIGINT NOT NULL,
    redirect_uri TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    resource TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    grant_id TEXT NOT NULL -- what it was redeemed for; empty: not redeemed yet
);
CREATE INDEX oauth_codes_expires ON oauth_codes (expires_at);
CREATE INDEX oauth_codes_person ON oauth_codes (user_id, client_id);

DELETE FROM oauth_tokens WHERE connection_id IN (SELECT id FROM oauth_connections WHERE revoked_at <> 0);
CREATE TABLE oauth_granted_tokens (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    grant_id TEXT NOT NULL REFERENCES oauth_grants (id),
    refresh BOOLEAN NOT NULL,
    scopes BIGINT NOT NULL, -- of an access token that the client asked to be narrower; 0: the grant's
    expires_at BIGINT NOT NULL,
    parent TEXT NOT NULL, -- the refresh token that it was swapped for; empty: a code
    rotated_at BIGINT NOT NULL, -- when a refresh token was first swapped; 0: not yet
    reuses BIGINT NOT NULL -- how often it was swapped again
);
INSERT INTO oauth_granted_tokens (hash, grant_id, refresh, scopes, expires_at, parent, rotated_at, reuses)
SELECT hash, connection_id, refresh, 0, expires_at, '', CASE WHEN used THEN 1 ELSE 0 END, 0 FROM oauth_tokens;
DROP TABLE oauth_tokens;
ALTER TABLE oauth_granted_tokens RENAME TO oauth_tokens;
CREATE INDEX oauth_tokens_expires ON oauth_tokens (expires_at);
CREATE INDEX oauth_tokens_grant ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_parent ON oauth_tokens (parent) WHERE parent <> '';
