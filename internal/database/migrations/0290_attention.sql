-- What waits for a person is found by company, whatever the number of commands.

-- +goose Up
CREATE INDEX commands_unconfirmed ON commands (company_id, created_at, id) WHERE state = 'UNCONFIRMED';
CREATE INDEX commands_wipes_failed ON commands (company_id, created_at, id) WHERE state = 'ERROR' AND type = 'WIPE_COMPANY_DATA';
CREATE INDEX authorizations_open ON authorizations (company_id, created_at, id) WHERE state = 'WAITING';
CREATE INDEX enrollment_requests_open ON enrollment_requests (company_id, asked_at, id) WHERE confirmed_at = 0;
