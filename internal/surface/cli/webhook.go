package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/webhook"
)

// WebhookCommands manage webhooks.
type WebhookCommands struct {
	Create     WebhookCreate     `cmd:"" help:"Create a webhook and show its secret, once."`
	List       WebhookList       `cmd:"" help:"List a company's webhooks."`
	Test       WebhookTest       `cmd:"" help:"Send an event of type webhook.test now."`
	Deliveries WebhookDeliveries `cmd:"" help:"List the last attempts to send events, the newest first."`
	Replay     WebhookReplay     `cmd:"" help:"Send again what came after a cursor."`
	Rotate     WebhookRotate     `cmd:"" help:"Replace the secret and show the new one, once; both sign for 24 hours."`
	Enable     WebhookEnable     `cmd:"" help:"Have a disabled webhook go on where it stopped."`
	Delete     WebhookDelete     `cmd:"" help:"Delete a webhook."`
}

// webhookView is the JSON of a webhook.
type webhookView struct {
	ID             string               `json:"id"`
	URL            string               `json:"url"`
	Events         []event.Type         `json:"events"`
	State          webhook.State        `json:"state"`
	Reason         string               `json:"reason,omitempty"`
	DisabledAt     *operation.Timestamp `json:"disabledAt,omitempty"`
	CreatedAt      operation.Timestamp  `json:"createdAt"`
	Held           int                  `json:"held"`
	Missed         int64                `json:"missed"`
	OldSecretSigns *operation.Timestamp `json:"oldSecretSignsUntil,omitempty"`
	Secret         string               `json:"secret,omitempty"`
}

func viewWebhook(w webhook.Webhook) webhookView {
	view := webhookView{ID: w.ID, URL: w.URL, Events: w.Types(), State: w.State, Reason: w.Why,
		DisabledAt: operation.TimestampOf(w.DisabledAt), CreatedAt: operation.Timestamp{Time: w.CreatedAt}, Held: w.Held, Missed: w.Missed}
	if len(w.Former) > 0 {
		view.OldSecretSigns = operation.TimestampOf(w.FormerUntil)
	}
	return view
}

// WebhookCreate makes a webhook.
type WebhookCreate struct {
	OfCompany
	config.WebhookNetworks
	URL   string   `name:"url" required:"" placeholder:"URL" help:"Where events are sent: an https address, or http in MUSTER_WEBHOOK_NETWORKS."`
	Event []string `name:"event" placeholder:"TYPE" help:"A type of event to send, such as command.failed; repeat for more. By default all."`
}

// Validate wants known types, and networks.
func (c *WebhookCreate) Validate() error {
	if _, err := c.Networks(); err != nil {
		return err
	}
	_, err := webhook.ParseTypes(c.Event)
	return err
}

// Run creates the webhook and shows its secret.
func (c *WebhookCreate) Run(env *Env) error {
	networks, err := c.Networks()
	if err != nil {
		return err
	}
	return c.run(env, withHooks(networks, true, func(ctx context.Context, hooks webhook.Service, owner company.Company) (answer, error) {
		made, secret, err := hooks.Create(ctx, owner, c.URL, c.Event)
		if err != nil {
			return answer{}, usage(err)
		}
		view := viewWebhook(made)
		view.Secret = secret
		return answerf(view, "Created webhook %s to %s.\nThe receiver verifies signatures with this secret, which is shown this "+
			"once:\n\n%s\n", made.ID, made.Host(), secret), nil
	}))
}

// WebhookList lists webhooks.
type WebhookList struct{ OfCompany }

// Run prints the list.
func (c *WebhookList) Run(env *Env) error {
	return c.reading(env, withHooks(nil, false, func(ctx context.Context, hooks webhook.Service, owner company.Company) (answer, error) {
		all, err := hooks.Store.Webhooks(ctx, owner.ID)
		return list(all, viewWebhook, []string{"ID", "URL", "STATE", "WAITING", "EVENTS", "REASON"}, func(w webhook.Webhook) []string {
			types := cmp.Or(strings.Join(event.Names(w.Events), ", "), "all")
			return []string{w.ID, w.URL, string(w.State), fmt.Sprint(w.Held), types, orDash(w.Why)}
		}), err
	}))
}

// withHooks is work on a company's webhooks.
func withHooks(networks []netip.Prefix, seals bool,
	work func(ctx context.Context, hooks webhook.Service, owner company.Company) (answer, error)) inCompany {
	return func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		hooks, err := admin.Webhooks(networks, seals)
		if err != nil {
			return answer{}, err
		}
		return work(ctx, hooks, owner)
	}
}

// webhookOf is one webhook of a company.
type webhookOf struct {
	OfCompany
	ID string `arg:"" name:"webhook" help:"The webhook's id."`
}

// change is work on a webhook that says what it did.
func (c *webhookOf) change(env *Env, work func(hooks webhook.Service, ctx context.Context, companyID, id string) (webhook.Webhook, error),
	text string) error {
	return c.run(env, withHooks(nil, false, func(ctx context.Context, hooks webhook.Service, owner company.Company) (answer, error) {
		changed, err := work(hooks, ctx, owner.ID, c.ID)
		return answerf(viewWebhook(changed), "Webhook %s %s.\n", changed.ID, text), missing(err, owner.Slug, "webhook", c.ID)
	}))
}

// WebhookTest sends a test.
type WebhookTest struct {
	webhookOf
	config.WebhookNetworks
}

