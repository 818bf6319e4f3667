-- Devices that lost their key or their identity and ask to be enrolled again, until a
-- person has decided and they have come back, or their time is over. Each holds its
-- token: no other key redeems that.

-- +goose Up
CREATE TABLE enrollment_requests (
    id TEXT NOT NULL PRIMARY KEY,
    token_hash TEXT NOT NULL UNIQUE,
    company_id TEXT NOT NULL REFERENCES companies (id),
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL, -- of the asset, when the device asked
    key_alg TEXT NOT NULL, -- of the device's new key
    key_spki TEXT NOT NULL,
    serial_number TEXT NOT NULL,
    model TEXT NOT NULL,
    os_version TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL DEFAULT 0 -- 0: it waits for a person
);
CREATE INDEX enrollment_requests_asset ON enrollment_requests (company_id, asset_id, asked_at);
CREATE INDEX enrollment_requests_expires ON enrollment_requests (expires_at);
