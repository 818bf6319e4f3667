-- Companies that exist read once on the overview what is new. New ones do not.

-- +goose Up
ALTER TABLE companies ADD COLUMN upgrade_notice BOOLEAN NOT NULL DEFAULT FALSE; -- until it is dismissed
UPDATE companies SET upgrade_notice = TRUE;
