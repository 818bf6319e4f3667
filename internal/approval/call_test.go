package approval_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/signature"
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
		difference  approval.Difference
		want        bool
	}{
		{"the defaults, destructive", access.APIKey, off, true, approval.NoMove, false},
		{"the defaults, a move", access.APIKey, off, false, approval.Risky, false},
		{"a key's destructive command", access.APIKey, with("OFF", true), true, approval.NoMove, true},
		{"a connection's", access.Connection, with("OFF", true), true, approval.NoMove, true},
		{"a user's", access.User, with("ALL", true), true, approval.NoMove, false},
		{"the operator's", access.System, with("ALL", true), true, approval.NoMove, false},
		{"another command", access.APIKey, with("ALL", true), false, approval.NoMove, false},
		{"a risky move under RISKY", access.Connection, with("RISKY", false), false, approval.Risky, true},
		{"another move under RISKY", access.APIKey, with("RISKY", false), false, approval.Other, false},
		{"another move under ALL", access.APIKey, with("ALL", false), false, approval.Other, true},
		{"a move to a renamed copy under ALL", access.APIKey, with("ALL", false), false, approval.Same, false},
		{"a user's move", access.User, with("ALL", false), false, approval.Risky, false},
		{"approvals of policies alone", access.APIKey, with("ALL", false), true, approval.NoMove, false},
		{"authorizations of destructive commands alone", access.APIKey, with("OFF", true), false, approval.Risky, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := approval.Needed(c.kind, c.controls, c.destructive, c.difference); got != c.want {
				t.Errorf("%s: needed %t, want %t", c.name, got, c.want)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	one := func(s approval.State, created, decided int) *approval.Authorization {
		return &approval.Authorization{State: s, CreatedAt: at(created), DecidedAt: at(decided)}
	}
	for _, c := range []struct {
		name    string
		last    *approval.Authorization
		waiting int
		want    approval.Verdict
	}{
		{"none", nil, 0, approval.Asks},
		{"none, and four wait", nil, 4, approval.Asks},
		{"none, and five wait", nil, 5, approval.TooMany},
		{"one waits", one(approval.Waiting, -59, 0), 5, approval.Waits},
		{"one waited for an hour", one(approval.Waiting, -60, 0), 0, approval.Asks},
		{"one was approved", one(approval.Approved, -30, -9), 5, approval.Uses},
		{"one was approved ten minutes ago", one(approval.Approved, -30, -10), 0, approval.Asks},
		{"one was used", one(approval.Used, -30, -1), 0, approval.Asks},
		{"one was declined", one(approval.Declined, -100, -59), 0, approval.Refused},
		{"one was declined an hour ago", one(approval.Declined, -100, -60), 0, approval.Asks},
		{"one waits by a clock that is a minute ahead", one(approval.Waiting, 1, 0), 5, approval.Waits},
		{"one waits since a clock that was ahead", one(approval.Waiting, 2, 0), 0, approval.Asks},
		{"one was approved by a clock that was ahead", one(approval.Approved, -30, 2), 0, approval.Asks},
		{"one was declined by a clock that was ahead", one(approval.Declined, -30, 2), 0, approval.Asks},
		{"one was declined long ago, and five wait", one(approval.Declined, -100, -60), 5, approval.TooMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := approval.Decide(approval.Snapshot{Last: c.last, Waiting: c.waiting, Now: at(0)}); got != c.want {
				t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
			}
		})
	}
}

func TestRefusal_Fault(t *testing.T) {
	t.Parallel()
	f := (&approval.Refusal{Verdict: approval.Waits, ID: "abc"}).Fault("https://m.test")
	if f.Code != fault.Forbidden || f.MayRetry() || f.Approval == nil {
		t.Fatalf("waits: %+v", f)
	}
	if f.Approval.URL != "https://m.test/authorizations/abc" || !strings.Contains(f.Detail, f.Approval.URL) {
		t.Errorf("waits: URL %q, detail %q", f.Approval.URL, f.Detail)
	}
	f = (&approval.Refusal{Verdict: approval.Refused, ID: "abc"}).Fault("https://m.test")
	if f.Code != fault.Forbidden || f.Approval == nil || !strings.Contains(f.Detail, "declined") {
		t.Errorf("declined: %+v", f)
	}
	f = (&approval.Refusal{Verdict: approval.TooMany}).Fault("https://m.test")
	if f.Code != fault.Forbidden || f.Approval == nil || f.Approval.URL != "" ||
		!strings.Contains(f.Detail, "5 calls of this caller wait") {
		t.Errorf("too many: %+v", f)
	}
}

// What a person signs differs in whatever differs.
func TestDocument_IsBoundToEverything(t *testing.T) {
	t.Parallel()
	base := func() (approval.Authorization, approval.Seen, signature.Head) {
		a := approval.Authorization{ID: "i", CreatedAt: at(0),
			Call: approval.Call{CompanyID: "c", AssetID: "d", Epoch: 1, Command: "CHANGE_POLICY",
				Digest: "x",
				Caller: approval.Caller{Actor: access.Actor{Kind: access.APIKey, ID: "k", Prefix: "p", Name: "n", UserID: "u"}},
				Move:   approval.Move{From: approval.Policy{ID: "f", Version: 1}, To: approval.Policy{ID: "t", Version: 2}}}}
		s := approval.Seen{Company: "acme",
			Device: asset.Asset{ID: "d", Identification: "Phone", Specifications: map[string]string{"serialNumber": "S1", "model": "M1"},
				CustomData: map[string]string{"user": "Uma", "userEmail": "uma@acme.test"},
				Device:     &asset.Device{Epoch: 1, PolicyID: "f", PolicyName: "F", LastSeenAt: at(-1)}},
			From: policy.Policy{ID: "f", Name: "F", Type: policy.Platform, Version: 1,
				Document: []byte(`{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`)},
			To: policy.Policy{ID: "t", Name: "T", Type: policy.Platform, Version: 2, Document: []byte(`{"factoryResetDisabled":true}`)}}
		return a, s, signature.Head{Approver: signature.Person{ID: "u1", Name: "Ada"}, Decision: signature.Approve,
			At: "2026-03-01T12:00:00Z"}
	}
	type edit = func(*approval.Authorization, *approval.Seen, *signature.Head)
	text := func(change edit) []byte {
		a, s, h := base()
		change(&a, &s, &h)
		d, err := a.Subject(s).Canonical(h, nil)
		if err != nil || !signature.IsCanonical(d) {
			t.Fatalf("%v: %s", err, d)
		}
		if _, _, err := signature.Read(d); err != nil {
			t.Fatalf("it cannot be read strictly: %v: %s", err, d)
		}
		return d
	}
	first := text(func(*approval.Authorization, *approval.Seen, *signature.Head) {})
	for _, want := range []string{`"domain":"muster/authorization/1"`, `"serialNumber":"S1"`, `"model":"M1"`, `"user":"Uma"`,
		`"userEmail":"uma@acme.test"`,
		`"lastContact":"`, `"lost":false`, `"sha256":"` + signature.Hash([]byte(`{"factoryResetDisabled":true}`)), `"setting":"`} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%s is not in %s", want, first)
		}
	}
	for name, change := range map[string]edit{
		"id":      func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.ID = "j" },
		"company": func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) { s.Company = "other" },
		"device":  func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.AssetID = "e" },
		"name": func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) {
			s.Device.Identification = "Tablet"
		},
		"serial": func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) {
			s.Device.Specifications["serialNumber"] = "S2"
		},
		"assigned": func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) {
			s.Device.CustomData["user"] = "Eve"
		},
		"lost":       func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) { s.Device.Device.LostMode = true },
		"enrollment": func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Epoch = 2 },
		"command":    func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Command = "REBOOT" },
		"arguments":  func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Digest = "y" },
		"kind": func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) {
			a.Caller.Kind = access.Connection
		},
		"caller":  func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Caller.ID = "l" },
		"user":    func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Caller.UserID = "v" },
		"from":    func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Move.From.ID = "g" },
		"to":      func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Move.To.ID = "g" },
		"version": func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.Move.To.Version = 3 },
		"policy":  func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) { s.To.Name = "U" },
		"setting": func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) {
			s.To.Document = []byte(`{"factoryResetDisabled":false}`)
		},
		"no setting": func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) {
			s.To.Document = []byte(`{"factoryResetDisabled":true,"x":1}`)
		},
		"irrevocable": func(_ *approval.Authorization, s *approval.Seen, _ *signature.Head) { s.Irreversible = true },
		"expiry":      func(a *approval.Authorization, _ *approval.Seen, _ *signature.Head) { a.CreatedAt = at(1) },
		"approver":    func(_ *approval.Authorization, _ *approval.Seen, h *signature.Head) { h.Approver.ID = "u2" },
		"decision":    func(_ *approval.Authorization, _ *approval.Seen, h *signature.Head) { h.Decision = signature.Decline },
		"reason":      func(_ *approval.Authorization, _ *approval.Seen, h *signature.Head) { h.Reason = "no" },
		"typed name":  func(_ *approval.Authorization, _ *approval.Seen, h *signature.Head) { h.Confirmation = "T" },
	} {
		t.Run(name, func(t *testing.T) {
			if bytes.Equal(text(change), first) {
				t.Error("the document is the same")
			}
		})
	}
}

