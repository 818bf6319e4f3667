-- The version of a company's controls: it rises in each transaction that may change what
-- one of the company's callers may do. A row is made by the first; without one it is 0.
-- It is a table of its own because its row is locked last, after all others.

-- +goose Up
CREATE TABLE control_versions (
    company_id TEXT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
);
