-- Passkeys belong to the address of the service. The service records it when it starts, so that
-- `muster approval keys`, which runs without the service's settings, writes the right one.

-- +goose Up
ALTER TABLE operator_acts ADD COLUMN value TEXT NOT NULL DEFAULT '';