// A move is high where a setting of high impact differs, and cannot be undone where one has
// a warning.
func TestCompare(t *testing.T) {
	t.Parallel()
	at := func(document string) policy.Policy {
		return policy.Policy{ID: document, Type: policy.Platform, Document: []byte(document)}
	}
	for _, c := range []struct {
		name         string
		from, to     policy.Policy
		want         approval.Difference
		impact       string
		irreversible bool
		unnamed      int
	}{
		{"the same", at(`{}`), at(`{}`), approval.Same, "NORMAL", false, 0},
		{"high", at(`{}`), at(`{"factoryResetDisabled":true}`), approval.Risky, "HIGH", false, 0},
		{"without a name", at(`{}`), at(`{"x":1}`), approval.Risky, "NORMAL", false, 1},
		{"one is gone", policy.Policy{}, at(`{}`), approval.Risky, "HIGH", false, 1},
		{"the device has none", policy.Policy{Type: policy.Platform, Document: []byte(`{}`)}, at(`{}`), approval.Risky, "HIGH", false, 1},
		{"none to go to", at(`{}`), policy.Policy{Type: policy.Platform, Document: []byte(`{}`)}, approval.Risky, "HIGH", false, 1},
		{"a damaged one", at(`{`), at(`{}`), approval.Risky, "HIGH", false, 1},
		{"another type", at(`{}`), policy.Policy{ID: "a", Type: policy.Agent, Document: []byte(`{}`)}, approval.Risky, "HIGH", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := approval.Compare(c.from, c.to)
			if got.Difference != c.want || got.Impact != c.impact || got.Irreversible() != c.irreversible || len(got.Unnamed) != c.unnamed {
				t.Errorf("%+v", got)
			}
		})
	}
}
