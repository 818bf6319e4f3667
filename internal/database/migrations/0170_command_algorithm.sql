-- The algorithm of the command key that a device was given when it enrolled. It
-- stays the same for that enrolment; those from before were all given Ed25519.

-- +goose Up
ALTER TABLE agent_devices ADD COLUMN command_alg TEXT NOT NULL DEFAULT 'ed25519';
