-- The record of who did what, and its chain.

-- +goose Up
CREATE TABLE activity (
    company_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    id TEXT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    actor_user_id TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    actor_prefix TEXT NOT NULL,
    area TEXT NOT NULL,
    action TEXT NOT NULL,
    target_kind TEXT NOT NULL,
    target_id TEXT NOT NULL,
    target_name TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reference TEXT NOT NULL,
    changes TEXT NOT NULL, -- JSON array; empty: none
    request_id TEXT NOT NULL,
    address TEXT NOT NULL,
    client TEXT NOT NULL,
    seq BIGINT NOT NULL DEFAULT 0, -- the place in the company's chain; 0: not sealed yet
    hash TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (company_id, at, id)
);
-- Most entries are of commands that went well: narrow indexes leave these out.
CREATE INDEX activity_actor ON activity (company_id, actor_kind, at, id);
CREATE INDEX activity_target ON activity (company_id, target_id, at, id);
CREATE INDEX activity_area ON activity (company_id, area, at, id) WHERE area <> 'command';
CREATE INDEX activity_trouble ON activity (company_id, outcome, at, id) WHERE outcome <> 'OK';
CREATE UNIQUE INDEX activity_chain ON activity (company_id, seq) WHERE seq > 0;
CREATE INDEX activity_unsealed ON activity (company_id, at, id) WHERE seq = 0;

-- Where each company's chain stands; see activity.Head.
CREATE TABLE activity_heads (
    company_id TEXT NOT NULL PRIMARY KEY,
    first_seq BIGINT NOT NULL,
    anchor TEXT NOT NULL,
    last_seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    signature TEXT NOT NULL
);

-- How long a company keeps its entries, in milliseconds.
ALTER TABLE companies ADD COLUMN keep_activity BIGINT NOT NULL DEFAULT 34560000000;
