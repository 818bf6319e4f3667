-- Proposals with an unknown outcome are listed under what waits for people.

-- +goose Up
CREATE INDEX proposals_unconfirmed ON proposals (company_id, created_at, id) WHERE status = 'UNCONFIRMED';
