-- The number of these tables and of the lowest program that may write them;
-- which migrations were run; and the service's own keys, by id alone.

-- +goose Up
CREATE TABLE versions (
    id BIGINT NOT NULL PRIMARY KEY, -- 1: there is one row
    schema_number BIGINT NOT NULL,
    lowest_writer BIGINT NOT NULL
);

CREATE TABLE applied_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    applied_at BIGINT NOT NULL
);

CREATE TABLE service_keys (
    id TEXT NOT NULL PRIMARY KEY,
    first_seen_at BIGINT NOT NULL,
    lost_at BIGINT NOT NULL -- when an operator accepted its loss; 0: it is needed
);
