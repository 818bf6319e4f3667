-- A company's devices by the version of their agent.

-- +goose Up
CREATE INDEX agent_devices_build ON agent_devices (company_id, agent_version);
