-- Changes that loosen a control of a company and wait until they take effect. A
-- control has one at most; what became of it is in the activity log.

-- +goose Up
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

-- When a user last got a right, or was enabled again; 0: not since this was kept.
ALTER TABLE users ADD COLUMN rights_at BIGINT NOT NULL DEFAULT 0;
