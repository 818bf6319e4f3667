-- Calls of API keys and connections that a person must authorize one by one. Nothing
-- in a row is secret: of the arguments it has a keyed digest alone.

-- +goose Up
CREATE TABLE authorizations (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    command TEXT NOT NULL,
    digest TEXT NOT NULL, -- of all that it is bound to
    caller_kind TEXT NOT NULL,
    caller_id TEXT NOT NULL,
    caller_prefix TEXT NOT NULL,
    caller_name TEXT NOT NULL,
    caller_user TEXT NOT NULL, -- of a connection, or who made the key; empty: the operator did
    reason TEXT NOT NULL,
    ticket TEXT NOT NULL,
    from_policy TEXT NOT NULL, -- of a change of policy, with the versions that were compared
    from_version BIGINT NOT NULL,
    to_policy TEXT NOT NULL,
    to_version BIGINT NOT NULL,
    state TEXT NOT NULL, -- WAITING, APPROVED, DECLINED, USED
    created_at BIGINT NOT NULL,
    decided_at BIGINT NOT NULL DEFAULT 0,
    decided_by TEXT NOT NULL DEFAULT '', -- a user's id
    decided_by_name TEXT NOT NULL DEFAULT '',
    passkey_id TEXT NOT NULL DEFAULT '', -- the user's, which signed the decision
    used_at BIGINT NOT NULL DEFAULT 0,
    command_id TEXT NOT NULL DEFAULT ''
);
CREATE INDEX authorizations_call ON authorizations (company_id, digest, created_at);
CREATE INDEX authorizations_waiting ON authorizations (company_id, caller_kind, caller_id, created_at) WHERE state = 'WAITING';
CREATE INDEX authorizations_created ON authorizations (created_at);
CREATE INDEX authorizations_list ON authorizations (company_id, created_at, id);
