-- Agents for which a command was kept at the moment at which they ended.

-- +goose Up
CREATE INDEX agent_devices_orphans ON agent_devices (id) WHERE state = 'DELETED' AND open_deliveries > 0;
