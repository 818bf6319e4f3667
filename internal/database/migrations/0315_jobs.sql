CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    command TEXT NOT NULL,
    arguments TEXT NOT NULL, -- a JSON object
    filter TEXT NOT NULL,
    maker_kind TEXT NOT NULL,
    maker_id TEXT NOT NULL,
    maker_name TEXT NOT NULL,
    reason TEXT NOT NULL,
    ticket TEXT NOT NULL,
    status TEXT NOT NULL,
    why TEXT NOT NULL,
    rate BIGINT NOT NULL, -- devices a minute
    total BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    starts_at BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL
);
CREATE INDEX jobs_company ON jobs (company_id, created_at, id);
CREATE INDEX jobs_due ON jobs (next_at, id) WHERE status = 'RUNNING';
CREATE INDEX jobs_ended ON jobs (ended_at, id) WHERE ended_at > 0;
CREATE INDEX jobs_open ON jobs (company_id, id) WHERE status IN ('RUNNING', 'PAUSED');

-- The devices of a job. state is WAITING, IN_PROGRESS since taken_at, or the result.
CREATE TABLE job_devices (
    job_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    asset_id TEXT NOT NULL,
    state TEXT NOT NULL,
    taken_at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (job_id, n)
) /* clustered */;
CREATE INDEX job_devices_state ON job_devices (job_id, state, n);
CREATE INDEX job_devices_taken ON job_devices (taken_at, job_id, n) WHERE state = 'IN_PROGRESS';
