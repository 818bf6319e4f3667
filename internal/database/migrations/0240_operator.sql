-- When the operator last did something that the service reports: backup.
CREATE TABLE operator_acts (
	name TEXT NOT NULL PRIMARY KEY,
	at   BIGINT NOT NULL
);

-- Enterprises of which notifications came although no company has them: another
-- installation uses the same subscription.
CREATE TABLE foreign_enterprises (
	enterprise TEXT NOT NULL PRIMARY KEY,
	first_at   BIGINT NOT NULL,
	last_at    BIGINT NOT NULL
);

-- Enterprises of companies that the platform says it does not have, or are not ours.
CREATE TABLE lost_enterprises (
	company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
	enterprise TEXT NOT NULL,
	since      BIGINT NOT NULL
);

-- Enterprises that were given up, or are being given up while ended_at is 0. The row is
-- there from before the platform is told.
CREATE TABLE disconnections (
	enterprise TEXT NOT NULL PRIMARY KEY,
	company_id TEXT NOT NULL REFERENCES companies (id),
	begun_at   BIGINT NOT NULL,
	ended_at   BIGINT NOT NULL
);
