-- What the platform's adapter keeps: the vendor's quota, tries at pushing
-- policies, when to ask after commands, and sign-ups under way.

-- +goose Up
-- Units flow back with time; a query costs as many as the window has
-- milliseconds, so that all stays in whole numbers.
CREATE TABLE platform_quotas (
    project TEXT PRIMARY KEY,
    units BIGINT NOT NULL,
    filled_at BIGINT NOT NULL,
    paused_until BIGINT NOT NULL -- for background queries
);

-- A version of a policy that could not be pushed.
CREATE TABLE push_retries (
    policy_id TEXT PRIMARY KEY REFERENCES policies (id),
    version BIGINT NOT NULL,
    failing_since BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    refused BOOLEAN NOT NULL -- not due again
);

CREATE TABLE command_polls (
    command_id TEXT PRIMARY KEY REFERENCES commands (id),
    next_at BIGINT NOT NULL
);
CREATE INDEX command_polls_next ON command_polls (next_at);

CREATE TABLE signups (
    state TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    name TEXT NOT NULL, -- the vendor's
    created_at BIGINT NOT NULL,
    enterprise TEXT NOT NULL DEFAULT ''
);
CREATE INDEX signups_created ON signups (created_at);
