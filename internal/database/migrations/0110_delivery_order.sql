-- Commands of the same millisecond are offered to their device in the order in
-- which they were kept.

-- +goose Up
ALTER TABLE agent_deliveries ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
