package webhook

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/event"
)

// claimFor is how long a claim holds without a record: longer than a call.
const claimFor = 3 * CallTime

// Due is a webhook for which something may be to be sent.
type Due struct {
	Webhook
	Last int64 // position of the company's newest event
}

// Record is what a wave changes.
type Record struct {
	WebhookID string
	CompanyID string
	Claim     string
	Until     time.Time // when the claim ends; not after now: it is given back
	Position  int64
	NextAt    time.Time // when the first of what is held is due; zero: nothing is
	Held      []Held    // what is held from now on, or differently
	Free      []string  // keys of what is not held any more
	Attempts  []Attempt
	Missed    int64  // events that were deleted before they were sent, at most
	Disable   string // why the webhook is disabled; empty: it is not
}

// Queue is the store, as the Runner needs it. Each method fails as the database does.
type Queue interface {
	// DueWebhooks returns enabled webhooks that no replica has the claim of, of companies
	// with newer events or with something held that is due; the least recently served first.
	DueWebhooks(ctx context.Context, now time.Time) ([]Due, error)
	// HeldBack returns what a webhook holds, the first due first.
	HeldBack(ctx context.Context, webhookID string) ([]Held, error)
	// EventHead returns the newest and the oldest position of a company's events.
	EventHead(ctx context.Context, companyID string) (event.Head, error)
	// Events returns events in the order of their positions.
	Events(ctx context.Context, q event.Query) ([]event.Event, error)
	// ClaimWebhook takes the claim of a webhook of that version; false if it changed since.
	ClaimWebhook(ctx context.Context, w Webhook, claim string, until time.Time) (bool, error)
	// RecordWave keeps what became of a wave; false, and nothing is kept, if the claim is lost.
	RecordWave(ctx context.Context, r Record) (bool, error)
	// PassEvents moves the position of a webhook of that version past events that it does not get.
	PassEvents(ctx context.Context, w Webhook, position int64) error
}
