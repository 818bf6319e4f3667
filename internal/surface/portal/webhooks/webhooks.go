// Package webhooks is the portal's pages of webhooks: where a company's events are sent, what
// became of them, and what an administrator does about it.
package webhooks

import (
	"strconv"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/webhook"
)

// Section serves the pages. Administrators of the whole company alone see them: a
// webhook gets the events of all policies.
type Section struct {
	Service webhook.Service
	Steps   account.PendingStore
}

const newPath = frame.WebhooksPath + "/new"

// Routes are the section's addresses. What sends data of the company to an address, or lets
// another secret sign, takes a fresh proof of identity.
func (s *Section) Routes() []frame.Route {
	const one = frame.WebhooksPath + "/{webhook}"
	proof := func(next, then string) frame.Proof { return frame.Proof{Next: next, Then: then} }
	all := []frame.Route{
		{Pattern: "GET " + frame.WebhooksPath, Serve: s.list},
		{Pattern: "GET " + newPath, Serve: s.newWebhook},
		{Pattern: "POST " + frame.WebhooksPath, Proof: proof(newPath, "create the webhook"), Serve: s.create},
		{Pattern: "GET " + one, Serve: frame.On(s.find, s.show)},
		{Pattern: "POST " + one + "/test", Serve: s.test},
		{Pattern: "POST " + one + "/replay", Serve: s.replay},
		{Pattern: "GET " + one + "/rotate", Serve: frame.On(s.find, s.askRotate)},
		{Pattern: "POST " + one + "/rotate", Proof: proof(one+"/rotate", "replace the secret"), Serve: s.rotate},
		{Pattern: "POST " + one + "/finish", Serve: s.finish},
		{Pattern: "POST " + one + "/enable", Proof: proof(one, "enable the webhook"), Serve: s.enable},
		{Pattern: "POST " + one + "/delete", Proof: proof(one, "delete the webhook"), Serve: s.remove},
	}
	for i := range all {
		all[i].Needs = frame.ManageAll
	}
	return all
}

// find is the webhook of the address.
func (s *Section) find(v *frame.Visit) (webhook.Webhook, error) {
	return s.Service.Store.Webhook(v.Context(), v.Company.ID, v.PathValue("webhook"))
}

// row is a webhook in the list.
type row struct {
	webhook.Webhook
	Last, Failure webhook.Attempt // the zero value: there is none among those that are kept
}

func (s *Section) list(v *frame.Visit) error {
	all, err := s.Service.Store.Webhooks(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	rows := make([]row, len(all))
	for i, w := range all {
		attempts, err := s.Service.Store.WebhookAttempts(v.Context(), v.Company.ID, w.ID)
		if err != nil {
			return err
		}
		rows[i] = newRow(w, attempts)
	}
	return v.ShowLive("Webhooks", frame.SettingsPath, listPage(v, rows), webhookList(v, rows))
}

// newRow is a webhook with its attempts, the newest first.
func newRow(w webhook.Webhook, attempts []webhook.Attempt) row {
	r := row{Webhook: w, Failure: slice.First(attempts, func(a webhook.Attempt) bool { return !a.Delivered() })}
	if len(attempts) > 0 {
		r.Last = attempts[0]
	}
	return r
}

// sheet is what a webhook's page shows.
type sheet struct {
	webhook.Webhook
	Deliveries []webhook.Delivery
}

func (s *Section) show(v *frame.Visit, w webhook.Webhook) error {
	all, err := s.Service.Deliveries(v.Context(), v.Company.ID, w.ID)
	if err != nil {
		return err
	}
	return v.ShowLive("Webhook to "+w.Host(), frame.SettingsPath, webhookPage(v, sheet{w, all}), webhookState(v, sheet{w, all}))
}

// group is types of events under one title.
type group struct {
	Title string
	Kinds []event.Kind
}

// groups are all types of events, in the order of the list.
func groups() (all []group) {
	titles := map[string]string{"device": "Devices", "command": "Commands", "policy": "Policies", "proposal": "Proposed changes",
		"limit": "Limits and stop", "automation": "Limits and stop", "control": "Limits and stop", "key": "API keys and AI clients",
		"connection": "API keys and AI clients", "platform": "Platform"}
	for _, k := range event.Kinds() {
		title, known := titles[k.Type.Area()]
		if !known {
			title = "Other"
		}
		if len(all) == 0 || all[len(all)-1].Title != title {
			all = append(all, group{Title: title})
		}
		last := &all[len(all)-1]
		last.Kinds = append(last.Kinds, k)
	}
	return all
}

// stateOf is a webhook's state for people.
func stateOf(w webhook.Webhook) (frame.Tone, string) {
	switch {
	case w.State == webhook.Disabled:
		return frame.Bad, "Disabled"
	case w.Held > 0:
		return frame.Warn, "Trying again"
	}
	return frame.OK, "Enabled"
}

// waitingText is what a webhook holds back.
func waitingText(w webhook.Webhook) string {
	return frame.Either(w.Held == 0, "Nothing", frame.Count(w.Held, "device or event", "devices or events"))
}

func outcome(a webhook.Attempt) (frame.Tone, string) {
	return frame.Either(a.Delivered(), frame.OK, frame.Bad), frame.Either(a.Delivered(), "Delivered", "Failed")
}

// detailOf says what came back. The receiver has a part in it.
func detailOf(a webhook.Attempt) string {
	switch {
	case a.Detail != "":
		return frame.Sentence(frame.Plain(a.Detail))
	case a.Status != 0:
		return "The receiver answered " + strconv.Itoa(a.Status) + "."
	}
	return ""
}
