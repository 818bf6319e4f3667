-- The limits count devices: an asset in one enrollment. Another enrollment of the
-- same asset is another device.

-- +goose Up
CREATE TABLE counted_uses (
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (company_id, asset_id, epoch)
);
INSERT INTO counted_uses (company_id, asset_id, epoch, at)
    SELECT u.company_id, u.asset_id, COALESCE((SELECT a.epoch FROM assets a WHERE a.id = u.asset_id), 0), u.at FROM destructive_uses u;
DROP TABLE destructive_uses;
ALTER TABLE counted_uses RENAME TO destructive_uses;
CREATE INDEX destructive_uses_at ON destructive_uses (company_id, at, asset_id, epoch);

CREATE TABLE counted_devices (
    key_id TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (key_id, asset_id, epoch)
);
INSERT INTO counted_devices (key_id, asset_id, epoch, at)
    SELECT d.key_id, d.asset_id, COALESCE((SELECT a.epoch FROM assets a WHERE a.id = d.asset_id), 0), d.at FROM key_devices d;
DROP TABLE key_devices;
ALTER TABLE counted_devices RENAME TO key_devices;
