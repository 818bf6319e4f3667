-- A key of a person who is limited to some policies is limited to the same.

-- +goose Up
ALTER TABLE api_keys ADD COLUMN policies TEXT NOT NULL DEFAULT 'null'; -- JSON array of ids, or null: all
