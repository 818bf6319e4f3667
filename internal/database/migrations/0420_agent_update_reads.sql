-- What a company's page of agent updates reads: devices by version, counted in the index alone, and updates that failed.

-- +goose Up
DROP INDEX agent_devices_build;
CREATE INDEX agent_devices_build ON agent_devices (company_id, agent_version, state);
CREATE INDEX agent_updates_failed ON agent_updates (state, device_id) WHERE state IN ('FAILED', 'WENT_BACK');
