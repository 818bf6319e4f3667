SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
ALTER TABLE ONLY public.activity_heads
    ADD CONSTRAINT activity_heads_pkey PRIMARY KEY (company_id);
ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_pkey PRIMARY KEY (company_id, at, id);
ALTER TABLE ONLY public.agent_deliveries
    ADD CONSTRAINT agent_deliveries_pkey PRIMARY KEY (command_id);
ALTER TABLE ONLY public.agent_devices
    ADD CONSTRAINT agent_devices_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.asset_apps
    ADD CONSTRAINT asset_apps_pkey PRIMARY KEY (asset_id);
ALTER TABLE ONLY public.asset_counts
    ADD CONSTRAINT asset_counts_pkey PRIMARY KEY (company_id, status, policy_id);
ALTER TABLE ONLY public.asset_places
    ADD CONSTRAINT asset_places_pkey PRIMARY KEY (asset_id, reported_at);
ALTER TABLE ONLY public.asset_terms
    ADD CONSTRAINT asset_terms_pkey PRIMARY KEY (company_id, term, asset_id);
ALTER TABLE ONLY public.assets
    ADD CONSTRAINT assets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.budgets
    ADD CONSTRAINT budgets_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.claims
    ADD CONSTRAINT claims_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.command_polls
    ADD CONSTRAINT command_polls_pkey PRIMARY KEY (command_id);
ALTER TABLE ONLY public.commands
    ADD CONSTRAINT commands_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.companies
    ADD CONSTRAINT companies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.companion_tokens
    ADD CONSTRAINT companion_tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.device_names
    ADD CONSTRAINT device_names_pkey PRIMARY KEY (company_id, name);
ALTER TABLE ONLY public.gate_switches
    ADD CONSTRAINT gate_switches_pkey PRIMARY KEY (company_id, gate);
ALTER TABLE ONLY public.goose_db_version
    ADD CONSTRAINT goose_db_version_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (company_id, issuer, subject);
ALTER TABLE ONLY public.identity_domains
    ADD CONSTRAINT identity_domains_pkey PRIMARY KEY (domain);
ALTER TABLE ONLY public.identity_providers
    ADD CONSTRAINT identity_providers_pkey PRIMARY KEY (company_id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (company_id, id);
ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.oauth_codes
    ADD CONSTRAINT oauth_codes_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.oauth_connections
    ADD CONSTRAINT oauth_connections_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.patch_counts
    ADD CONSTRAINT patch_counts_pkey PRIMARY KEY (company_id, policy_id, month);
ALTER TABLE ONLY public.platform_quotas
    ADD CONSTRAINT platform_quotas_pkey PRIMARY KEY (project);
ALTER TABLE ONLY public.policies
    ADD CONSTRAINT policies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.policy_pushes
    ADD CONSTRAINT policy_pushes_pkey PRIMARY KEY (policy_id, vendor_version);
ALTER TABLE ONLY public.policy_revisions
    ADD CONSTRAINT policy_revisions_pkey PRIMARY KEY (policy_id, revision);
ALTER TABLE ONLY public.proposals
    ADD CONSTRAINT proposals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.push_retries
    ADD CONSTRAINT push_retries_pkey PRIMARY KEY (policy_id);
ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, hash);
ALTER TABLE ONLY public.saved_views
    ADD CONSTRAINT saved_views_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.signin_steps
    ADD CONSTRAINT signin_steps_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.signups
    ADD CONSTRAINT signups_pkey PRIMARY KEY (state);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
