-- Why a caller did something, and the ticket that it names.

-- +goose Up
ALTER TABLE commands ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE commands ADD COLUMN ticket TEXT NOT NULL DEFAULT '';
ALTER TABLE proposals ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE proposals ADD COLUMN ticket TEXT NOT NULL DEFAULT '';
ALTER TABLE activity ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE activity ADD COLUMN ticket TEXT NOT NULL DEFAULT '';
