-- Each command for an agent changes open_deliveries, which the index of the ended agents read:
-- PostgreSQL wrote an entry in every index of the table for it. A column that hardly ever changes
-- takes its place.

-- +goose Up
ALTER TABLE agent_devices ADD COLUMN orphaned BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE agent_devices SET orphaned = TRUE WHERE state = 'DELETED' AND open_deliveries > 0;
DROP INDEX agent_devices_orphans;
CREATE INDEX agent_devices_orphans ON agent_devices (id) WHERE orphaned;
