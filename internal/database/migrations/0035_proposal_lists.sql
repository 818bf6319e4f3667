-- A company's proposals, newest first, for people to look at.

-- +goose Up
CREATE INDEX proposals_company ON proposals (company_id, created_at, id);
CREATE INDEX proposals_waiting ON proposals (company_id, expires_at) WHERE status = 'PENDING';
