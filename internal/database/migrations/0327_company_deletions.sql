-- Companies that are being deleted: what is left of them is deleted in parts.

-- +goose Up
CREATE TABLE company_deletions (
    company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
    begun_at BIGINT NOT NULL -- when the export was durable
);
