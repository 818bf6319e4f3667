-- Mail about what waits. That something waits is the state itself; here is who was told of
-- it, when the next mail may go, and invitations that are to be sent.

-- +goose Up
CREATE TABLE mail_users (
    user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id),
    company_id TEXT NOT NULL REFERENCES companies (id),
    muted BOOLEAN NOT NULL DEFAULT FALSE,
    events TEXT NOT NULL DEFAULT '', -- separated by spaces; empty: all
    next_at BIGINT NOT NULL DEFAULT 0, -- no mail before
    failures BIGINT NOT NULL DEFAULT 0 -- attempts in a row
);
CREATE INDEX mail_users_company ON mail_users (company_id, user_id);

CREATE TABLE mail_told (
    user_id TEXT NOT NULL REFERENCES users (id),
    item_id TEXT NOT NULL, -- of a proposal, an authorization or a loosening
    company_id TEXT NOT NULL REFERENCES companies (id),
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, item_id)
);
CREATE INDEX mail_told_company ON mail_told (company_id, user_id);
CREATE INDEX mail_told_at ON mail_told (at);

CREATE TABLE mail_letters (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    company_id TEXT NOT NULL REFERENCES companies (id),
    sealed TEXT NOT NULL, -- the invitation's token, by a key of the key file
    created_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    failures BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX mail_letters_due ON mail_letters (next_at, id);
CREATE INDEX mail_letters_user ON mail_letters (user_id);
CREATE INDEX mail_letters_created ON mail_letters (created_at);
