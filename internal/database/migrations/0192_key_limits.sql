-- Where from, and for how many devices, a key may be used.

-- +goose Up
ALTER TABLE api_keys ADD COLUMN networks TEXT NOT NULL DEFAULT ''; -- JSON array of prefixes; empty: any
ALTER TABLE api_keys ADD COLUMN devices_per_day BIGINT NOT NULL DEFAULT 0; -- 0: any number

-- The devices that a key with such a number sent commands to, and when last.
CREATE TABLE key_devices (
    key_id TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (key_id, asset_id)
);
