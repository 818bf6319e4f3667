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
SET default_table_access_method = heap;
CREATE TABLE public.activity (
    company_id text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    actor_user_id text NOT NULL COLLATE pg_catalog."C",
    actor_name text NOT NULL COLLATE pg_catalog."C",
    actor_prefix text NOT NULL COLLATE pg_catalog."C",
    area text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    target_kind text NOT NULL COLLATE pg_catalog."C",
    target_id text NOT NULL COLLATE pg_catalog."C",
    target_name text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL COLLATE pg_catalog."C",
    reference text NOT NULL COLLATE pg_catalog."C",
    changes text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    client text NOT NULL COLLATE pg_catalog."C",
    seq bigint DEFAULT 0 NOT NULL,
    hash text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.activity_heads (
    company_id text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    anchor text NOT NULL COLLATE pg_catalog."C",
    last_seq bigint NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    signature text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.agent_deliveries (
    command_id text NOT NULL COLLATE pg_catalog."C",
    device_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    args text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    deadline bigint NOT NULL,
    final boolean NOT NULL,
    lease_until bigint NOT NULL,
    accepted_at bigint NOT NULL,
    held_until bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.agent_devices (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    asset_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    key_alg text NOT NULL COLLATE pg_catalog."C",
    key_spki text NOT NULL COLLATE pg_catalog."C",
    last_sequence bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    wiped boolean NOT NULL,
    capabilities text NOT NULL COLLATE pg_catalog."C",
    push_token text NOT NULL COLLATE pg_catalog."C",
    open_deliveries bigint NOT NULL,
    erasing_at bigint NOT NULL,
    enrolled_at bigint NOT NULL,
    seen_at bigint NOT NULL
);
CREATE TABLE public.agent_tokens (
    hash text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    policy_id text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL,
    device_id text NOT NULL COLLATE pg_catalog."C",
    spent_at bigint NOT NULL
);
CREATE TABLE public.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    prefix text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    permissions bigint NOT NULL,
    created_by text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    revoked_at bigint DEFAULT 0 NOT NULL,
    last_used_at bigint DEFAULT 0 NOT NULL,
    policies text DEFAULT 'null'::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.asset_apps (
    asset_id text NOT NULL COLLATE pg_catalog."C",
    since bigint NOT NULL,
    apps text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.asset_counts (
    company_id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    policy_id text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL
);
CREATE TABLE public.asset_places (
    asset_id text NOT NULL COLLATE pg_catalog."C",
    reported_at bigint NOT NULL,
    latitude bigint NOT NULL,
    longitude bigint NOT NULL,
    accuracy bigint NOT NULL
);
CREATE TABLE public.asset_terms (
    company_id text NOT NULL COLLATE pg_catalog."C",
    term text NOT NULL COLLATE pg_catalog."C",
    asset_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.assets (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    policy_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    identification text NOT NULL COLLATE pg_catalog."C",
    synced_at bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    named boolean DEFAULT false NOT NULL,
    serial_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    brand_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    stable_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    epoch bigint DEFAULT 0 NOT NULL,
    management text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    ownership text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    mode text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    device_name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    applied_policy_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    applied_version bigint DEFAULT 0 NOT NULL,
    enrolled_at bigint DEFAULT 0 NOT NULL,
    last_seen_at bigint DEFAULT 0 NOT NULL,
    lost_mode boolean DEFAULT false NOT NULL,
    push_reachable boolean DEFAULT false NOT NULL,
    api_level bigint DEFAULT 0 NOT NULL,
    custom_data text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    tags text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    specifications text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    location text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    status_report text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    search_terms text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.budgets (
    key text NOT NULL COLLATE pg_catalog."C",
    used bigint NOT NULL,
    closes_at bigint NOT NULL
);
CREATE TABLE public.claims (
    id text NOT NULL COLLATE pg_catalog."C",
    ref text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    attempt bigint NOT NULL,
    leased_until bigint NOT NULL,
    expires_at bigint NOT NULL,
    answer text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.command_polls (
    command_id text NOT NULL COLLATE pg_catalog."C",
    next_at bigint NOT NULL
);
CREATE TABLE public.commands (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    asset_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    feedback_at bigint NOT NULL,
    outcome text NOT NULL COLLATE pg_catalog."C",
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    actor_prefix text NOT NULL COLLATE pg_catalog."C",
    actor_name text NOT NULL COLLATE pg_catalog."C",
    ref text NOT NULL COLLATE pg_catalog."C",
    deadline bigint NOT NULL,
    policy_id text NOT NULL COLLATE pg_catalog."C",
    idempotency_ref text NOT NULL COLLATE pg_catalog."C",
    sender text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.companies (
    id text NOT NULL COLLATE pg_catalog."C",
    slug text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    device_commands boolean NOT NULL,
    destructive_commands boolean NOT NULL,
    policy_changes boolean NOT NULL,
    provisioning boolean NOT NULL,
    oauth_connections boolean NOT NULL,
    inactive_after bigint NOT NULL,
    enterprise text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    keep_activity bigint DEFAULT '34560000000'::bigint NOT NULL
);
CREATE TABLE public.companion_tokens (
    hash text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    asset_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    expires_at bigint NOT NULL,
    device_id text NOT NULL COLLATE pg_catalog."C",
    spent_at bigint NOT NULL
);
CREATE TABLE public.device_names (
    company_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    asset_id text NOT NULL COLLATE pg_catalog."C",
    observed_at bigint NOT NULL,
    ended boolean NOT NULL
);
CREATE TABLE public.gate_switches (
    company_id text NOT NULL COLLATE pg_catalog."C",
    gate text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    at bigint NOT NULL,
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    actor_name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.goose_db_version (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_db_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_db_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.identities (
    company_id text NOT NULL COLLATE pg_catalog."C",
    issuer text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE TABLE public.identity_domains (
    domain text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.identity_providers (
    company_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    issuer text NOT NULL COLLATE pg_catalog."C",
    client_id text NOT NULL COLLATE pg_catalog."C",
    client_secret text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    creates_users boolean NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    updated_at bigint NOT NULL
);
CREATE TABLE public.leases (
    name text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
CREATE TABLE public.messages (
    company_id text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    seen_at bigint NOT NULL
);
CREATE TABLE public.oauth_clients (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    redirect_uris text NOT NULL COLLATE pg_catalog."C",
    dynamic boolean NOT NULL,
    secret_hash text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.oauth_codes (
    hash text NOT NULL COLLATE pg_catalog."C",
    connection_id text NOT NULL COLLATE pg_catalog."C",
    client_id text NOT NULL COLLATE pg_catalog."C",
    redirect_uri text NOT NULL COLLATE pg_catalog."C",
    code_challenge text NOT NULL COLLATE pg_catalog."C",
    resource text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL,
    used boolean NOT NULL
);
CREATE TABLE public.oauth_connections (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    client_id text NOT NULL COLLATE pg_catalog."C",
    client_name text NOT NULL COLLATE pg_catalog."C",
    scopes bigint NOT NULL,
    frozen boolean NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    revoked_at bigint NOT NULL
);
CREATE TABLE public.oauth_tokens (
    hash text NOT NULL COLLATE pg_catalog."C",
    connection_id text NOT NULL COLLATE pg_catalog."C",
    refresh boolean NOT NULL,
    expires_at bigint NOT NULL,
    used boolean NOT NULL
);
CREATE TABLE public.passkeys (
    id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    credential text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL
);
CREATE TABLE public.patch_counts (
    company_id text NOT NULL COLLATE pg_catalog."C",
    policy_id text NOT NULL COLLATE pg_catalog."C",
    month text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL
);
CREATE TABLE public.platform_quotas (
    project text NOT NULL COLLATE pg_catalog."C",
    units bigint NOT NULL,
    filled_at bigint NOT NULL,
    paused_until bigint NOT NULL
);
CREATE TABLE public.policies (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    name_key text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    vr_only boolean NOT NULL,
    version bigint NOT NULL,
    description text NOT NULL COLLATE pg_catalog."C",
    labels text NOT NULL COLLATE pg_catalog."C",
    group_name text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted boolean DEFAULT false NOT NULL,
    push_version bigint DEFAULT 0 NOT NULL,
    push_error text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    pushed_at bigint DEFAULT 0 NOT NULL,
    push_tried_at bigint DEFAULT 0 NOT NULL,
    document text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.policy_pushes (
    policy_id text NOT NULL COLLATE pg_catalog."C",
    vendor_version bigint NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.policy_revisions (
    policy_id text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    version bigint NOT NULL,
    saved_at bigint NOT NULL,
    saved_by_kind text NOT NULL COLLATE pg_catalog."C",
    saved_by_id text NOT NULL COLLATE pg_catalog."C",
    saved_by_name text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    origin text NOT NULL COLLATE pg_catalog."C",
    proposal_id text NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL COLLATE pg_catalog."C",
    labels text NOT NULL COLLATE pg_catalog."C",
    group_name text NOT NULL COLLATE pg_catalog."C",
    document text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.proposals (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    capability text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    impact text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL COLLATE pg_catalog."C",
    summary text NOT NULL COLLATE pg_catalog."C",
    policy_id text NOT NULL COLLATE pg_catalog."C",
    target_name text NOT NULL COLLATE pg_catalog."C",
    base_version bigint NOT NULL,
    next_policy_id text NOT NULL COLLATE pg_catalog."C",
    next_name text NOT NULL COLLATE pg_catalog."C",
    next_name_key text NOT NULL COLLATE pg_catalog."C",
    owner_kind text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    owner_user_id text NOT NULL COLLATE pg_catalog."C",
    owner_name text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    propose_ref text NOT NULL COLLATE pg_catalog."C",
    apply_ref text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    holder text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    look_at bigint DEFAULT 0 NOT NULL,
    looks bigint DEFAULT 0 NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    failure text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    outcome text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    request text NOT NULL COLLATE pg_catalog."C",
    fields text NOT NULL COLLATE pg_catalog."C",
    next_document text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.push_retries (
    policy_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    failing_since bigint NOT NULL,
    next_at bigint NOT NULL,
    refused boolean NOT NULL
);
CREATE TABLE public.recovery_codes (
    user_id text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.saved_views (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    query text NOT NULL COLLATE pg_catalog."C",
    shared boolean NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    token_hash text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    proved_at bigint NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C",
    agent text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.signin_steps (
    hash text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    data text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
CREATE TABLE public.signups (
    state text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    enterprise text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    address text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    token text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.users (
    id text NOT NULL COLLATE pg_catalog."C",
    company_id text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    rights bigint NOT NULL,
    policies text NOT NULL COLLATE pg_catalog."C",
    password_hash text NOT NULL COLLATE pg_catalog."C",
    disabled boolean NOT NULL,
    created_at bigint NOT NULL,
    last_sign_in_at bigint NOT NULL
);
