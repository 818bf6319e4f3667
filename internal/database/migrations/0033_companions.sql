-- Companions on devices that the platform manages: tokens that name their
-- asset, deliveries that wait for push, tokens to push to.

-- +goose Up
ALTER TABLE agent_deliveries ADD COLUMN held_until BIGINT NOT NULL DEFAULT 0; -- not offered before

CREATE TABLE companion_tokens (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL REFERENCES assets (id),
    epoch BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    device_id TEXT NOT NULL, -- who spent it; empty: nobody
    spent_at BIGINT NOT NULL
);
CREATE INDEX companion_tokens_expires ON companion_tokens (expires_at);
