-- What happened, for those who ask. n is drawn while what the event is about is locked,
-- pos is given by one sequencer at a time once the event is visible; 0: not yet.
CREATE SEQUENCE event_numbers;
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
CREATE UNIQUE INDEX events_feed ON events (company_id, pos) WHERE pos > 0;
CREATE INDEX events_waiting ON events (n, id) WHERE pos = 0;
CREATE INDEX events_drawn ON events (n);
CREATE INDEX events_kept ON events (company_id, at);
-- The last position of each company: it stays when its events are gone.
CREATE TABLE event_heads (
    company_id TEXT NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL
);
-- Which history the positions are of: another one begins with a restored or copied database.
CREATE TABLE event_history (
    one BIGINT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL
);
-- The request that a command came with; empty: none, or from before.
ALTER TABLE commands ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE companies ADD COLUMN keep_events BIGINT NOT NULL DEFAULT 2592000000;
-- When it was said that a key or an expiring credential is about to run out; 0: not yet.
ALTER TABLE api_keys ADD COLUMN expiry_told BIGINT NOT NULL DEFAULT 0;
-- Since when the platform's calls fail, and whether that was said.
CREATE TABLE platform_outages (
    one BIGINT NOT NULL PRIMARY KEY,
    since BIGINT NOT NULL,
    told BIGINT NOT NULL
);
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE expiry_told = 0 AND revoked_at = 0 AND expires_at > 0;
-- Proposals that expired are told once; those from before are not.
ALTER TABLE proposals ADD COLUMN expiry_told BIGINT NOT NULL DEFAULT 0;
UPDATE proposals SET expiry_told = 1;
CREATE INDEX proposals_expiring ON proposals (expires_at) WHERE status = 'PENDING' AND expiry_told = 0;
