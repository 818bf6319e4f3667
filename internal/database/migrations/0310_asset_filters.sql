-- What lists of assets are asked for by: what a device reported of its battery, its
-- security patch and its policy, the apps that it has, and when it was seen. All are
-- filled by indexing the assets again, the apps by each device's next report.

-- +goose Up
ALTER TABLE assets ADD COLUMN battery DOUBLE PRECISION NOT NULL DEFAULT -1; -- percent; -1: not reported
ALTER TABLE assets ADD COLUMN patch TEXT NOT NULL DEFAULT ''; -- such as 2026-10-05; empty: not reported
ALTER TABLE assets ADD COLUMN compliant BIGINT NOT NULL DEFAULT -1; -- 0: no, 1: yes, -1: not reported
ALTER TABLE assets ADD COLUMN archived_status TEXT NOT NULL DEFAULT ''; -- the status before it was archived
UPDATE assets SET search_terms = '', patch = CASE WHEN strpos(specifications, '"securityPatchLevel":"') > 0
    AND substr(specifications, strpos(specifications, '"securityPatchLevel":"') + 22, 11) LIKE '20__-__-__"'
    THEN substr(specifications, strpos(specifications, '"securityPatchLevel":"') + 22, 10) ELSE '' END;
DELETE FROM asset_terms;

CREATE INDEX assets_battery ON assets (company_id, battery, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') AND battery >= 0;
CREATE INDEX assets_patch ON assets (company_id, patch, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') AND patch <> '';
CREATE INDEX assets_compliant ON assets (company_id, compliant, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING');
CREATE INDEX assets_push ON assets (company_id, push_reachable, management, id, status) WHERE status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING');
CREATE INDEX assets_applied ON assets (company_id, policy_id, applied_version, id) WHERE policy_id <> '';
CREATE INDEX assets_status_seen ON assets (company_id, status, last_seen_at, id);
CREATE INDEX assets_policy_seen ON assets (company_id, policy_id, status, last_seen_at, id) WHERE policy_id <> '';

-- The apps that managed devices have, as their status reports list them.
CREATE TABLE installed_apps (
    asset_id TEXT NOT NULL,
    package TEXT NOT NULL,
    company_id TEXT NOT NULL,
    version_code BIGINT NOT NULL, -- -1: not reported
    PRIMARY KEY (asset_id, package)
) /* clustered */;
CREATE INDEX installed_apps_package ON installed_apps (company_id, package, version_code, asset_id);

-- Archived assets are in no list.
DROP INDEX assets_synced;
CREATE INDEX assets_synced ON assets (company_id, synced_at, id) WHERE status <> 'ARCHIVED';
