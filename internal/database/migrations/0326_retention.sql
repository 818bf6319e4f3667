-- How long commands and the places of devices are kept, and the deletion of what is older.
-- Companies that exist have a notice in their activity log first.

-- +goose Up
ALTER TABLE companies ADD COLUMN keep_commands BIGINT NOT NULL DEFAULT 34560000000; -- milliseconds
ALTER TABLE companies ADD COLUMN keep_places BIGINT NOT NULL DEFAULT 7776000000;

CREATE TABLE retentions (
    company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
    next_at BIGINT NOT NULL, -- nothing is deleted before; -1: the notice is not given yet
    commands BIGINT NOT NULL, -- deleted since the last entry in the activity log
    places BIGINT NOT NULL
);
INSERT INTO retentions (company_id, next_at, commands, places) SELECT id, -1, 0, 0 FROM companies;
