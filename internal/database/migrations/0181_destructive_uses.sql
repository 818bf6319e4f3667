-- Which devices got destructive commands lately, and when last: what the limit of
-- a company counts. There is no more than one row for a device, and old rows go.

-- +goose Up
CREATE TABLE destructive_uses (
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (company_id, asset_id)
);
CREATE INDEX destructive_uses_at ON destructive_uses (company_id, at, asset_id);
