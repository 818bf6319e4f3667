-- When devices were last heard of, in narrow rows of their own: a fleet that checks in writes
-- little else, and each write of a whole asset costs an entry in every one of its indexes. Each
-- asset has one row, also one without a device. Status and policy follow the asset's: lists in
-- the order of last contact read these rows alone.

-- +goose Up
DROP INDEX assets_policy_status;
CREATE UNIQUE INDEX assets_policy_status ON assets (company_id, policy_id, status, id);
CREATE TABLE asset_contacts (
    asset_id TEXT NOT NULL,
    company_id TEXT NOT NULL,
    status TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (asset_id),
    FOREIGN KEY (asset_id, company_id, status, policy_id) REFERENCES assets (id, company_id, status, policy_id)
        ON UPDATE CASCADE ON DELETE CASCADE
) /* clustered */;
INSERT INTO asset_contacts (asset_id, company_id, status, policy_id, at)
    SELECT id, company_id, status, policy_id, last_seen_at FROM assets;
CREATE INDEX asset_contacts_status ON asset_contacts (company_id, status, at, asset_id);
CREATE INDEX asset_contacts_policy ON asset_contacts (company_id, policy_id, status, at, asset_id) WHERE policy_id <> '';
DROP INDEX assets_status_seen;
DROP INDEX assets_policy_seen;
ALTER TABLE assets DROP COLUMN last_seen_at;
