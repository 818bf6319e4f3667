-- How many enrolled devices of a policy have a security patch level of a month:
-- kept as assets change, so that nobody has to read them all.

-- +goose Up
CREATE TABLE patch_counts (
    company_id TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    month TEXT NOT NULL, -- such as 2026-10; empty: not reported
    count BIGINT NOT NULL,
    PRIMARY KEY (company_id, policy_id, month)
);

INSERT INTO patch_counts (company_id, policy_id, month, count)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1103),
months (month) AS (SELECT CAST(2008 + i / 12 AS VARCHAR) || '-' || CASE WHEN i % 12 < 9 THEN '0' ELSE '' END || CAST(1 + i % 12 AS VARCHAR) FROM n)
SELECT a.company_id, a.policy_id, COALESCE(m.month, ''), COUNT(*) FROM assets a
LEFT JOIN months m ON strpos(a.specifications, '"securityPatchLevel":"') > 0
    AND m.month = substr(a.specifications, strpos(a.specifications, '"securityPatchLevel":"') + 22, 7)
WHERE a.status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING') GROUP BY 1, 2, 3;
