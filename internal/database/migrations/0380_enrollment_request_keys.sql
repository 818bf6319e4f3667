-- Of a code for several devices several may ask to be enrolled again: a request holds its key,
-- and the token only if that is for one device.

-- +goose Up
CREATE TABLE key_requests (
    id TEXT NOT NULL PRIMARY KEY,
    token_hash TEXT NOT NULL,
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
    confirmed_at BIGINT NOT NULL DEFAULT 0 -- 0: it waits for a person; -1: declined
);
INSERT INTO key_requests (id, token_hash, company_id, asset_id, epoch, key_alg, key_spki, serial_number, model, os_version, asked_at,
        expires_at, confirmed_at)
    SELECT id, token_hash, company_id, asset_id, epoch, key_alg, key_spki, serial_number, model, os_version, asked_at, expires_at,
        confirmed_at FROM enrollment_requests;
DROP TABLE enrollment_requests;
ALTER TABLE key_requests RENAME TO enrollment_requests;
CREATE INDEX enrollment_requests_asset ON enrollment_requests (company_id, asset_id, asked_at);
CREATE INDEX enrollment_requests_expires ON enrollment_requests (expires_at);
CREATE INDEX enrollment_requests_open ON enrollment_requests (company_id, asked_at, id) WHERE confirmed_at = 0;
CREATE UNIQUE INDEX enrollment_requests_token ON enrollment_requests (token_hash, key_alg, key_spki);

-- What requests made of the tokens of codes for several devices is taken back, also where the
-- device has enrolled since: its request is gone, and its asset is still the token's.
UPDATE agent_tokens SET asset_id = '', epoch = 0,
    policy_id = (SELECT c.policy_id FROM enrollment_codes c WHERE c.id = agent_tokens.code_id),
    expires_at = (SELECT c.expires_at FROM enrollment_codes c WHERE c.id = agent_tokens.code_id)
    WHERE code_id <> '' AND device_id = '' AND expires_at > 0
    AND EXISTS (SELECT 1 FROM enrollment_codes c WHERE c.id = agent_tokens.code_id AND c.company_id = agent_tokens.company_id
        AND c.max_devices <> 1)
    AND (asset_id <> '' OR EXISTS (SELECT 1 FROM enrollment_requests r WHERE r.token_hash = agent_tokens.hash));
