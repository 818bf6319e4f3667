-- What limits a company's callers beside their permissions. A company that
-- exists gets the defaults.

-- +goose Up
ALTER TABLE companies ADD COLUMN apply_approval TEXT NOT NULL DEFAULT 'OFF';
ALTER TABLE companies ADD COLUMN second_person BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE companies ADD COLUMN approver_age BIGINT NOT NULL DEFAULT 86400000; -- milliseconds
ALTER TABLE companies ADD COLUMN destructive_approval BOOLEAN NOT NULL DEFAULT FALSE;
-- At most so many distinct devices in so many milliseconds; 0: no limit.
ALTER TABLE companies ADD COLUMN limit_devices BIGINT NOT NULL DEFAULT 25;
ALTER TABLE companies ADD COLUMN limit_window BIGINT NOT NULL DEFAULT 3600000;
ALTER TABLE companies ADD COLUMN require_reason TEXT NOT NULL DEFAULT 'OFF';
