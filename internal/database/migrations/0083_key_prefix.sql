-- A key's prefix is how its text begins, mk_ included.

-- +goose Up
UPDATE api_keys SET prefix = 'mk_' || prefix WHERE length(prefix) = 8;
