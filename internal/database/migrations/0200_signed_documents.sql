-- What people signed with a passkey, and what was decided about a proposal so.

-- +goose Up
CREATE TABLE signed_documents (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    subject TEXT NOT NULL, -- the id of what was decided on
    signed TEXT NOT NULL, -- document and signature, as they are exported
    at BIGINT NOT NULL
);
CREATE INDEX signed_documents_subject ON signed_documents (company_id, subject, at);

ALTER TABLE proposals ADD COLUMN warnings TEXT NOT NULL DEFAULT ''; -- JSON array; empty: none
ALTER TABLE proposals ADD COLUMN approval TEXT NOT NULL DEFAULT ''; -- APPROVED, DECLINED; empty: not decided
ALTER TABLE proposals ADD COLUMN approved_by TEXT NOT NULL DEFAULT ''; -- the person's name
ALTER TABLE proposals ADD COLUMN approved_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE proposals ADD COLUMN signed_id TEXT NOT NULL DEFAULT ''; -- the signature of the decision that counts
