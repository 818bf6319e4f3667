-- The codes with which devices enroll. A code is written before it is handed out.
CREATE TABLE enrollment_codes (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    management TEXT NOT NULL, -- PLATFORM or AGENT
    personal_usage TEXT NOT NULL,
    maker_kind TEXT NOT NULL,
    maker_id TEXT NOT NULL,
    maker_name TEXT NOT NULL,
    tags TEXT NOT NULL, -- JSON; of each device that enrolls
    max_devices BIGINT NOT NULL, -- 0: no limit
    devices BIGINT NOT NULL, -- that have enrolled
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    ref TEXT NOT NULL, -- the platform's name of the token; empty: there is none
    drop_at BIGINT NOT NULL -- when the platform is next asked to delete it; 0: never
);
CREATE INDEX enrollment_codes_company ON enrollment_codes (company_id, created_at, id);
CREATE INDEX enrollment_codes_drop ON enrollment_codes (drop_at, id) WHERE drop_at > 0;
CREATE INDEX enrollment_codes_expires ON enrollment_codes (expires_at, id);

-- The devices that enrolled with a code.
CREATE TABLE enrollment_uses (
    code_id TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    device TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (code_id, asset_id, epoch)
) /* clustered */;

ALTER TABLE agent_tokens ADD COLUMN code_id TEXT NOT NULL DEFAULT '';
CREATE INDEX agent_tokens_code ON agent_tokens (code_id) WHERE code_id <> '';
