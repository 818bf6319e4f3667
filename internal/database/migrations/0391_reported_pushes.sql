-- A device may report a version of the platform before it is known which of ours that is, as after an apply
-- whose answer was lost. It is kept until it is known.

-- +goose Up
ALTER TABLE assets ADD COLUMN applied_push BIGINT NOT NULL DEFAULT 0; -- the platform's version of applied_policy_id; 0: it is known
CREATE INDEX assets_unknown_push ON assets (applied_policy_id, applied_push) WHERE applied_push <> 0;
