-- The tokens of an asset go with it.
CREATE INDEX agent_tokens_asset ON agent_tokens (asset_id) WHERE asset_id <> '';
CREATE INDEX companion_tokens_asset ON companion_tokens (asset_id);
