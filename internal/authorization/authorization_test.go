package authorization_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/authorization"
	"github.com/musterhq/muster/internal/fault"
)

func at(minutes int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
}

func TestNeeded(t *testing.T) {
	t.Parallel()
	off := access.DefaultControls()
	with := func(rule access.ApprovalRule, destructive bool) access.Controls {
		c := off
		c.ApplyApproval, c.DestructiveApproval = rule, destructive
		return c
	}
	for _, c := range []struct {
		name        string
		kind        access.Kind
		controls    access.Controls
		destructive bool
		difference  authorization.Difference
		want        bool
	}{
		{"the defaults, destructive", access.APIKey, off, true, authorization.NoMove, false},
		{"the defaults, a move", access.APIKey, off, false, authorization.Risky, false},
		{"a key's destructive command", access.APIKey, with("OFF", true), true, authorization.NoMove, true},
		{"a connection's", access.Connection, with("OFF", true), true, authorization.NoMove, true},
		{"a user's", access.User, with("ALL", true), true, authorization.NoMove, false},
		{"the operator's", access.System, with("ALL", true), true, authorization.NoMove, false},
		{"another command", access.APIKey, with("ALL", true), false, authorization.NoMove, false},
		{"a risky move under RISKY", access.Connection, with("RISKY", false), false, authorization.Risky, true},
		{"another move under RISKY", access.APIKey, with("RISKY", false), false, authorization.Other, false},
		{"another move under ALL", access.APIKey, with("ALL", false), false, authorization.Other, true},
		{"a move to a renamed copy under ALL", access.APIKey, with("ALL", false), false, authorization.Same, false},
		{"a user's move", access.User, with("ALL", false), false, authorization.Risky, false},
		{"approvals of policies alone", access.APIKey, with("ALL", false), true, authorization.NoMove, false},
		{"authorizations of destructive commands alone", access.APIKey, with("OFF", true), false, authorization.Risky, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := authorization.Needed(c.kind, c.controls, c.destructive, c.difference); got != c.want {
				t.Errorf("%s: needed %t, want %t", c.name, got, c.want)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	one := func(s authorization.State, created, decided int) *authorization.Authorization {
		return &authorization.Authorization{State: s, CreatedAt: at(created), DecidedAt: at(decided)}
	}
	for _, c := range []struct {
		name    string
		last    *authorization.Authorization
		waiting int
		want    authorization.Verdict
	}{
		{"none", nil, 0, authorization.Asks},
		{"none, and four wait", nil, 4, authorization.Asks},
		{"none, and five wait", nil, 5, authorization.TooMany},
		{"one waits", one(authorization.Waiting, -59, 0), 5, authorization.Waits},
		{"one waited for an hour", one(authorization.Waiting, -60, 0), 0, authorization.Asks},
		{"one was approved", one(authorization.Approved, -30, -9), 5, authorization.Uses},
		{"one was approved ten minutes ago", one(authorization.Approved, -30, -10), 0, authorization.Asks},
		{"one was used", one(authorization.Used, -30, -1), 0, authorization.Asks},
		{"one was declined", one(authorization.Declined, -100, -59), 0, authorization.Refused},
		{"one was declined an hour ago", one(authorization.Declined, -100, -60), 0, authorization.Asks},
		{"one was declined long ago, and five wait", one(authorization.Declined, -100, -60), 5, authorization.TooMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := authorization.Decide(authorization.Snapshot{Last: c.last, Waiting: c.waiting, Now: at(0)}); got != c.want {
				t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
			}
		})
	}
}

func TestRefusal_Fault(t *testing.T) {
	t.Parallel()
	f := (&authorization.Refusal{Verdict: authorization.Waits, ID: "abc"}).Fault("https://m.test")
	if f.Code != fault.Forbidden || f.MayRetry() || f.Approval == nil || f.Approval.URL != "https://m.test/authorizations/abc" || !strings.Contains(f.Detail, f.Approval.URL) {
		t.Errorf("waits: %+v", f)
	}
	f = (&authorization.Refusal{Verdict: authorization.Refused, ID: "abc"}).Fault("https://m.test")
	if f.Code != fault.Forbidden || f.Approval == nil || !strings.Contains(f.Detail, "declined") {
		t.Errorf("declined: %+v", f)
	}
	f = (&authorization.Refusal{Verdict: authorization.TooMany}).Fault("https://m.test")
	if f.Code != fault.Forbidden || f.Approval == nil || f.Approval.URL != "" || !strings.Contains(f.Detail, "5 calls of this caller wait") {
		t.Errorf("too many: %+v", f)
	}
}

// What a person signs differs in whatever differs.
func TestDocument_IsBoundToEverything(t *testing.T) {
	t.Parallel()
	a := authorization.Authorization{ID: "i", CreatedAt: at(0), Call: authorization.Call{CompanyID: "c", AssetID: "d", Epoch: 1, Command: "CHANGE_POLICY",
		Digest: "x", Caller: authorization.Caller{Kind: access.APIKey, ID: "k", Prefix: "p", Name: "n", UserID: "u"},
		Move: authorization.Move{From: authorization.Policy{ID: "f", Version: 1}, To: authorization.Policy{ID: "t", Version: 2}}}}
	s := authorization.Seen{Company: "acme", DeviceName: "Phone", FromName: "F", ToName: "T"}
	person := approval.Person{ID: "u1", Name: "Ada"}
	text := func(edit func(*authorization.Authorization, *authorization.Seen, *approval.Person)) []byte {
		a, s, person := a, s, person
		edit(&a, &s, &person)
		d, err := a.Document(s, person, approval.Approve, "2026-03-01T12:00:00Z")
		if err != nil || !approval.IsCanonical(d) {
			t.Fatalf("%v: %s", err, d)
		}
		return d
	}
	base := text(func(*authorization.Authorization, *authorization.Seen, *approval.Person) {})
	if !bytes.Contains(base, []byte(`"domain":"muster/authorization/1"`)) {
		t.Errorf("%s", base)
	}
	for name, edit := range map[string]func(*authorization.Authorization, *authorization.Seen, *approval.Person){
		"id":      func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.ID = "j" },
		"company": func(_ *authorization.Authorization, s *authorization.Seen, _ *approval.Person) { s.Company = "other" },
		"device":  func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.AssetID = "e" },
		"name": func(_ *authorization.Authorization, s *authorization.Seen, _ *approval.Person) {
			s.DeviceName = "Tablet"
		},
		"enrollment": func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Epoch = 2 },
		"command":    func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Command = "REBOOT" },
		"arguments":  func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Digest = "y" },
		"kind": func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) {
			a.Caller.Kind = access.Connection
		},
		"caller":   func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Caller.ID = "l" },
		"user":     func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Caller.UserID = "v" },
		"from":     func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Move.From.ID = "g" },
		"to":       func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Move.To.ID = "g" },
		"version":  func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.Move.To.Version = 3 },
		"policy":   func(_ *authorization.Authorization, s *authorization.Seen, _ *approval.Person) { s.ToName = "U" },
		"expiry":   func(a *authorization.Authorization, _ *authorization.Seen, _ *approval.Person) { a.CreatedAt = at(1) },
		"approver": func(_ *authorization.Authorization, _ *authorization.Seen, p *approval.Person) { p.ID = "u2" },
	} {
		t.Run(name, func(t *testing.T) {
			if bytes.Equal(text(edit), base) {
				t.Errorf("%s: the document is the same", name)
			}
		})
	}
	declined, err := a.Document(s, person, approval.Decline, "2026-03-01T12:00:00Z")
	if err != nil || bytes.Equal(declined, base) {
		t.Errorf("a decline reads like an approval: %v", err)
	}
}
