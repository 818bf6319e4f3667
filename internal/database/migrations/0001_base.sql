-- Companies, keys, policies, assets, commands, budgets, and what replicas share.

-- +goose Up
CREATE TABLE companies (
    id TEXT NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    device_commands BOOLEAN NOT NULL,
    destructive_commands BOOLEAN NOT NULL,
    policy_changes BOOLEAN NOT NULL,
    provisioning BOOLEAN NOT NULL,
    oauth_connections BOOLEAN NOT NULL,
    inactive_after BIGINT NOT NULL, -- milliseconds
    enterprise TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX companies_slug ON companies (slug);
CREATE UNIQUE INDEX companies_enterprise ON companies (enterprise) WHERE enterprise <> '';

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    prefix TEXT NOT NULL,
    company_id TEXT NOT NULL REFERENCES companies (id),
    name TEXT NOT NULL,
    hash TEXT NOT NULL, -- SHA-256, hexadecimal
    permissions BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL DEFAULT 0,
    last_used_at BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX api_keys_prefix ON api_keys (prefix);
CREATE INDEX api_keys_company ON api_keys (company_id, created_at, id);

CREATE TABLE policies (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL, -- the name without case and outer spaces
    type TEXT NOT NULL,
    vr_only BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    description TEXT NOT NULL,
    labels TEXT NOT NULL, -- JSON array
    group_name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted BOOLEAN NOT NULL DEFAULT FALSE,
    push_version BIGINT NOT NULL DEFAULT 0,
    push_error TEXT NOT NULL DEFAULT '',
    pushed_at BIGINT NOT NULL DEFAULT 0,
    push_tried_at BIGINT NOT NULL DEFAULT 0,
    document TEXT NOT NULL -- JSON object
);
CREATE UNIQUE INDEX policies_name_key ON policies (company_id, name_key) WHERE NOT deleted;
CREATE INDEX policies_name ON policies (company_id, name, id) WHERE NOT deleted;
CREATE INDEX policies_updated ON policies (company_id, updated_at, id) WHERE NOT deleted;
CREATE INDEX policies_version ON policies (company_id, version, id) WHERE NOT deleted;
CREATE INDEX policies_behind ON policies (push_tried_at, id)
    WHERE type = 'PLATFORM' AND NOT deleted AND push_version <> version;

CREATE TABLE policy_revisions (
    policy_id TEXT NOT NULL REFERENCES policies (id),
    revision BIGINT NOT NULL,
    version BIGINT NOT NULL,
    saved_at BIGINT NOT NULL,
    saved_by_kind TEXT NOT NULL,
    saved_by_id TEXT NOT NULL,
    saved_by_name TEXT NOT NULL,
    name TEXT NOT NULL,
    origin TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    description TEXT NOT NULL,
    labels TEXT NOT NULL,
    group_name TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (policy_id, revision)
);

-- Which version of ours the vendor's version of a policy is.
CREATE TABLE policy_pushes (
    policy_id TEXT NOT NULL REFERENCES policies (id),
    vendor_version BIGINT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (policy_id, vendor_version)
);

-- An asset and the managed device that it is. policy_id and everything from
-- epoch on are the device's, and keep their last values when the device ends,
-- but for policy_id and device_name.
CREATE TABLE assets (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    status TEXT NOT NULL,
    policy_id TEXT NOT NULL DEFAULT '',
    identification TEXT NOT NULL,
    synced_at BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    named BOOLEAN NOT NULL DEFAULT FALSE, -- a person chose the identification
    serial_key TEXT NOT NULL DEFAULT '', -- without case and outer spaces, as is the brand
    brand_key TEXT NOT NULL DEFAULT '',
    stable_id TEXT NOT NULL DEFAULT '',
    epoch BIGINT NOT NULL DEFAULT 0,
    management TEXT NOT NULL DEFAULT '',
    ownership TEXT NOT NULL DEFAULT '',
    mode TEXT NOT NULL DEFAULT '',
    device_name TEXT NOT NULL DEFAULT '',
    applied_policy_id TEXT NOT NULL DEFAULT '',
    applied_version BIGINT NOT NULL DEFAULT 0,
    enrolled_at BIGINT NOT NULL DEFAULT 0,
    last_seen_at BIGINT NOT NULL DEFAULT 0,
    lost_mode BOOLEAN NOT NULL DEFAULT FALSE,
    push_reachable BOOLEAN NOT NULL DEFAULT FALSE,
    api_level BIGINT NOT NULL DEFAULT 0,
    custom_data TEXT NOT NULL DEFAULT '', -- JSON object
    tags TEXT NOT NULL DEFAULT '', -- JSON array
    specifications TEXT NOT NULL DEFAULT '', -- JSON object
    location TEXT NOT NULL DEFAULT '', -- JSON object
    status_report TEXT NOT NULL DEFAULT '' -- JSON object
);
-- One index for each order of the list, in the widest filter and in the one
-- that is asked most; narrower filters are merged from these (see assetpage.go).
CREATE INDEX assets_synced ON assets (company_id, synced_at, id);
CREATE INDEX assets_status_synced ON assets (company_id, status, synced_at, id);
CREATE INDEX assets_status_identification ON assets (company_id, status, identification, id);
CREATE INDEX assets_status_created ON assets (company_id, status, created_at, id);
CREATE INDEX assets_status ON assets (company_id, status, id);
CREATE INDEX assets_policy_synced ON assets (company_id, policy_id, status, synced_at, id) WHERE policy_id <> '';
CREATE INDEX assets_policy_identification ON assets (company_id, policy_id, status, identification, id) WHERE policy_id <> '';
CREATE INDEX assets_policy_created ON assets (company_id, policy_id, status, created_at, id) WHERE policy_id <> '';
CREATE INDEX assets_policy_status ON assets (company_id, policy_id, status, id) WHERE policy_id <> '';
CREATE INDEX assets_serial ON assets (company_id, serial_key) WHERE serial_key <> '';
CREATE INDEX assets_stable ON assets (company_id, stable_id) WHERE stable_id <> '';

-- How many assets there are of each kind, changed with the assets.
CREATE TABLE asset_counts (
    company_id TEXT NOT NULL,
    status TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (company_id, status, policy_id)
);
CREATE INDEX asset_counts_policy ON asset_counts (company_id, policy_id, status);

-- Every name that a device ever had at its channel, so that a late word about
-- one that ended enrols nothing.
CREATE TABLE device_names (
    company_id TEXT NOT NULL,
    name TEXT NOT NULL,
    asset_id TEXT NOT NULL, -- empty: the device ended before we met it
    observed_at BIGINT NOT NULL, -- the newest observation applied
    ended BOOLEAN NOT NULL,
    PRIMARY KEY (company_id, name)
);
CREATE INDEX device_names_asset ON device_names (asset_id);

-- Notifications that were applied.
CREATE TABLE messages (
    company_id TEXT NOT NULL,
    id TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);
CREATE INDEX messages_seen ON messages (seen_at);

CREATE TABLE commands (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    asset_id TEXT NOT NULL REFERENCES assets (id),
    epoch BIGINT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    feedback_at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    actor_prefix TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    ref TEXT NOT NULL,
    deadline BIGINT NOT NULL,
    policy_id TEXT NOT NULL,
    idempotency_ref TEXT NOT NULL
);
CREATE INDEX commands_history ON commands (asset_id, created_at, id);
CREATE UNIQUE INDEX commands_ref ON commands (ref) WHERE ref <> '';
CREATE UNIQUE INDEX commands_idempotency ON commands (idempotency_ref) WHERE idempotency_ref <> '';
CREATE INDEX commands_open ON commands (state, created_at, id) WHERE state IN ('PREPARED', 'SENT', 'UNCONFIRMED');
CREATE INDEX commands_deadline ON commands (deadline, id) WHERE state IN ('SENT', 'UNCONFIRMED') AND deadline > 0;
CREATE INDEX commands_open_of ON commands (asset_id) WHERE state IN ('PREPARED', 'SENT', 'UNCONFIRMED');

-- The ten a minute: one fixed window a key.
CREATE TABLE budgets (
    key TEXT NOT NULL PRIMARY KEY,
    used BIGINT NOT NULL,
    closes_at BIGINT NOT NULL
);
CREATE INDEX budgets_closes ON budgets (closes_at);

-- Which replica does what only one may do at a time.
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
