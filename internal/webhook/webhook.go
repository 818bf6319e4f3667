// Package webhook sends a company's events to addresses that its administrators choose, as
// Standard Webhooks describes it: signed, at least once, and in order for each asset.
//
// A webhook has a position in the company's history of events and writes nothing for an
// event that it does not send. What a receiver does not take is held apart by its asset and
// tried again, so that the events of other assets go on. Of all replicas one at a time sends
// for a webhook: the one with its claim.
package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/validate"
)

// Test is the type of the event that a test sends. No webhook gets it otherwise.
const Test event.Type = "webhook.test"

// TestText says when it is sent, in one sentence.
const TestText = "A person tests a webhook, in the portal or with muster webhook test. The tested webhook alone gets it, whatever types " +
	"it was created for."

// TestView describes the event of a test: an event.View of the type Test, without data.
type TestView struct {
	ID   string    `json:"id" doc:"Identifies the test."`
	Type TestType  `json:"type" doc:"What happened."`
	At   time.Time `json:"at" doc:"When, by the service's clock."`
	Data struct{}  `json:"data" doc:"Empty: a test is about nothing."`
}

// TestType is Test alone.
type TestType string

// Values are the types, for descriptions.
func (TestType) Values() []string { return []string{string(Test)} }

// State says whether a webhook sends.
type State string

// The states.
const (
	Enabled  State = "ENABLED"
	Disabled State = "DISABLED"
)

// Limits of webhooks.
const (
	MaxOfCompany = 20
	maxURL       = 2000 // bytes
	// MaxHeld is how many assets are held apart by a webhook; with that many it waits as a whole.
	MaxHeld = 50
	// MaxAttempts is how many attempts of a webhook are kept.
	MaxAttempts = 100
	// RotationTime is how long both secrets sign after a rotation.
	RotationTime = 24 * time.Hour
	// GiveUpAfter is how long an event is tried before its webhook is disabled.
	GiveUpAfter = 24 * time.Hour

	// leastAttempts are made before a webhook is disabled: time in which the service did not run is no failure of the receiver.
	leastAttempts = 10

	firstPause = 8 * time.Second // with the time until it is noticed, at most 10 seconds
	lastPause  = time.Hour
)

// Webhook is an address that gets events.
type Webhook struct {
	ID          string
	CompanyID   string
	CompanySlug string
	URL         string       // may hold a secret of the receiver: it is in no log
	Events      []event.Type // empty: all
	State       State
	Why         string    // it is disabled
	DisabledAt  time.Time // zero: it is not
	Secret      []byte    // sealed
	Former      []byte    // sealed; signs beside Secret until FormerUntil
	FormerUntil time.Time
	CreatedAt   time.Time
	Position    int64 // of the last event that was sent, held or passed over
	MovedAt     time.Time
	NextAt      time.Time // when the first of what is held is due; zero: nothing is
	Missed      int64     // events that were deleted before they were sent, at most
	Held        int       // how many assets, and events without one, wait to be tried again
	Version     int64     // rises with each change
}

// maxHost is the length of the longest name with a port, in characters.
const maxHost = 253 + len(":65535")

// Host is the receiver as logs and people see it, without path and query.
func (w Webhook) Host() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return validate.Clean(u.Host, maxHost)
}

// Types are the types of events that the webhook gets.
func (w Webhook) Types() []event.Type {
	if len(w.Events) == 0 {
		return event.Types()
	}
	return w.Events
}

// Rotating reports whether two secrets sign at a time.
func (w Webhook) Rotating(now time.Time) bool { return len(w.Former) > 0 && now.Before(w.FormerUntil) }

// CheckURL refuses an address that cannot be sent to. http is allowed to networks alone;
// whether an address is public is checked when it is connected to.
func CheckURL(text string, networks []netip.Prefix) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http" ||
		strings.ContainsFunc(text, unprintable):
		return fault.InvalidField("url", "must be an address such as https://example.com/hook")
	case len(text) > maxURL:
		return fault.InvalidField("url", fmt.Sprintf("must have at most %d bytes", maxURL))
	case u.User != nil:
		return fault.InvalidField("url", "must have no user or password: verify the signature instead")
	case u.Fragment != "":
		return fault.InvalidField("url", "must have no fragment")
	case u.Port() != "":
		if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
			return fault.InvalidField("url", "must have a port from 1 to 65535")
		}
	}
	if u.Scheme == "https" {
		return nil
	}
	address, err := netip.ParseAddr(u.Hostname())
	if len(networks) == 0 || err == nil && !slices.ContainsFunc(networks, func(n netip.Prefix) bool {
		return n.Contains(address.Unmap())
	}) {
		return fault.InvalidField("url", "must be https: http is allowed only to the networks of MUSTER_WEBHOOK_NETWORKS")
	}
	return nil
}

// unprintable are characters that an address must escape: they hide or reorder text.
func unprintable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// ParseTypes reads types of events, each once and in the order of the list.
func ParseTypes(names []string) ([]event.Type, error) {
	for _, name := range names {
		if !event.Type(name).Known() {
			message := fmt.Sprintf("%q is not a type of event: use one of %s", name, strings.Join(event.Type("").Values(), ", "))
			return nil, fault.Invalid(message, fault.Field{Field: "events", Message: message})
		}
	}
	return slices.DeleteFunc(event.Types(), func(t event.Type) bool { return !slices.Contains(names, string(t)) }), nil
}

// Held is what waits behind an event that the receiver did not take.
type Held struct {
	Key      string // the id of the asset, or of the event where it has none
	AssetID  string // empty: the event alone
	Position int64  // what comes from here on, up to that of the webhook, is not sent yet
	Attempts int
	Since    time.Time // the first failure of the first event; zero: none
	NextAt   time.Time
}

// failed is h after another attempt failed. giveUp: it has been tried for long enough.
func (h Held) failed(now time.Time) (next Held, giveUp bool) {
	h.Attempts++
	if h.Since.IsZero() || h.Since.After(now) { // or the clock was ahead
		h.Since = now
	}
	end := h.Since.Add(GiveUpAfter)
	late := !now.Before(end)
	if late && h.Attempts >= leastAttempts {
		h.NextAt = now
		return h, true
	}
	h.NextAt = now.Add(min(firstPause<<min(h.Attempts-1, 16), lastPause))
	if !late && h.NextAt.After(end) {
		h.NextAt = end
	}
	return h, false
}

// Attempt is one call of a receiver.
type Attempt struct {
	At       time.Time
	EventID  string
	Type     event.Type
	Position int64 // of the event; 0: a test
	Number   int   // of the attempts to send this event, from 1
	Status   int   // of HTTP; 0: there was no answer
	Detail   string
	Took     time.Duration
	NextAt   time.Time // zero: it is not tried again
}

// Delivered reports whether the receiver took the event.
func (a Attempt) Delivered() bool { return a.Status >= 200 && a.Status < 300 }