// Validate wants networks.
func (c *WebhookTest) Validate() error {
	_, err := c.Networks()
	return err
}

// deliveryView is the JSON of an attempt.
type deliveryView struct {
	At      operation.Timestamp  `json:"at"`
	EventID string               `json:"eventId"`
	Type    event.Type           `json:"type"`
	Outcome string               `json:"outcome"` // DELIVERED or FAILED
	Status  int                  `json:"status"`  // of HTTP; 0: no answer
	Detail  string               `json:"detail"`
	Attempt int                  `json:"attempt"`
	Took    int64                `json:"tookMs"`
	NextAt  *operation.Timestamp `json:"nextAt"` // null: it is not tried again
	After   string               `json:"after"`  // for replay; empty: of a test
}

func viewDelivery(d webhook.Delivery) deliveryView {
	return deliveryView{At: operation.Timestamp{Time: d.At}, EventID: d.EventID, Type: d.Type, Outcome: outcomeOf(d.Attempt),
		Status: d.Status, Detail: d.Detail,
		Attempt: d.Number, Took: d.Took.Milliseconds(), NextAt: operation.TimestampOf(d.NextAt), After: d.After}
}

func outcomeOf(a webhook.Attempt) string { return phrase.Either(a.Delivered(), "DELIVERED", "FAILED") }

// Run sends it. A receiver that does not take it is a failure.
func (c *WebhookTest) Run(env *Env) error {
	networks, err := c.Networks()
	if err != nil {
		return err
	}
	return c.run(env, withHooks(networks, true, func(ctx context.Context, hooks webhook.Service, owner company.Company) (answer, error) {
		tried, err := hooks.Test(ctx, owner.ID, c.ID)
		if err != nil {
			return answer{}, missing(err, owner.Slug, "webhook", c.ID)
		}
		if !tried.Delivered() {
			err = &ExitError{Code: 1, Text: "the test was not delivered: " + tried.Detail}
		}
		return answerf(viewDelivery(webhook.Delivery{Attempt: tried}), "%s: status %d %s\n", outcomeOf(tried), tried.Status,
			tried.Detail), err
	}))
}

// WebhookDeliveries lists attempts.
type WebhookDeliveries struct{ webhookOf }

// Run prints the list.
func (c *WebhookDeliveries) Run(env *Env) error {
	return c.reading(env, withHooks(nil, false, func(ctx context.Context, hooks webhook.Service, owner company.Company) (answer, error) {
		all, err := hooks.Deliveries(ctx, owner.ID, c.ID)
		return list(all, viewDelivery, []string{"AT", "EVENT", "TYPE", "OUTCOME", "STATUS", "ATTEMPT", "NEXT", "DETAIL", "AFTER"},
			func(d webhook.Delivery) []string {
				return []string{d.At.UTC().Format("2006-01-02 15:04:05Z"), d.EventID, string(d.Type), outcomeOf(d.Attempt),
					fmt.Sprint(d.Status), fmt.Sprint(d.Number), day(d.NextAt), orDash(d.Detail), orDash(d.After)}
			}), missing(err, owner.Slug, "webhook", c.ID)
	}))
}

// WebhookReplay sends again.
type WebhookReplay struct {
	webhookOf
	After string `name:"after" required:"" placeholder:"CURSOR" help:"The cursor: next of the events API, or after of a delivery."`
}

// Validate wants a cursor: an empty one would mean all that is kept.
func (c *WebhookReplay) Validate() error {
	if c.After == "" {
		return errors.New("--after must not be empty: give a cursor")
	}
	return nil
}

// Run moves the webhook back.
func (c *WebhookReplay) Run(env *Env) error {
	return c.change(env, func(hooks webhook.Service, ctx context.Context, companyID, id string) (webhook.Webhook, error) {
		return hooks.Replay(ctx, companyID, id, c.After)
	}, "sends again what came after the cursor")
}

// WebhookRotate replaces the secret.
type WebhookRotate struct {
	webhookOf
	Finish bool `name:"finish" help:"End the old secret now, once the receiver has the new one."`
}

// Run replaces it, or ends the old one.
func (c *WebhookRotate) Run(env *Env) error {
	if c.Finish {
		return c.change(env, webhook.Service.FinishRotation, "signs with its new secret alone")
	}
	return c.run(env, withHooks(nil, true, func(ctx context.Context, hooks webhook.Service, owner company.Company) (answer, error) {
		changed, secret, err := hooks.Rotate(ctx, owner.ID, c.ID)
		view := viewWebhook(changed)
		view.Secret = secret
		return answerf(view, "The new secret of webhook %s is shown this once:\n\n%s\n\nBoth secrets sign for %s, or until `muster "+
			"webhook rotate --finish`. A secret from before an earlier rotation signs no more.\n", changed.ID, secret,
			phrase.Span(webhook.RotationTime)), missing(err, owner.Slug, "webhook", c.ID)
	}))
}

// WebhookEnable enables a webhook.
type WebhookEnable struct{ webhookOf }

// Run enables it.
func (c *WebhookEnable) Run(env *Env) error {
	return c.change(env, webhook.Service.Enable, "is enabled and goes on where it stopped")
}

// WebhookDelete deletes a webhook.
type WebhookDelete struct{ webhookOf }

// Run deletes it.
func (c *WebhookDelete) Run(env *Env) error {
	return c.change(env, webhook.Service.Delete, "is deleted")
}
