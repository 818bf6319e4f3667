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

-- Enterprises that are being given up. The row is there from before the platform is
-- told until the company is disconnected.
CREATE TABLE disconnections (
	company_id TEXT NOT NULL PRIMARY KEY REFERENCES companies (id),
	enterprise TEXT NOT NULL,
	begun_at   BIGINT NOT NULL
);
