-- Requests that carry an Idempotency-Key, and their answers.

-- +goose Up
CREATE TABLE claims (
    id TEXT PRIMARY KEY, -- digest of the caller and the key
    ref TEXT NOT NULL,
    fingerprint TEXT NOT NULL, -- sealed
    attempt BIGINT NOT NULL,
    leased_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    answer TEXT NOT NULL DEFAULT '' -- sealed, base64; empty while the request is under way
);
CREATE INDEX claims_expiry ON claims (expires_at);
