-- The tables as the migrations leave them. Written by go test -run Schema -update.
-- Schema 56; programs from 50 may write.

CREATE TABLE activity (
    company_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    id TEXT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    actor_user_id TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    actor_prefix TEXT NOT NULL,
    area TEXT NOT NULL,
    action TEXT NOT NULL,
    target_kind TEXT NOT NULL,
    target_id TEXT NOT NULL,
    target_name TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reference TEXT NOT NULL,
    changes TEXT NOT NULL, -- JSON array; empty: none
    request_id TEXT NOT NULL,
    address TEXT NOT NULL,
    client TEXT NOT NULL,
    seq BIGINT NOT NULL DEFAULT 0, -- the place in the company's chain; 0: not sealed yet
    hash TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', ticket TEXT NOT NULL DEFAULT '', proof TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (company_id, at, id)
);
CREATE INDEX activity_actor ON activity (company_id, actor_kind, at, id);
CREATE INDEX activity_area ON activity (company_id, area, at, id) WHERE area <> 'command';
CREATE UNIQUE INDEX activity_chain ON activity (company_id, seq) WHERE seq > 0;
CREATE INDEX activity_target ON activity (company_id, target_id, at, id);
CREATE INDEX activity_trouble ON activity (company_id, outcome, at, id) WHERE outcome <> 'OK';
CREATE INDEX activity_unsealed ON activity (company_id, at, id) WHERE seq = 0;
CREATE TABLE activity_heads (
    company_id TEXT NOT NULL PRIMARY KEY,
    first_seq BIGINT NOT NULL,
    anchor TEXT NOT NULL,
    last_seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    signature TEXT NOT NULL
, proved_from BIGINT NOT NULL DEFAULT 0);
CREATE TABLE agent_deliveries (
    command_id TEXT PRIMARY KEY,
    device_id TEXT NOT NULL REFERENCES agent_devices (id),
    type TEXT NOT NULL,
    args TEXT NOT NULL, -- JSON object
    created_at BIGINT NOT NULL,
    deadline BIGINT NOT NULL,
    final BOOLEAN NOT NULL,
    lease_until BIGINT NOT NULL,
    accepted_at BIGINT NOT NULL
, held_until BIGINT NOT NULL DEFAULT 0, number BIGINT NOT NULL DEFAULT 0);
CREATE INDEX agent_deliveries_deadline ON agent_deliveries (deadline) WHERE deadline <> 0;
CREATE INDEX agent_deliveries_device ON agent_deliveries (device_id, created_at, command_id);
CREATE INDEX agent_deliveries_due ON agent_deliveries (lease_until);
CREATE TABLE agent_devices (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL, -- empty until the inventory has it
    epoch BIGINT NOT NULL,
    role TEXT NOT NULL,
    key_alg TEXT NOT NULL,
    key_spki TEXT NOT NULL,
    last_sequence BIGINT NOT NULL,
    state TEXT NOT NULL,
    wiped BOOLEAN NOT NULL,
    capabilities TEXT NOT NULL, -- JSON array; null: not told yet
    push_token TEXT NOT NULL,
    open_deliveries BIGINT NOT NULL,
    erasing_at BIGINT NOT NULL, -- when it set out to erase itself; 0: it did not
    enrolled_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
, superseded BOOLEAN NOT NULL DEFAULT FALSE, command_alg TEXT NOT NULL DEFAULT 'ed25519', agent_version TEXT NOT NULL DEFAULT '', agent_package TEXT NOT NULL DEFAULT '', agent_code BIGINT NOT NULL DEFAULT 0, daily_since BIGINT NOT NULL DEFAULT 0, orphaned BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX agent_devices_asset ON agent_devices (asset_id, epoch);
CREATE INDEX agent_devices_build ON agent_devices (company_id, agent_version, state);
CREATE INDEX agent_devices_erasing ON agent_devices (erasing_at) WHERE erasing_at <> 0;
CREATE INDEX agent_devices_orphans ON agent_devices (id) WHERE orphaned;
CREATE TABLE agent_pauses (
    company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
    at BIGINT NOT NULL
);
CREATE TABLE agent_release_parts (
    sha256 TEXT NOT NULL,
    number BIGINT NOT NULL, -- from 0
    data TEXT NOT NULL, -- base64
    PRIMARY KEY (sha256, number)
);
CREATE TABLE agent_releases (
    version TEXT NOT NULL,
    package TEXT NOT NULL,
    code BIGINT NOT NULL,
    sha256 TEXT NOT NULL, -- of the file, hexadecimal
    size BIGINT NOT NULL, -- bytes
    signer TEXT NOT NULL, -- SHA-256 of the signer's certificate or key, base64url
    added_at BIGINT NOT NULL,
    PRIMARY KEY (package, version)
);
CREATE UNIQUE INDEX agent_releases_sha256 ON agent_releases (sha256);
CREATE INDEX agent_releases_version ON agent_releases (version);
CREATE TABLE agent_rollouts (
    version TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    reason TEXT NOT NULL, -- why it is paused
    goal BIGINT NOT NULL, -- percent of the devices
    ring BIGINT NOT NULL, -- percent of the devices that the present ring ends with; 0: none has begun
    upto BIGINT NOT NULL, -- the highest place of a device in the present ring; -1: none has begun
    began_at BIGINT NOT NULL,
    ring_at BIGINT NOT NULL,
    resumed_at BIGINT NOT NULL, -- devices that were lost before do not pause it again
    watched_from BIGINT NOT NULL, -- since when the service has looked without a break
    watched_at BIGINT NOT NULL -- when it last looked
);
CREATE TABLE agent_tokens (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    company_id TEXT NOT NULL REFERENCES companies (id),
    policy_id TEXT NOT NULL REFERENCES policies (id),
    expires_at BIGINT NOT NULL,
    device_id TEXT NOT NULL, -- who spent it; empty: nobody
    spent_at BIGINT NOT NULL
, asset_id TEXT NOT NULL DEFAULT '', epoch BIGINT NOT NULL DEFAULT 0, code_id TEXT NOT NULL DEFAULT '');
CREATE INDEX agent_tokens_asset ON agent_tokens (asset_id) WHERE asset_id <> '';
CREATE INDEX agent_tokens_code ON agent_tokens (code_id) WHERE code_id <> '';
CREATE INDEX agent_tokens_expires ON agent_tokens (expires_at);
CREATE TABLE agent_updates (
    device_id TEXT NOT NULL REFERENCES agent_devices (id),
    version TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    state TEXT NOT NULL,
    detail TEXT NOT NULL,
    daily BOOLEAN NOT NULL, -- in touch every day before it began
    offered_at BIGINT NOT NULL,
    began_at BIGINT NOT NULL, -- 0: not begun
    ended_at BIGINT NOT NULL, -- 0: not ended
    PRIMARY KEY (device_id, version)
);
CREATE INDEX agent_updates_failed ON agent_updates (state, device_id) WHERE state IN ('FAILED', 'WENT_BACK');
CREATE INDEX agent_updates_version ON agent_updates (version, device_id);
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
, policies TEXT NOT NULL DEFAULT 'null', networks TEXT NOT NULL DEFAULT '', devices_per_day BIGINT NOT NULL DEFAULT 0, expiry_told BIGINT NOT NULL DEFAULT 0);
CREATE INDEX api_keys_company ON api_keys (company_id, created_at, id);
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE expiry_told = 0 AND revoked_at = 0 AND expires_at > 0;
CREATE UNIQUE INDEX api_keys_prefix ON api_keys (prefix);
CREATE TABLE applied_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    applied_at BIGINT NOT NULL
);
CREATE TABLE asset_apps (
    asset_id TEXT NOT NULL PRIMARY KEY REFERENCES assets (id),
    since BIGINT NOT NULL, -- when they changed last
    apps TEXT NOT NULL -- JSON array
);
CREATE TABLE asset_contacts (
    asset_id TEXT NOT NULL,
    company_id TEXT NOT NULL,
    status TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (asset_id),
    FOREIGN KEY (asset_id, company_id, status, policy_id) REFERENCES assets (id, company_id, status, policy_id)
        ON UPDATE CASCADE ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX asset_contacts_policy ON asset_contacts (company_id, policy_id, status, at, asset_id) WHERE policy_id <> '';
CREATE INDEX asset_contacts_status ON asset_contacts (company_id, status, at, asset_id);
CREATE TABLE asset_counts (
    company_id TEXT NOT NULL,
    status TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (company_id, status, policy_id)
);
CREATE INDEX asset_counts_policy ON asset_counts (company_id, policy_id, status);
CREATE TABLE asset_edits (
    asset_id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    ref TEXT NOT NULL, -- the request id, of all assets of a job the same
    at BIGINT NOT NULL,
    before TEXT NOT NULL, -- JSON: what people said of the asset
    after TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX asset_edits_at ON asset_edits (at, asset_id);
CREATE INDEX asset_edits_ref ON asset_edits (ref, asset_id);
CREATE TABLE asset_places (
    asset_id TEXT NOT NULL REFERENCES assets (id),
    reported_at BIGINT NOT NULL,
    latitude BIGINT NOT NULL,
    longitude BIGINT NOT NULL,
    accuracy BIGINT NOT NULL,
    PRIMARY KEY (asset_id, reported_at)
);
CREATE TABLE asset_terms (
    company_id TEXT NOT NULL,
    term TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    PRIMARY KEY (company_id, term, asset_id)
) WITHOUT ROWID;
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
    lost_mode BOOLEAN NOT NULL DEFAULT FALSE,
    push_reachable BOOLEAN NOT NULL DEFAULT FALSE,
    api_level BIGINT NOT NULL DEFAULT 0,
    custom_data TEXT NOT NULL DEFAULT '', -- JSON object
    tags TEXT NOT NULL DEFAULT '', -- JSON array
    specifications TEXT NOT NULL DEFAULT '', -- JSON object
    location TEXT NOT NULL DEFAULT '', -- JSON object
    status_report TEXT NOT NULL DEFAULT '' -- JSON object
, search_terms TEXT NOT NULL DEFAULT '', battery DOUBLE PRECISION NOT NULL DEFAULT -1, patch TEXT NOT NULL DEFAULT '', compliant BIGINT NOT NULL DEFAULT -1, archived_status TEXT NOT NULL DEFAULT '', applied_push BIGINT NOT NULL DEFAULT 0);
CREATE INDEX assets_applied ON assets (company_id, policy_id, applied_version, id) WHERE policy_id <> '';
CREATE INDEX assets_battery ON assets (company_id, battery, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') AND battery >= 0;
CREATE INDEX assets_compliant ON assets (company_id, compliant, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING');
CREATE INDEX assets_located ON assets (company_id, synced_at, id) WHERE location <> '';
CREATE INDEX assets_lost ON assets (company_id, id) WHERE lost_mode;
CREATE INDEX assets_patch ON assets (company_id, patch, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') AND patch <> '';
CREATE INDEX assets_policy_created ON assets (company_id, policy_id, status, created_at, id) WHERE policy_id <> '';
CREATE INDEX assets_policy_identification ON assets (company_id, policy_id, status, identification, id) WHERE policy_id <> '';
CREATE UNIQUE INDEX assets_policy_status ON assets (company_id, policy_id, status, id);
CREATE INDEX assets_policy_synced ON assets (company_id, policy_id, status, synced_at, id) WHERE policy_id <> '';
CREATE INDEX assets_push ON assets (company_id, push_reachable, management, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING');
CREATE INDEX assets_serial ON assets (company_id, serial_key) WHERE serial_key <> '';
CREATE INDEX assets_stable ON assets (company_id, stable_id) WHERE stable_id <> '';
CREATE INDEX assets_status ON assets (company_id, status, id);
CREATE INDEX assets_status_created ON assets (company_id, status, created_at, id);
CREATE INDEX assets_status_identification ON assets (company_id, status, identification, id);
CREATE INDEX assets_status_synced ON assets (company_id, status, synced_at, id);
CREATE INDEX assets_synced ON assets (company_id, synced_at, id) WHERE status <> 'ARCHIVED';
CREATE INDEX assets_unindexed ON assets (id) WHERE search_terms = '';
CREATE INDEX assets_unknown_push ON assets (applied_policy_id, applied_push) WHERE applied_push <> 0;
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
, signed_id TEXT NOT NULL DEFAULT '', decline_reason TEXT NOT NULL DEFAULT '');
CREATE INDEX authorizations_call ON authorizations (company_id, digest, created_at);
CREATE INDEX authorizations_created ON authorizations (created_at);
CREATE INDEX authorizations_list ON authorizations (company_id, created_at, id);
CREATE INDEX authorizations_open ON authorizations (company_id, created_at, id) WHERE state = 'WAITING';
CREATE INDEX authorizations_waiting ON authorizations (company_id, caller_kind, caller_id, created_at) WHERE state = 'WAITING';
CREATE TABLE budgets (
    key TEXT NOT NULL PRIMARY KEY,
    used BIGINT NOT NULL,
    closes_at BIGINT NOT NULL
);
CREATE INDEX budgets_closes ON budgets (closes_at);
CREATE TABLE claims (
    id TEXT PRIMARY KEY, -- digest of the caller and the key
    ref TEXT NOT NULL,
    fingerprint TEXT NOT NULL, -- sealed
    attempt BIGINT NOT NULL,
    leased_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    answer TEXT NOT NULL DEFAULT '' -- sealed, base64; empty while the request is under way
);
CREATE INDEX claims_expiry ON claims (expires_at);
CREATE TABLE command_cancels (
    command_id TEXT NOT NULL PRIMARY KEY,
    tried_at BIGINT NOT NULL
);
CREATE INDEX command_cancels_tried ON command_cancels (tried_at);
CREATE TABLE command_polls (
    command_id TEXT PRIMARY KEY REFERENCES commands (id),
    next_at BIGINT NOT NULL
);
CREATE INDEX command_polls_next ON command_polls (next_at);
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
, sender TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', ticket TEXT NOT NULL DEFAULT '', request_id TEXT NOT NULL DEFAULT '');
CREATE INDEX commands_company ON commands (company_id, created_at, id, state);
CREATE INDEX commands_deadline ON commands (deadline, id) WHERE state IN ('SENT', 'UNCONFIRMED') AND deadline > 0;
CREATE INDEX commands_history ON commands (asset_id, created_at, id);
CREATE UNIQUE INDEX commands_idempotency ON commands (idempotency_ref) WHERE idempotency_ref <> '';
CREATE INDEX commands_moves ON commands (policy_id, asset_id) WHERE state IN ('PREPARED', 'SENT', 'UNCONFIRMED') AND type = 'CHANGE_POLICY';
CREATE INDEX commands_open ON commands (state, created_at, id) WHERE state IN ('PREPARED', 'SENT', 'UNCONFIRMED');
CREATE INDEX commands_open_of ON commands (asset_id) WHERE state IN ('PREPARED', 'SENT', 'UNCONFIRMED');
CREATE UNIQUE INDEX commands_ref ON commands (ref) WHERE ref <> '';
CREATE INDEX commands_unconfirmed ON commands (company_id, created_at, id) WHERE state = 'UNCONFIRMED';
CREATE INDEX commands_wipes_failed ON commands (company_id, created_at, id) WHERE state = 'ERROR' AND type = 'WIPE_COMPANY_DATA';
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
, keep_activity BIGINT NOT NULL DEFAULT 34560000000, apply_approval TEXT NOT NULL DEFAULT 'OFF', second_person BOOLEAN NOT NULL DEFAULT FALSE, approver_age BIGINT NOT NULL DEFAULT 86400000, destructive_approval BOOLEAN NOT NULL DEFAULT FALSE, limit_devices BIGINT NOT NULL DEFAULT 25, limit_window BIGINT NOT NULL DEFAULT 3600000, require_reason TEXT NOT NULL DEFAULT 'OFF', stopped_at BIGINT NOT NULL DEFAULT 0, stop_reason TEXT NOT NULL DEFAULT '', stop_all BOOLEAN NOT NULL DEFAULT FALSE, upgrade_notice BOOLEAN NOT NULL DEFAULT FALSE, lost_message TEXT NOT NULL DEFAULT '', lost_phone TEXT NOT NULL DEFAULT '', lost_organization TEXT NOT NULL DEFAULT '', keep_commands BIGINT NOT NULL DEFAULT 34560000000, keep_places BIGINT NOT NULL DEFAULT 7776000000, keep_events BIGINT NOT NULL DEFAULT 2592000000);
CREATE UNIQUE INDEX companies_enterprise ON companies (enterprise) WHERE enterprise <> '';
CREATE UNIQUE INDEX companies_slug ON companies (slug);
CREATE INDEX companies_stopped ON companies (stopped_at) WHERE stopped_at > 0;
CREATE TABLE companion_tokens (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL REFERENCES assets (id),
    epoch BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    device_id TEXT NOT NULL, -- who spent it; empty: nobody
    spent_at BIGINT NOT NULL
);
CREATE INDEX companion_tokens_asset ON companion_tokens (asset_id);
CREATE INDEX companion_tokens_expires ON companion_tokens (expires_at);
CREATE TABLE company_deletions (
    company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
    begun_at BIGINT NOT NULL -- when the export was durable
);
CREATE TABLE company_domains (
    domain TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    added_at BIGINT NOT NULL
);
CREATE INDEX company_domains_company ON company_domains (company_id, domain);
CREATE TABLE control_versions (
    company_id TEXT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
);
CREATE TABLE "destructive_uses" (
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (company_id, asset_id, epoch)
);
CREATE INDEX destructive_uses_at ON destructive_uses (company_id, at, asset_id, epoch);
CREATE TABLE device_logs (
    command_id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX device_logs_asset ON device_logs (asset_id, at, command_id);
CREATE INDEX device_logs_at ON device_logs (at);
CREATE INDEX device_logs_company ON device_logs (company_id, at, command_id);
CREATE TABLE device_names (
    company_id TEXT NOT NULL,
    name TEXT NOT NULL,
    asset_id TEXT NOT NULL, -- empty: the device ended before we met it
    observed_at BIGINT NOT NULL, -- the newest observation applied
    ended BOOLEAN NOT NULL,
    PRIMARY KEY (company_id, name)
);
CREATE INDEX device_names_asset ON device_names (asset_id);
CREATE TABLE disconnections (
	enterprise TEXT NOT NULL PRIMARY KEY,
	company_id TEXT NOT NULL REFERENCES companies (id),
	begun_at   BIGINT NOT NULL,
	ended_at   BIGINT NOT NULL
);
CREATE TABLE enrollment_codes (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    management TEXT NOT NULL, -- PLATFORM or AGENT
    personal_usage TEXT NOT NULL,
    maker_kind TEXT NOT NULL,
    maker_id TEXT NOT NULL,
    maker_name TEXT NOT NULL,
    tags TEXT NOT NULL, -- JSON; of each device that enrolls
    max_devices BIGINT NOT NULL, -- 0: no limit
    devices BIGINT NOT NULL, -- that have enrolled
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    ref TEXT NOT NULL, -- the platform's name of the token; empty: there is none
    drop_at BIGINT NOT NULL -- when the platform is next asked to delete it; 0: never
);
CREATE INDEX enrollment_codes_company ON enrollment_codes (company_id, created_at, id);
CREATE INDEX enrollment_codes_drop ON enrollment_codes (drop_at, id) WHERE drop_at > 0;
CREATE INDEX enrollment_codes_expires ON enrollment_codes (expires_at, id);
CREATE TABLE "enrollment_requests" (
    id TEXT NOT NULL PRIMARY KEY,
    token_hash TEXT NOT NULL,
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL, -- of the asset, when the device asked
    key_alg TEXT NOT NULL, -- of the device's new key
    key_spki TEXT NOT NULL,
    serial_number TEXT NOT NULL,
    model TEXT NOT NULL,
    os_version TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL DEFAULT 0 -- 0: it waits for a person; -1: declined
);
CREATE INDEX enrollment_requests_asset ON enrollment_requests (company_id, asset_id, asked_at);
CREATE INDEX enrollment_requests_expires ON enrollment_requests (expires_at);
CREATE INDEX enrollment_requests_open ON enrollment_requests (company_id, asked_at, id) WHERE confirmed_at = 0;
CREATE UNIQUE INDEX enrollment_requests_token ON enrollment_requests (token_hash, key_alg, key_spki);
CREATE TABLE enrollment_uses (
    code_id TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    device TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (code_id, asset_id, epoch)
) WITHOUT ROWID;
CREATE TABLE event_heads (
    company_id TEXT NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL
);
CREATE TABLE event_history (
    one BIGINT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL
);
CREATE TABLE events (
    id TEXT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL,
    pos BIGINT NOT NULL DEFAULT 0,
    company_id TEXT NOT NULL,
    area TEXT NOT NULL,
    type TEXT NOT NULL,
    at BIGINT NOT NULL,
    asset_id TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    command TEXT NOT NULL,
    status TEXT NOT NULL,
    request_id TEXT NOT NULL,
    owner TEXT NOT NULL
);
CREATE INDEX events_drawn ON events (n);
CREATE UNIQUE INDEX events_feed ON events (company_id, pos) WHERE pos > 0;
CREATE INDEX events_kept ON events (company_id, at);
CREATE INDEX events_waiting ON events (n, id) WHERE pos = 0;
CREATE TABLE foreign_enterprises (
	enterprise TEXT NOT NULL PRIMARY KEY,
	first_at   BIGINT NOT NULL,
	last_at    BIGINT NOT NULL
);
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
CREATE TABLE identities (
    company_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);
CREATE TABLE identity_domains (
    domain TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id)
);
CREATE INDEX identity_domains_company ON identity_domains (company_id, domain);
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
, saved_by TEXT NOT NULL DEFAULT '', saved_rights BIGINT NOT NULL DEFAULT 0);
CREATE TABLE installed_apps (
    asset_id TEXT NOT NULL,
    package TEXT NOT NULL,
    company_id TEXT NOT NULL,
    version_code BIGINT NOT NULL, -- -1: not reported
    PRIMARY KEY (asset_id, package)
) WITHOUT ROWID;
CREATE INDEX installed_apps_package ON installed_apps (company_id, package, version_code, asset_id);
CREATE TABLE job_devices (
    job_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    asset_id TEXT NOT NULL,
    state TEXT NOT NULL,
    taken_at BIGINT NOT NULL,
    outcome TEXT NOT NULL, merged_into TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, n)
) WITHOUT ROWID;
CREATE INDEX job_devices_asset ON job_devices (job_id, asset_id);
CREATE INDEX job_devices_state ON job_devices (job_id, state, n);
CREATE INDEX job_devices_taken ON job_devices (taken_at, job_id, n) WHERE state = 'IN_PROGRESS';
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    command TEXT NOT NULL,
    arguments TEXT NOT NULL, -- a JSON object
    filter TEXT NOT NULL,
    maker_kind TEXT NOT NULL,
    maker_id TEXT NOT NULL,
    maker_name TEXT NOT NULL,
    reason TEXT NOT NULL,
    ticket TEXT NOT NULL,
    status TEXT NOT NULL,
    why TEXT NOT NULL,
    rate BIGINT NOT NULL, -- devices a minute
    total BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    starts_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL
);
CREATE INDEX jobs_company ON jobs (company_id, created_at, id);
CREATE INDEX jobs_due ON jobs (next_at, id) WHERE status = 'RUNNING';
CREATE INDEX jobs_ended ON jobs (ended_at, id) WHERE ended_at > 0;
CREATE INDEX jobs_open ON jobs (company_id, id) WHERE status IN ('RUNNING', 'PAUSED');
CREATE TABLE "key_devices" (
    key_id TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (key_id, asset_id, epoch)
);
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE TABLE loosenings (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    control TEXT NOT NULL,
    value_before TEXT NOT NULL,
    value_after TEXT NOT NULL,
    asked_by TEXT NOT NULL, -- a user's id
    asked_by_name TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    effective_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX loosenings_control ON loosenings (company_id, control);
CREATE INDEX loosenings_due ON loosenings (effective_at, id);
CREATE TABLE lost_enterprises (
	company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
	enterprise TEXT NOT NULL,
	since      BIGINT NOT NULL
);
CREATE TABLE mail_letters (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    company_id TEXT NOT NULL REFERENCES companies (id),
    sealed TEXT NOT NULL, -- the invitation's token, by a key of the key file
    created_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    failures BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX mail_letters_created ON mail_letters (created_at);
CREATE INDEX mail_letters_due ON mail_letters (next_at, id);
CREATE INDEX mail_letters_user ON mail_letters (user_id);
CREATE TABLE mail_told (
    user_id TEXT NOT NULL REFERENCES users (id),
    item_id TEXT NOT NULL, -- of a proposal, an authorization or a loosening
    company_id TEXT NOT NULL REFERENCES companies (id),
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, item_id)
);
CREATE INDEX mail_told_at ON mail_told (at);
CREATE INDEX mail_told_company ON mail_told (company_id, user_id);
CREATE TABLE mail_users (
    user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id),
    company_id TEXT NOT NULL REFERENCES companies (id),
    muted BOOLEAN NOT NULL DEFAULT FALSE,
    events TEXT NOT NULL DEFAULT '', -- separated by spaces; empty: all
    next_at BIGINT NOT NULL DEFAULT 0, -- no mail before
    failures BIGINT NOT NULL DEFAULT 0 -- attempts in a row
, position BIGINT NOT NULL DEFAULT 0);
CREATE INDEX mail_users_company ON mail_users (company_id, user_id);
CREATE INDEX mail_users_position ON mail_users (company_id, position);
CREATE TABLE messages (
    company_id TEXT NOT NULL,
    id TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (company_id, id)
);
CREATE INDEX messages_seen ON messages (seen_at);
CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL, -- JSON array
    dynamic BOOLEAN NOT NULL,
    secret_hash TEXT NOT NULL, -- SHA-256, hexadecimal; empty: a public client
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_clients_created ON oauth_clients (created_at);
CREATE INDEX oauth_clients_expires ON oauth_clients (expires_at) WHERE expires_at <> 0;
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
CREATE INDEX oauth_connections_client ON oauth_connections (client_id);
CREATE INDEX oauth_connections_company ON oauth_connections (company_id, created_at, id);
CREATE INDEX oauth_connections_created ON oauth_connections (created_at);
CREATE UNIQUE INDEX oauth_connections_live ON oauth_connections (user_id, client_id) WHERE revoked_at = 0;
CREATE TABLE oauth_grants (
    id TEXT PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES oauth_connections (id),
    scopes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX oauth_grants_connection ON oauth_grants (connection_id);
CREATE INDEX oauth_grants_created ON oauth_grants (created_at);
CREATE TABLE "oauth_tokens" (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    grant_id TEXT NOT NULL REFERENCES oauth_grants (id),
    refresh BOOLEAN NOT NULL,
    scopes BIGINT NOT NULL, -- of an access token that the client asked to be narrower; 0: the grant's
    expires_at BIGINT NOT NULL,
    parent TEXT NOT NULL, -- the refresh token that it was swapped for; empty: a code
    rotated_at BIGINT NOT NULL, -- when a refresh token was first swapped; 0: not yet
    reuses BIGINT NOT NULL -- how often it was swapped again
);
CREATE INDEX oauth_tokens_expires ON oauth_tokens (expires_at);
CREATE INDEX oauth_tokens_grant ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_parent ON oauth_tokens (parent) WHERE parent <> '';
CREATE TABLE operator_acts (
	name TEXT NOT NULL PRIMARY KEY,
	at   BIGINT NOT NULL
, value TEXT NOT NULL DEFAULT '');
CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY, -- the credential's id, hexadecimal
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    credential TEXT NOT NULL, -- JSON
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX passkeys_user ON passkeys (user_id, created_at, id);
CREATE TABLE patch_counts (
    company_id TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    month TEXT NOT NULL, -- such as 2026-10; empty: not reported
    count BIGINT NOT NULL,
    PRIMARY KEY (company_id, policy_id, month)
);
CREATE TABLE platform_outages (
    one BIGINT NOT NULL PRIMARY KEY,
    since BIGINT NOT NULL,
    told BIGINT NOT NULL
);
CREATE TABLE platform_quotas (
    project TEXT PRIMARY KEY,
    units BIGINT NOT NULL,
    filled_at BIGINT NOT NULL,
    paused_until BIGINT NOT NULL -- for background queries
);
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
CREATE INDEX policies_behind ON policies (push_tried_at, id)
    WHERE type = 'PLATFORM' AND NOT deleted AND push_version <> version;
CREATE INDEX policies_name ON policies (company_id, name, id) WHERE NOT deleted;
CREATE UNIQUE INDEX policies_name_key ON policies (company_id, name_key) WHERE NOT deleted;
CREATE INDEX policies_updated ON policies (company_id, updated_at, id) WHERE NOT deleted;
CREATE INDEX policies_version ON policies (company_id, version, id) WHERE NOT deleted;
CREATE TABLE policy_pushes (
    policy_id TEXT NOT NULL REFERENCES policies (id),
    vendor_version BIGINT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (policy_id, vendor_version)
);
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
, devices BIGINT NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '', ticket TEXT NOT NULL DEFAULT '', warnings TEXT NOT NULL DEFAULT '', approval TEXT NOT NULL DEFAULT '', approved_by TEXT NOT NULL DEFAULT '', approved_at BIGINT NOT NULL DEFAULT 0, signed_id TEXT NOT NULL DEFAULT '', decline_reason TEXT NOT NULL DEFAULT '', expiry_told BIGINT NOT NULL DEFAULT 0);
CREATE INDEX proposals_apply_ref ON proposals (company_id, apply_ref) WHERE apply_ref <> '';
CREATE INDEX proposals_company ON proposals (company_id, created_at, id);
CREATE UNIQUE INDEX proposals_executing ON proposals (next_policy_id) WHERE status = 'EXECUTING';
CREATE INDEX proposals_expiring ON proposals (expires_at) WHERE status = 'PENDING' AND expiry_told = 0;
CREATE INDEX proposals_look ON proposals (look_at, id) WHERE look_at > 0;
CREATE UNIQUE INDEX proposals_naming ON proposals (company_id, next_name_key) WHERE status = 'EXECUTING' AND next_name_key <> '';
CREATE INDEX proposals_policy ON proposals (company_id, policy_id, created_at, id);
CREATE UNIQUE INDEX proposals_propose_ref ON proposals (company_id, propose_ref) WHERE propose_ref <> '';
CREATE INDEX proposals_unconfirmed ON proposals (company_id, created_at, id) WHERE status = 'UNCONFIRMED';
CREATE INDEX proposals_waiting ON proposals (company_id, expires_at) WHERE status = 'PENDING';
CREATE TABLE push_retries (
    policy_id TEXT PRIMARY KEY REFERENCES policies (id),
    version BIGINT NOT NULL,
    failing_since BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    refused BOOLEAN NOT NULL -- not due again
);
CREATE TABLE recovery_codes (
    user_id TEXT NOT NULL REFERENCES users (id),
    hash TEXT NOT NULL, -- SHA-256, hexadecimal
    PRIMARY KEY (user_id, hash)
);
CREATE TABLE retentions (
    company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
    next_at BIGINT NOT NULL, -- nothing is deleted before; -1: the notice is not given yet
    commands BIGINT NOT NULL, -- deleted since the last entry in the activity log
    places BIGINT NOT NULL
);
CREATE TABLE saved_views (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    query TEXT NOT NULL, -- of the list's address
    shared BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX saved_views_company ON saved_views (company_id, name, id);
CREATE TABLE service_keys (
    id TEXT NOT NULL PRIMARY KEY,
    first_seen_at BIGINT NOT NULL,
    lost_at BIGINT NOT NULL -- when an operator accepted its loss; 0: it is needed
);
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
CREATE INDEX sessions_created ON sessions (created_at);
CREATE UNIQUE INDEX sessions_token ON sessions (token_hash);
CREATE INDEX sessions_user ON sessions (user_id, created_at);
CREATE TABLE signed_documents (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    subject TEXT NOT NULL, -- the id of what was decided on
    signed TEXT NOT NULL, -- document and signature, as they are exported
    at BIGINT NOT NULL
);
CREATE INDEX signed_documents_subject ON signed_documents (company_id, subject, at);
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
CREATE TABLE signups (
    state TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    name TEXT NOT NULL, -- the vendor's
    created_at BIGINT NOT NULL,
    enterprise TEXT NOT NULL DEFAULT ''
, address TEXT NOT NULL DEFAULT '', token TEXT NOT NULL DEFAULT '', session_id TEXT NOT NULL DEFAULT '', nonce TEXT NOT NULL DEFAULT '');
CREATE INDEX signups_company ON signups (company_id, created_at);
CREATE INDEX signups_created ON signups (created_at);
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
, rights_at BIGINT NOT NULL DEFAULT 0);
CREATE INDEX users_company ON users (company_id, email);
CREATE UNIQUE INDEX users_email ON users (email);
CREATE TABLE versions (
    id BIGINT NOT NULL PRIMARY KEY, -- 1: there is one row
    schema_number BIGINT NOT NULL,
    lowest_writer BIGINT NOT NULL
);
CREATE TABLE webhook_attempts (
    webhook_id TEXT NOT NULL REFERENCES webhooks (id),
    n BIGINT NOT NULL,
    at BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    pos BIGINT NOT NULL, -- of the event; 0: a test
    attempt BIGINT NOT NULL,
    status BIGINT NOT NULL, -- of HTTP; 0: no answer
    detail TEXT NOT NULL,
    took BIGINT NOT NULL, -- milliseconds
    next_at BIGINT NOT NULL, -- 0: it is not tried again
    PRIMARY KEY (webhook_id, n)
) WITHOUT ROWID;
CREATE TABLE webhook_held (
    webhook_id TEXT NOT NULL REFERENCES webhooks (id),
    held TEXT NOT NULL, -- the id of the asset or the event
    asset_id TEXT NOT NULL, -- empty: the event alone
    pos BIGINT NOT NULL, -- what comes from here on is not sent yet
    attempts BIGINT NOT NULL, -- to send the first event that failed
    since BIGINT NOT NULL, -- the first of them; 0: none failed
    next_at BIGINT NOT NULL,
    PRIMARY KEY (webhook_id, held)
);
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    url TEXT NOT NULL,
    events TEXT NOT NULL, -- types, separated by spaces; empty: all
    state TEXT NOT NULL, -- ENABLED or DISABLED
    why TEXT NOT NULL, -- it is disabled
    disabled_at BIGINT NOT NULL,
    secret TEXT NOT NULL, -- sealed by a key of the key file
    former TEXT NOT NULL, -- the secret before, which signs until former_until
    former_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    pos BIGINT NOT NULL, -- of the last event that was sent, held or passed over
    moved_at BIGINT NOT NULL, -- when pos was written
    next_at BIGINT NOT NULL, -- when the first of what is held is due; 0: nothing is held
    missed BIGINT NOT NULL, -- events that were deleted before they were sent, at most
    tried BIGINT NOT NULL, -- attempts so far
    version BIGINT NOT NULL, -- rises with each change
    claim TEXT NOT NULL, -- of who sends
    claim_until BIGINT NOT NULL
);
CREATE INDEX webhooks_company ON webhooks (company_id, created_at, id);
CREATE INDEX webhooks_disabled ON webhooks (disabled_at) WHERE state = 'DISABLED';
CREATE INDEX webhooks_enabled ON webhooks (claim_until, id) WHERE state = 'ENABLED';
CREATE INDEX webhooks_failing ON webhooks (next_at) WHERE state = 'ENABLED' AND next_at > 0;
