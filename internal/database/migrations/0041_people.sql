-- Ways to sign in, and who switched the company's settings for AI agents.

-- +goose Up
CREATE TABLE gate_switches (
    company_id TEXT NOT NULL REFERENCES companies (id),
    gate TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    at BIGINT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    PRIMARY KEY (company_id, gate)
);

-- A company's own OpenID Connect provider.
CREATE TABLE identity_providers (
    company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
    name TEXT NOT NULL,
    issuer TEXT NOT NULL,
    client_id TEXT NOT NULL,
    client_secret TEXT NOT NULL, -- sealed by the service, base64
    enabled BOOLEAN NOT NULL,
    creates_users BOOLEAN NOT NULL, -- of verified addresses that are not known yet
    role TEXT NOT NULL, -- of users that are created so
    updated_at BIGINT NOT NULL
);

-- Which provider people with an address of a domain sign in with.
CREATE TABLE identity_domains (
    domain TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id)
);
CREATE INDEX identity_domains_company ON identity_domains (company_id, domain);

-- Who a user is at the company's provider.
CREATE TABLE identities (
    company_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);

CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY, -- the credential's id, hexadecimal
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    credential TEXT NOT NULL, -- JSON
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX passkeys_user ON passkeys (user_id, created_at, id);

CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL REFERENCES users (id),
    hash TEXT NOT NULL, -- SHA-256, hexadecimal
    PRIMARY KEY (user_id, hash)
);

-- A sign-in, an invitation or a proof of identity that is under way: the one
-- who brings the token goes on with it, once.
CREATE TABLE signin_steps (
    hash TEXT NOT NULL PRIMARY KEY, -- SHA-256, hexadecimal
    kind TEXT NOT NULL,
    company_id TEXT NOT NULL,
    user_id TEXT NOT NULL, -- empty: not known yet
    data TEXT NOT NULL, -- JSON
    expires_at BIGINT NOT NULL
);
CREATE INDEX signin_steps_expires ON signin_steps (expires_at);
CREATE INDEX signin_steps_user ON signin_steps (user_id, kind) WHERE user_id <> '';
