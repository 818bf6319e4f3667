-- The last known places of assets that have no other place are deleted from this version on: those
-- of companions, and of assets that were merged. Companies that have some have a notice first.

-- +goose Up
UPDATE retentions SET next_at = -1 WHERE EXISTS (SELECT 1 FROM assets a
    WHERE a.company_id = retentions.company_id AND a.location <> ''
    AND NOT EXISTS (SELECT 1 FROM asset_places p WHERE p.asset_id = a.id));
