-- A decision is countersigned by the service when it is accepted, and verified again when it
-- is used. Approvals from before that were not used yet are asked for again.

-- +goose Up
ALTER TABLE authorizations ADD COLUMN signed_id TEXT NOT NULL DEFAULT ''; -- of what was signed
ALTER TABLE authorizations ADD COLUMN decline_reason TEXT NOT NULL DEFAULT ''; -- in the person's words
ALTER TABLE proposals ADD COLUMN decline_reason TEXT NOT NULL DEFAULT '';
UPDATE authorizations SET state = 'WAITING', decided_at = 0, decided_by = '', decided_by_name = '', passkey_id = ''
    WHERE state = 'APPROVED';
UPDATE proposals SET approval = '', approved_by = '', approved_at = 0, signed_id = ''
    WHERE status = 'PENDING' AND approval = 'APPROVED';
