-- Proposed changes of policies: the reviewed bytes, and how applying them went.

-- +goose Up
CREATE TABLE proposals (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    capability TEXT NOT NULL,
    status TEXT NOT NULL, -- never EXPIRED: that is PENDING read after expires_at
    impact TEXT NOT NULL,
    title TEXT NOT NULL,
    summary TEXT NOT NULL,
    policy_id TEXT NOT NULL REFERENCES policies (id), -- of a copy: its source
    target_name TEXT NOT NULL,
    base_version BIGINT NOT NULL,
    next_policy_id TEXT NOT NULL, -- what applying writes
    next_name TEXT NOT NULL,
    next_name_key TEXT NOT NULL, -- empty unless the name is new to the policy
    owner_kind TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    owner_user_id TEXT NOT NULL,
    owner_name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    propose_ref TEXT NOT NULL,
    apply_ref TEXT NOT NULL DEFAULT '',
    holder TEXT NOT NULL DEFAULT '', -- who applies it or looks after it
    look_at BIGINT NOT NULL DEFAULT 0, -- when its outcome is to be looked at; 0: it is settled
    looks BIGINT NOT NULL DEFAULT 0,
    version BIGINT NOT NULL DEFAULT 0, -- saved by it
    failure TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL DEFAULT '',
    request TEXT NOT NULL, -- JSON object
    fields TEXT NOT NULL, -- JSON array: the reviewed change list
    next_document TEXT NOT NULL -- JSON object
);
CREATE INDEX proposals_policy ON proposals (company_id, policy_id, created_at, id);
CREATE UNIQUE INDEX proposals_propose_ref ON proposals (company_id, propose_ref) WHERE propose_ref <> '';
CREATE INDEX proposals_apply_ref ON proposals (company_id, apply_ref) WHERE apply_ref <> '';
CREATE INDEX proposals_look ON proposals (look_at, id) WHERE look_at > 0;
-- One change of a policy, and of a name, is under way at a time.
CREATE UNIQUE INDEX proposals_executing ON proposals (next_policy_id) WHERE status = 'EXECUTING';
CREATE UNIQUE INDEX proposals_naming ON proposals (company_id, next_name_key) WHERE status = 'EXECUTING' AND next_name_key <> '';
