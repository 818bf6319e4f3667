-- The apps that a device reports, for people.

-- +goose Up
CREATE TABLE asset_apps (
    asset_id TEXT NOT NULL PRIMARY KEY REFERENCES assets (id),
    since BIGINT NOT NULL, -- when they changed last
    apps TEXT NOT NULL -- JSON array
);
