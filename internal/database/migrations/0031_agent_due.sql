-- What became due and was perhaps told to nobody is looked for by the time at
-- which it did: lease_until, which is the time of making for a delivery that
-- was never offered.

-- +goose Up
CREATE INDEX agent_deliveries_due ON agent_deliveries (lease_until);
