-- Indexes by which connections and clients that nobody uses are found and removed.

-- +goose Up
CREATE INDEX oauth_codes_connection ON oauth_codes (connection_id);
CREATE INDEX oauth_tokens_connection ON oauth_tokens (connection_id);
CREATE INDEX oauth_connections_created ON oauth_connections (created_at);
CREATE INDEX oauth_connections_client ON oauth_connections (client_id);
CREATE INDEX oauth_clients_created ON oauth_clients (created_at);
