-- Devices with our own agent: enrolment tokens, devices, commands on their way.

-- +goose Up
CREATE TABLE agent_tokens (
    hash TEXT PRIMARY KEY, -- SHA-256, hexadecimal
    company_id TEXT NOT NULL REFERENCES companies (id),
    policy_id TEXT NOT NULL REFERENCES policies (id),
    expires_at BIGINT NOT NULL,
    device_id TEXT NOT NULL, -- who spent it; empty: nobody
    spent_at BIGINT NOT NULL
);
CREATE INDEX agent_tokens_expires ON agent_tokens (expires_at);

CREATE TABLE agent_devices (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL, -- empty until the inventory has it
    epoch BIGINT NOT NULL,
    role TEXT NOT NULL,
    key_alg TEXT NOT NULL,
    key_spki TEXT NOT NULL,
    last_sequence BIGINT NOT NULL,
    state TEXT NOT NULL,
    wiped BOOLEAN NOT NULL,
    capabilities TEXT NOT NULL, -- JSON array; null: not told yet
    push_token TEXT NOT NULL,
    open_deliveries BIGINT NOT NULL,
    erasing_at BIGINT NOT NULL, -- when it set out to erase itself; 0: it did not
    enrolled_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);
CREATE INDEX agent_devices_asset ON agent_devices (asset_id, epoch);
CREATE INDEX agent_devices_erasing ON agent_devices (erasing_at) WHERE erasing_at <> 0;

CREATE TABLE agent_deliveries (
    command_id TEXT PRIMARY KEY,
    device_id TEXT NOT NULL REFERENCES agent_devices (id),
    type TEXT NOT NULL,
    args TEXT NOT NULL, -- JSON object
    created_at BIGINT NOT NULL,
    deadline BIGINT NOT NULL,
    final BOOLEAN NOT NULL,
    lease_until BIGINT NOT NULL,
    accepted_at BIGINT NOT NULL
);
CREATE INDEX agent_deliveries_device ON agent_deliveries (device_id, created_at, command_id);
CREATE INDEX agent_deliveries_deadline ON agent_deliveries (deadline) WHERE deadline <> 0;
