-- Enrollment tokens that were made for one asset, as it was at an epoch.

-- +goose Up
ALTER TABLE agent_tokens ADD COLUMN asset_id TEXT NOT NULL DEFAULT ''; -- empty: for any device
ALTER TABLE agent_tokens ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
