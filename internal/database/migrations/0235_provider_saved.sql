-- Who saved a company's identity provider, and what that person might do then: its word
-- opens no account that may do more. Nothing is known of providers that were saved before.

-- +goose Up
ALTER TABLE identity_providers ADD COLUMN saved_by TEXT NOT NULL DEFAULT ''; -- a name
ALTER TABLE identity_providers ADD COLUMN saved_rights BIGINT NOT NULL DEFAULT 0;
