-- Releases of the agent, how far they are rolled out, and what became of each device.

-- +goose Up
ALTER TABLE agent_devices ADD COLUMN agent_version TEXT NOT NULL DEFAULT '';
ALTER TABLE agent_devices ADD COLUMN agent_package TEXT NOT NULL DEFAULT ''; -- what its updates are built for; empty: it takes none
ALTER TABLE agent_devices ADD COLUMN agent_code BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agent_devices ADD COLUMN daily_since BIGINT NOT NULL DEFAULT 0; -- since when no gap between contacts was longer than a day
UPDATE agent_devices SET daily_since = enrolled_at;

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

CREATE TABLE agent_release_parts (
    sha256 TEXT NOT NULL,
    number BIGINT NOT NULL, -- from 0
    data TEXT NOT NULL, -- base64
    PRIMARY KEY (sha256, number)
);

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
CREATE INDEX agent_updates_version ON agent_updates (version, device_id);

CREATE TABLE agent_pauses (
    company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
    at BIGINT NOT NULL
);
