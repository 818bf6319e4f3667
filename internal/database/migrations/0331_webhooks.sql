-- Addresses that get a company's events, and how far each of them is.

-- +goose Up
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    url TEXT NOT NULL,
    events TEXT NOT NULL, -- types, separated by spaces; empty: all
    state TEXT NOT NULL, -- ENABLED or DISABLED
    why TEXT NOT NULL, -- it is disabled
    disabled_at BIGINT NOT NULL,
    secret TEXT NOT NULL, -- sealed by a key of the key file
    former TEXT NOT NULL, -- the secret before, which signs until former_until
    former_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    pos BIGINT NOT NULL, -- of the last event that was sent, held or passed over
    moved_at BIGINT NOT NULL, -- when pos was written
    next_at BIGINT NOT NULL, -- when the first of what is held is due; 0: nothing is held
    missed BIGINT NOT NULL, -- events that were deleted before they were sent, at most
    tried BIGINT NOT NULL, -- attempts so far
    version BIGINT NOT NULL, -- rises with each change
    claim TEXT NOT NULL, -- of who sends
    claim_until BIGINT NOT NULL
);
CREATE INDEX webhooks_company ON webhooks (company_id, created_at, id);
CREATE INDEX webhooks_enabled ON webhooks (claim_until, id) WHERE state = 'ENABLED';
CREATE INDEX webhooks_failing ON webhooks (next_at) WHERE state = 'ENABLED' AND next_at > 0;
CREATE INDEX webhooks_disabled ON webhooks (disabled_at) WHERE state = 'DISABLED';

-- What waits behind an event that a webhook's receiver did not take: an asset, or the event
-- alone where it is of no asset.
CREATE TABLE webhook_held (
    webhook_id TEXT NOT NULL REFERENCES webhooks (id),
    held TEXT NOT NULL, -- the id of the asset or the event
    asset_id TEXT NOT NULL, -- empty: the event alone
    pos BIGINT NOT NULL, -- what comes from here on is not sent yet
    attempts BIGINT NOT NULL, -- to send the first event that failed
    since BIGINT NOT NULL, -- the first of them; 0: none failed
    next_at BIGINT NOT NULL,
    PRIMARY KEY (webhook_id, held)
);

-- The last attempts of each webhook.
CREATE TABLE webhook_attempts (
    webhook_id TEXT NOT NULL REFERENCES webhooks (id),
    n BIGINT NOT NULL,
    at BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    pos BIGINT NOT NULL, -- of the event; 0: a test
    attempt BIGINT NOT NULL,
    status BIGINT NOT NULL, -- of HTTP; 0: no answer
    detail TEXT NOT NULL,
    took BIGINT NOT NULL, -- milliseconds
    next_at BIGINT NOT NULL, -- 0: it is not tried again
    PRIMARY KEY (webhook_id, n)
) /* clustered */;