CREATE INDEX activity_actor ON public.activity USING btree (company_id, actor_kind, at, id);
CREATE INDEX activity_area ON public.activity USING btree (company_id, area, at, id) WHERE (area <> 'command'::text);
CREATE UNIQUE INDEX activity_chain ON public.activity USING btree (company_id, seq) WHERE (seq > 0);
CREATE INDEX activity_target ON public.activity USING btree (company_id, target_id, at, id);
CREATE INDEX activity_trouble ON public.activity USING btree (company_id, outcome, at, id) WHERE (outcome <> 'OK'::text);
CREATE INDEX activity_unsealed ON public.activity USING btree (company_id, at, id) WHERE (seq = 0);
CREATE INDEX agent_deliveries_deadline ON public.agent_deliveries USING btree (deadline) WHERE (deadline <> 0);
CREATE INDEX agent_deliveries_device ON public.agent_deliveries USING btree (device_id, created_at, command_id);
CREATE INDEX agent_deliveries_due ON public.agent_deliveries USING btree (lease_until);
CREATE INDEX agent_devices_asset ON public.agent_devices USING btree (asset_id, epoch);
CREATE INDEX agent_devices_erasing ON public.agent_devices USING btree (erasing_at) WHERE (erasing_at <> 0);
CREATE INDEX agent_tokens_expires ON public.agent_tokens USING btree (expires_at);
CREATE INDEX api_keys_company ON public.api_keys USING btree (company_id, created_at, id);
CREATE UNIQUE INDEX api_keys_prefix ON public.api_keys USING btree (prefix);
CREATE INDEX asset_counts_policy ON public.asset_counts USING btree (company_id, policy_id, status);
CREATE INDEX assets_located ON public.assets USING btree (company_id, synced_at, id) WHERE (location <> ''::text);
CREATE INDEX assets_policy_created ON public.assets USING btree (company_id, policy_id, status, created_at, id) WHERE (policy_id <> ''::text);
CREATE INDEX assets_policy_identification ON public.assets USING btree (company_id, policy_id, status, identification, id) WHERE (policy_id <> ''::text);
CREATE INDEX assets_policy_status ON public.assets USING btree (company_id, policy_id, status, id) WHERE (policy_id <> ''::text);
CREATE INDEX assets_policy_synced ON public.assets USING btree (company_id, policy_id, status, synced_at, id) WHERE (policy_id <> ''::text);
CREATE INDEX assets_serial ON public.assets USING btree (company_id, serial_key) WHERE (serial_key <> ''::text);
CREATE INDEX assets_stable ON public.assets USING btree (company_id, stable_id) WHERE (stable_id <> ''::text);
CREATE INDEX assets_status ON public.assets USING btree (company_id, status, id);
CREATE INDEX assets_status_created ON public.assets USING btree (company_id, status, created_at, id);
CREATE INDEX assets_status_identification ON public.assets USING btree (company_id, status, identification, id);
CREATE INDEX assets_status_synced ON public.assets USING btree (company_id, status, synced_at, id);
CREATE INDEX assets_synced ON public.assets USING btree (company_id, synced_at, id);
CREATE INDEX assets_unindexed ON public.assets USING btree (id) WHERE (search_terms = ''::text);
CREATE INDEX budgets_closes ON public.budgets USING btree (closes_at);
CREATE INDEX claims_expiry ON public.claims USING btree (expires_at);
CREATE INDEX command_polls_next ON public.command_polls USING btree (next_at);
CREATE INDEX commands_company ON public.commands USING btree (company_id, created_at, id, state);
CREATE INDEX commands_deadline ON public.commands USING btree (deadline, id) WHERE ((state = ANY (ARRAY['SENT'::text, 'UNCONFIRMED'::text])) AND (deadline > 0));
CREATE INDEX commands_history ON public.commands USING btree (asset_id, created_at, id);
CREATE UNIQUE INDEX commands_idempotency ON public.commands USING btree (idempotency_ref) WHERE (idempotency_ref <> ''::text);
CREATE INDEX commands_open ON public.commands USING btree (state, created_at, id) WHERE (state = ANY (ARRAY['PREPARED'::text, 'SENT'::text, 'UNCONFIRMED'::text]));
CREATE INDEX commands_open_of ON public.commands USING btree (asset_id) WHERE (state = ANY (ARRAY['PREPARED'::text, 'SENT'::text, 'UNCONFIRMED'::text]));
CREATE UNIQUE INDEX commands_ref ON public.commands USING btree (ref) WHERE (ref <> ''::text);
CREATE UNIQUE INDEX companies_enterprise ON public.companies USING btree (enterprise) WHERE (enterprise <> ''::text);
CREATE UNIQUE INDEX companies_slug ON public.companies USING btree (slug);
CREATE INDEX companion_tokens_expires ON public.companion_tokens USING btree (expires_at);
CREATE INDEX device_names_asset ON public.device_names USING btree (asset_id);
CREATE INDEX identities_user ON public.identities USING btree (user_id);
CREATE INDEX identity_domains_company ON public.identity_domains USING btree (company_id, domain);
CREATE INDEX messages_seen ON public.messages USING btree (seen_at);
CREATE INDEX oauth_clients_created ON public.oauth_clients USING btree (created_at);
CREATE INDEX oauth_clients_expires ON public.oauth_clients USING btree (expires_at) WHERE (expires_at <> 0);
CREATE INDEX oauth_codes_connection ON public.oauth_codes USING btree (connection_id);
CREATE INDEX oauth_codes_expires ON public.oauth_codes USING btree (expires_at);
CREATE INDEX oauth_connections_client ON public.oauth_connections USING btree (client_id);
CREATE INDEX oauth_connections_company ON public.oauth_connections USING btree (company_id, created_at, id);
CREATE INDEX oauth_connections_created ON public.oauth_connections USING btree (created_at);
CREATE UNIQUE INDEX oauth_connections_live ON public.oauth_connections USING btree (user_id, client_id) WHERE (revoked_at = 0);
CREATE INDEX oauth_tokens_connection ON public.oauth_tokens USING btree (connection_id);
CREATE INDEX oauth_tokens_expires ON public.oauth_tokens USING btree (expires_at);
CREATE INDEX passkeys_user ON public.passkeys USING btree (user_id, created_at, id);
CREATE INDEX policies_behind ON public.policies USING btree (push_tried_at, id) WHERE ((type = 'PLATFORM'::text) AND (NOT deleted) AND (push_version <> version));
CREATE INDEX policies_name ON public.policies USING btree (company_id, name, id) WHERE (NOT deleted);
CREATE UNIQUE INDEX policies_name_key ON public.policies USING btree (company_id, name_key) WHERE (NOT deleted);
CREATE INDEX policies_updated ON public.policies USING btree (company_id, updated_at, id) WHERE (NOT deleted);
CREATE INDEX policies_version ON public.policies USING btree (company_id, version, id) WHERE (NOT deleted);
CREATE INDEX proposals_apply_ref ON public.proposals USING btree (company_id, apply_ref) WHERE (apply_ref <> ''::text);
CREATE INDEX proposals_company ON public.proposals USING btree (company_id, created_at, id);
CREATE UNIQUE INDEX proposals_executing ON public.proposals USING btree (next_policy_id) WHERE (status = 'EXECUTING'::text);
CREATE INDEX proposals_look ON public.proposals USING btree (look_at, id) WHERE (look_at > 0);
CREATE UNIQUE INDEX proposals_naming ON public.proposals USING btree (company_id, next_name_key) WHERE ((status = 'EXECUTING'::text) AND (next_name_key <> ''::text));
CREATE INDEX proposals_policy ON public.proposals USING btree (company_id, policy_id, created_at, id);
CREATE UNIQUE INDEX proposals_propose_ref ON public.proposals USING btree (company_id, propose_ref) WHERE (propose_ref <> ''::text);
CREATE INDEX proposals_waiting ON public.proposals USING btree (company_id, expires_at) WHERE (status = 'PENDING'::text);
CREATE INDEX saved_views_company ON public.saved_views USING btree (company_id, name, id);
CREATE INDEX sessions_created ON public.sessions USING btree (created_at);
CREATE UNIQUE INDEX sessions_token ON public.sessions USING btree (token_hash);
CREATE INDEX sessions_user ON public.sessions USING btree (user_id, created_at);
CREATE INDEX signin_steps_expires ON public.signin_steps USING btree (expires_at);
CREATE INDEX signin_steps_user ON public.signin_steps USING btree (user_id, kind) WHERE (user_id <> ''::text);
CREATE INDEX signups_company ON public.signups USING btree (company_id, created_at);
CREATE INDEX signups_created ON public.signups USING btree (created_at);
CREATE INDEX users_company ON public.users USING btree (company_id, email);
CREATE UNIQUE INDEX users_email ON public.users USING btree (email);
ALTER TABLE ONLY public.agent_deliveries
    ADD CONSTRAINT agent_deliveries_device_id_fkey FOREIGN KEY (device_id) REFERENCES public.agent_devices(id);
