-- The devices of a job by their asset, for merges and deletions of assets.

-- +goose Up
CREATE INDEX job_devices_asset ON job_devices (job_id, asset_id);
