-- What assets are found by in a search: their words, begun with a newline each
-- in search_terms (empty: not indexed yet), and one row a word in asset_terms.

-- +goose Up
ALTER TABLE assets ADD COLUMN search_terms TEXT NOT NULL DEFAULT '';
CREATE INDEX assets_unindexed ON assets (id) WHERE search_terms = '';

CREATE TABLE asset_terms (
    company_id TEXT NOT NULL,
    term TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    PRIMARY KEY (company_id, term, asset_id)
) /* clustered */;
