-- A sign-up at the platform can be gone on with: where its page is, and what the
-- vendor brought back while no enterprise could be made of it.

-- +goose Up
ALTER TABLE signups ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE signups ADD COLUMN token TEXT NOT NULL DEFAULT '';
CREATE INDEX signups_company ON signups (company_id, created_at);
