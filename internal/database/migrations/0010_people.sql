-- Portal users, their sessions, and the OAuth clients that act for them.

-- +goose Up
CREATE TABLE users (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    rights BIGINT NOT NULL,
    policies TEXT NOT NULL, -- JSON array of ids, or null: all
    password_hash TEXT NOT NULL,
    disabled BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    last_sign_in_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (email);
CREATE INDEX users_company ON users (company_id, email);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    token_hash TEXT NOT NULL, -- SHA-256, hexadecimal
    user_id TEXT NOT NULL REFERENCES users (id),
    company_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    proved_at BIGINT NOT NULL,
    address TEXT NOT NULL,
    agent TEXT NOT NULL
);
CREATE UNIQUE INDEX sessions_token ON sessions (token_hash);
CREATE INDEX sessions_user ON sessions (user_id, created_at);
CREATE INDEX sessions_created ON sessions (created_at);

CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL, -- JSON array
    dynamic BOOLEAN NOT NULL,
    secret_hash TEXT NOT NULL, -- SHA-256, hexadecimal; empty: a public client
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_clients_expires ON oauth_clients (expires_at) WHERE expires_at <> 0;

CREATE TABLE oauth_connections (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    client_id TEXT NOT NULL,
    client_name TEXT NOT NULL,
    scopes BIGINT NOT NULL,
    frozen BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX oauth_connections_live ON oauth_connections (user_id, client_id) WHERE revoked_at = 0;
CREATE INDEX oauth_connections_company ON oauth_connections (company_id, created_at, id);

CREATE TABLE oauth_codes (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    connection_id TEXT NOT NULL REFERENCES oauth_connections (id),
    client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    resource TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    used BOOLEAN NOT NULL
);
CREATE INDEX oauth_codes_expires ON oauth_codes (expires_at);

CREATE TABLE oauth_tokens (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    connection_id TEXT NOT NULL REFERENCES oauth_connections (id),
    refresh BOOLEAN NOT NULL,
    expires_at BIGINT NOT NULL,
    used BOOLEAN NOT NULL -- a refresh token that was swapped already
);
CREATE INDEX oauth_tokens_expires ON oauth_tokens (expires_at);
