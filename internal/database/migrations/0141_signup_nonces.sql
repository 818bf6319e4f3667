-- Who began a sign-up at the platform, and the nonce by which the enterprise is
-- found whose making was not answered.

-- +goose Up
ALTER TABLE signups ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
ALTER TABLE signups ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
