-- How many devices used the policy when the proposal was made or, later, when
-- it was claimed: what its summary says once it is no longer pending.

-- +goose Up
ALTER TABLE proposals ADD COLUMN devices BIGINT NOT NULL DEFAULT 0;
