-- A company's chain begins with its company: from now on a head that is missing
-- was taken away. Companies whose first entry was not sealed yet get theirs here;
-- the service signs it.

-- +goose Up
INSERT INTO activity_heads (company_id, first_seq, anchor, last_seq, hash, signature)
SELECT c.id, 1, '', 0, '', '' FROM companies c
WHERE NOT EXISTS (SELECT 1 FROM activity_heads h WHERE h.company_id = c.id)
    AND NOT EXISTS (SELECT 1 FROM activity e WHERE e.company_id = c.id AND e.seq > 0);
