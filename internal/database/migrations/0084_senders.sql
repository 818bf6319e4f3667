-- The replica that sends a command: what it left behind when it died is known
-- as soon as its presence ends.

-- +goose Up
ALTER TABLE commands ADD COLUMN sender TEXT NOT NULL DEFAULT '';
