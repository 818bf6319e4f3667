-- The logs that devices upload when a command asks for them.

-- +goose Up
CREATE TABLE device_logs (
    command_id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX device_logs_asset ON device_logs (asset_id, at, command_id);
CREATE INDEX device_logs_company ON device_logs (company_id, at, command_id);
CREATE INDEX device_logs_at ON device_logs (at);
