-- The commands under way that move a device to a policy, by that policy.

-- +goose Up
CREATE INDEX commands_moves ON commands (policy_id, asset_id) WHERE state IN ('PREPARED', 'SENT', 'UNCONFIRMED') AND type = 'CHANGE_POLICY';
