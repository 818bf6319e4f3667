-- Whether what a company's callers change is stopped, and when the platform was
-- last asked to cancel a command because of that.

-- +goose Up
ALTER TABLE companies ADD COLUMN stopped_at BIGINT NOT NULL DEFAULT 0; -- 0: not stopped
ALTER TABLE companies ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE companies ADD COLUMN stop_all BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX companies_stopped ON companies (stopped_at) WHERE stopped_at > 0;

CREATE TABLE command_cancels (
    command_id TEXT NOT NULL PRIMARY KEY,
    tried_at BIGINT NOT NULL
);
CREATE INDEX command_cancels_tried ON command_cancels (tried_at);
