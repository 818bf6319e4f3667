-- What the portal shows beside the contract: where devices were, views of the
-- device list, commands by day.

-- +goose Up
-- Where a device was, for a month: degrees are millionths, accuracy is in
-- decimetres.
CREATE TABLE asset_places (
    asset_id TEXT NOT NULL REFERENCES assets (id),
    reported_at BIGINT NOT NULL,
    latitude BIGINT NOT NULL,
    longitude BIGINT NOT NULL,
    accuracy BIGINT NOT NULL,
    PRIMARY KEY (asset_id, reported_at)
);

CREATE INDEX assets_located ON assets (company_id, synced_at, id) WHERE location <> '';

CREATE INDEX commands_company ON commands (company_id, created_at, id, state);

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
