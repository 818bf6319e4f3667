-- Agents whose asset another device has taken over since: they are told so,
-- and keep their policy.

-- +goose Up
ALTER TABLE agent_devices ADD COLUMN superseded BOOLEAN NOT NULL DEFAULT FALSE;