ALTER TABLE ONLY public.agent_devices
    ADD CONSTRAINT agent_devices_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.policies(id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.asset_apps
    ADD CONSTRAINT asset_apps_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES public.assets(id);
ALTER TABLE ONLY public.asset_places
    ADD CONSTRAINT asset_places_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES public.assets(id);
ALTER TABLE ONLY public.assets
    ADD CONSTRAINT assets_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.command_polls
    ADD CONSTRAINT command_polls_command_id_fkey FOREIGN KEY (command_id) REFERENCES public.commands(id);
ALTER TABLE ONLY public.commands
    ADD CONSTRAINT commands_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES public.assets(id);
ALTER TABLE ONLY public.companion_tokens
    ADD CONSTRAINT companion_tokens_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES public.assets(id);
ALTER TABLE ONLY public.companion_tokens
    ADD CONSTRAINT companion_tokens_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.gate_switches
    ADD CONSTRAINT gate_switches_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.identity_domains
    ADD CONSTRAINT identity_domains_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.identity_providers
    ADD CONSTRAINT identity_providers_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.oauth_codes
    ADD CONSTRAINT oauth_codes_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES public.oauth_connections(id);
ALTER TABLE ONLY public.oauth_connections
    ADD CONSTRAINT oauth_connections_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.oauth_connections
    ADD CONSTRAINT oauth_connections_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES public.oauth_connections(id);
ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.policies
    ADD CONSTRAINT policies_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.policy_pushes
    ADD CONSTRAINT policy_pushes_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.policies(id);
ALTER TABLE ONLY public.policy_revisions
    ADD CONSTRAINT policy_revisions_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.policies(id);
ALTER TABLE ONLY public.proposals
    ADD CONSTRAINT proposals_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.proposals
    ADD CONSTRAINT proposals_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.policies(id);
ALTER TABLE ONLY public.push_retries
    ADD CONSTRAINT push_retries_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.policies(id);
ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.saved_views
    ADD CONSTRAINT saved_views_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.saved_views
    ADD CONSTRAINT saved_views_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.signups
    ADD CONSTRAINT signups_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_company_id_fkey FOREIGN KEY (company_id) REFERENCES public.companies(id);
