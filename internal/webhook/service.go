package webhook

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Store keeps webhooks. Finders, and methods that change a webhook, return fault.NotFound. Who makes a change is who the
// context says.
type Store interface {
	// CreateWebhook stores a webhook, which gets what happens from now on. It fails with
	// fault.Refused above MaxOfCompany.
	CreateWebhook(ctx context.Context, w Webhook) error
	// Webhooks returns those of a company, the oldest first.
	Webhooks(ctx context.Context, companyID string) ([]Webhook, error)
	// Webhook returns a webhook of the company, or fault.NotFound.
	Webhook(ctx context.Context, companyID, id string) (Webhook, error)
	// WebhookAttempts returns the last attempts, the newest first.
	WebhookAttempts(ctx context.Context, companyID, id string) ([]Attempt, error)
	// AddWebhookAttempt keeps the attempt of a test.
	AddWebhookAttempt(ctx context.Context, companyID, id string, a Attempt) error
	// ReplayWebhook has a webhook send again what comes after a position, if it is before
	// what was sent.
	ReplayWebhook(ctx context.Context, companyID, id string, after int64) (Webhook, error)
	// RotateWebhook replaces the secret; the one before signs, too, until a time.
	RotateWebhook(ctx context.Context, companyID, id string, secret []byte, until time.Time) (Webhook, error)
	// FinishWebhookRotation ends the secret before; fault.Unsupported if there is none.
	FinishWebhookRotation(ctx context.Context, companyID, id string) (Webhook, error)
	// EnableWebhook has a disabled webhook go on; fault.Unsupported if it is not disabled.
	EnableWebhook(ctx context.Context, companyID, id string) (Webhook, error)
	// DeleteWebhook removes a webhook with its attempts and returns it, or fault.NotFound.
	DeleteWebhook(ctx context.Context, companyID, id string) (Webhook, error)
	// EventHead returns the newest and the oldest position of a company's events.
	EventHead(ctx context.Context, companyID string) (event.Head, error)
}

// Service is what administrators do with webhooks. Who may is the surface's to check.
type Service struct {
	Store    Store
	Sealer   access.Sealer // of the key file
	Sender   *Sender       // for Test
	Networks []netip.Prefix
	Now      func() time.Time
}

// Create makes a webhook and returns its secret, which is not shown again. Without types it
// gets all events. It fails with fault.InvalidArguments, and fault.Refused for too many.
func (s Service) Create(ctx context.Context, owner company.Company, url string, types []string) (w Webhook, secret string, err error) {
	url = strings.TrimSpace(url)
	if err := CheckURL(url, s.Networks); err != nil {
		return w, "", err
	}
	events, err := ParseTypes(types)
	if err != nil {
		return w, "", err
	}
	now := s.Now()
	w = Webhook{ID: resource.NewID(), CompanyID: owner.ID, CompanySlug: owner.Slug, URL: url, Events: events, State: Enabled,
		CreatedAt: now, MovedAt: now}
	secret = newSecret()
	w.Secret = s.Sealer.Seal(purpose(w.CompanyID, w.ID), []byte(secret))
	return w, secret, s.Store.CreateWebhook(ctx, w)
}

// Test sends an event of type Test at once, also where the webhook is disabled, and keeps
// the attempt. It returns how that ended; an error says that it was not tried.
func (s Service) Test(ctx context.Context, companyID, id string) (Attempt, error) {
	w, err := s.Store.Webhook(ctx, companyID, id)
	if err != nil {
		return Attempt{}, err
	}
	now := s.Now()
	keys, err := w.secrets(s.Sealer, now)
	if err != nil {
		return Attempt{}, fault.New(fault.Refused, "the webhook's secret cannot be opened with the key file: rotate the secret")
	}
	e := event.Event{ID: resource.NewID(), CompanyID: companyID, Type: Test, At: now.UTC().Truncate(time.Millisecond)}
	m, err := messageOf(w, e.View(w.CompanySlug), keys, now)
	if err != nil {
		return Attempt{}, err
	}
	status, detail := s.Sender.send(ctx, m)
	a := Attempt{At: now, EventID: e.ID, Type: Test, Number: 1, Status: status, Detail: detail, Took: s.Now().Sub(now)}
	return a, s.Store.AddWebhookAttempt(ctx, companyID, id, a)
}

// Delivery is an attempt with the cursor before its event, for Replay.
type Delivery struct {
	Attempt
	After string // empty: of a test
}

// Deliveries returns the last attempts of a webhook, at most MaxAttempts and the newest first.
func (s Service) Deliveries(ctx context.Context, companyID, id string) ([]Delivery, error) {
	attempts, err := s.Store.WebhookAttempts(ctx, companyID, id)
	if err != nil {
		return nil, err
	}
	head, err := s.Store.EventHead(ctx, companyID)
	all := make([]Delivery, len(attempts))
	for i, a := range attempts {
		all[i].Attempt = a
		if a.Position > 0 {
			all[i].After = head.Cursor(companyID, a.Position-1)
		}
	}
	return all, err
}

// Replay has a webhook send again what comes after a cursor of list_events or of Deliveries.
// Nothing that was not sent yet is left out. It fails with fault.CursorExpired.
func (s Service) Replay(ctx context.Context, companyID, id, after string) (Webhook, error) {
	head, err := s.Store.EventHead(ctx, companyID)
	if err != nil {
		return Webhook{}, err
	}
	position, err := head.Position(companyID, after)
	if err != nil {
		return Webhook{}, err
	}
	return s.Store.ReplayWebhook(ctx, companyID, id, position)
}

// Rotate gives a webhook a new secret, which is not shown again. Both sign for RotationTime,
// or until FinishRotation. A rotation that runs ends: its former secret signs no more.
func (s Service) Rotate(ctx context.Context, companyID, id string) (w Webhook, secret string, err error) {
	secret = newSecret()
	w, err = s.Store.RotateWebhook(ctx, companyID, id, s.Sealer.Seal(purpose(companyID, id), []byte(secret)), s.Now().Add(RotationTime))
	return w, secret, err
}

// FinishRotation ends the secret before the last Rotate at once.
func (s Service) FinishRotation(ctx context.Context, companyID, id string) (Webhook, error) {
	return s.Store.FinishWebhookRotation(ctx, companyID, id)
}

// Enable has a disabled webhook go on where it stopped.
func (s Service) Enable(ctx context.Context, companyID, id string) (Webhook, error) {
	return s.Store.EnableWebhook(ctx, companyID, id)
}

// Delete ends a webhook. What it has not sent is not sent.
func (s Service) Delete(ctx context.Context, companyID, id string) (Webhook, error) {
	return s.Store.DeleteWebhook(ctx, companyID, id)
}
