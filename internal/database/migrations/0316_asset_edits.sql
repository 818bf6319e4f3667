-- The last edit of each asset by a person, so that it can be undone; removed after a day.
CREATE TABLE asset_edits (
    asset_id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    ref TEXT NOT NULL, -- the request id, of all assets of a job the same
    at BIGINT NOT NULL,
    before TEXT NOT NULL, -- JSON: what people said of the asset
    after TEXT NOT NULL
) /* clustered */;
CREATE INDEX asset_edits_at ON asset_edits (at, asset_id);
CREATE INDEX asset_edits_ref ON asset_edits (ref, asset_id);
