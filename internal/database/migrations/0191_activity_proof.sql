-- Each entry's proof that a holder of the service's keys wrote it; see
-- activity.Entry.Statement. Entries from before have none.

-- +goose Up
ALTER TABLE activity ADD COLUMN proof TEXT NOT NULL DEFAULT '';
-- The first place whose entry must have a proof; 0: no head says it yet.
ALTER TABLE activity_heads ADD COLUMN proved_from BIGINT NOT NULL DEFAULT 0;
