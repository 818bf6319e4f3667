package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/test/expect"
)

// moveOf is an authorization of a move, and what there is when it was asked for.
func moveOf() (approval.Authorization, approval.Seen) {
	a := approval.Authorization{ID: "i", State: approval.Waiting, CreatedAt: at(0),
		Call: approval.Call{CompanyID: "c", AssetID: "d", Epoch: 1,
			Command: "CHANGE_POLICY", Digest: "x", Caller: approval.Caller{Actor: access.Actor{Kind: access.APIKey, ID: "k", UserID: "u"}},
			Move: approval.Move{From: approval.Policy{ID: "f", Version: 1}, To: approval.Policy{ID: "t", Version: 2}}}}
	return a, approval.Seen{Company: "acme", Device: asset.Asset{ID: "d", Device: &asset.Device{Epoch: 1, PolicyID: "f"}},
		From: policy.Policy{ID: "f", Name: "F", Type: policy.Platform, Version: 1, Document: []byte(`{}`)},
		To:   policy.Policy{ID: "t", Name: "T", Type: policy.Platform, Version: 2, Document: []byte(`{"factoryResetDisabled":true}`)}}
}

func TestAuthorization_For(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*approval.Call){
		"company": func(c *approval.Call) { c.CompanyID = "other" },
		"device":  func(c *approval.Call) { c.AssetID = "other" },
		"epoch":   func(c *approval.Call) { c.Epoch = 2 },
		"command": func(c *approval.Call) { c.Command = "WIPE" },
		"digest":  func(c *approval.Call) { c.Digest = "y" },
		"kind":    func(c *approval.Call) { c.Caller.Kind = access.Connection },
		"caller":  func(c *approval.Call) { c.Caller.ID = "l" },
		"from":    func(c *approval.Call) { c.Move.From.Version = 2 },
		"to":      func(c *approval.Call) { c.Move.To.ID = "other" },
	} {
		a, _ := moveOf()
		other := a.Call
		if change(&other); a.For(other) {
			t.Errorf("it is for a call with another %s", name)
		}
	}
	a, _ := moveOf()
	same := a.Call
	same.Caller.Name, same.Note.Reason = "renamed", "another"
	if !a.For(same) {
		t.Error("it is not for the same call by a caller who was renamed, with another reason")
	}
}

func TestAuthorization_At(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		state   approval.State
		after   time.Duration // since it was asked for, or decided
		want    approval.State
		refused string // part of why it may not be decided; empty: it may
	}{
		{"waits", approval.Waiting, 0, approval.Waiting, ""},
		{"waits almost an hour", approval.Waiting, time.Hour - 1, approval.Waiting, ""},
		{"waits an hour", approval.Waiting, time.Hour, approval.Expired, "has expired"},
		{"approved", approval.Approved, 10*time.Minute - 1, approval.Approved, "approved already"},
		{"approved ten minutes ago", approval.Approved, 10 * time.Minute, approval.Expired, "has expired"},
		{"declined long ago", approval.Declined, 24 * time.Hour, approval.Declined, "declined already"},
		{"used long ago", approval.Used, 24 * time.Hour, approval.Used, "approved already"},
	} {
		a := approval.Authorization{State: c.state, CreatedAt: at(0)}
		if c.state != approval.Waiting {
			a.CreatedAt, a.DecidedAt = at(-50), at(0)
		}
		detail := ""
		if err := a.MayBeDecided(at(0).Add(c.after)); err != nil {
			detail = fault.From(err).Detail
		}
		expect.Equal(t, c.name, expect.Values{"state": {a.At(at(0).Add(c.after)), c.want},
			"may be decided": {detail == "", c.refused == ""},
			"says why not":   {strings.Contains(detail, c.refused), true}})
	}
}

// One whose caller's key or connection ends can be decided until then.
func TestAuthorization_CallerEnded(t *testing.T) {
	t.Parallel()
	ends := at(0).Add(30 * time.Minute)
	for _, c := range []struct {
		name   string
		ends   time.Time
		after  time.Duration
		ended  bool
		refuse string
	}{
		{"before the caller's end", ends, 30*time.Minute - 1, false, ""},
		{"at the caller's end", ends, 30 * time.Minute, true, approval.NoCaller},
		{"after its own end", ends, time.Hour, false, "has expired"},
		{"a caller without an end", time.Time{}, 30 * time.Minute, false, ""},
	} {
		a := approval.Authorization{State: approval.Waiting, CreatedAt: at(0)}
		a.Caller.EndsAt = c.ends
		detail := ""
		if err := a.MayBeDecided(at(0).Add(c.after)); err != nil {
			detail = fault.From(err).Detail
		}
		expect.Equal(t, c.name, expect.Values{"ended": {a.CallerEnded(at(0).Add(c.after)), c.ended},
			"may be decided": {detail == "", c.refuse == ""}, "says why not": {strings.Contains(detail, c.refuse), true}})
	}
}

// A person signs the device's last contact as it was shown, though it may be later by then.
func TestAuthorization_SubjectAsShown(t *testing.T) {
	t.Parallel()
	a, seen := moveOf()
	contact := func(s approval.Seen, shown any) string {
		return a.Subject(s).Document(signature.Head{}, shown).(signature.Call).Device.LastContact
	}
	if got := contact(seen, nil); got != "" {
		t.Errorf("never in touch: %s", got)
	}
	seen.Device.Device.LastSeenAt = at(1)
	if got := contact(seen, nil); got != signature.Time(at(1)) {
		t.Errorf("first shown: %v", got)
	}
	shown := a.Subject(seen).Document(signature.Head{}, nil).(signature.Call)
	seen.Device.Device.LastSeenAt = at(5)
	if got := contact(seen, &shown); got != signature.Time(at(1)) {
		t.Errorf("shown before: %v", got)
	}
}

// Gone is what can never be used: something that it is bound to has changed.
func TestAuthorization_Gone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*approval.Authorization, *approval.Seen)
		want   string // part of the reason; empty: it can be used
	}{
		{"nothing changed", func(*approval.Authorization, *approval.Seen) {}, ""},
		{"the device is gone", func(_ *approval.Authorization, s *approval.Seen) { s.Device = asset.Asset{} }, "no longer enrolled"},
		{"the device enrolled again", func(_ *approval.Authorization, s *approval.Seen) { s.Device.Device.Epoch = 2 },
			"no longer enrolled"},
		{"the device has another policy", func(_ *approval.Authorization, s *approval.Seen) { s.Device.Device.PolicyID = "t" }, "policy"},
		{"its policy was saved", func(_ *approval.Authorization, s *approval.Seen) { s.From.Version = 2 }, "policy"},
		{"the new policy was saved", func(_ *approval.Authorization, s *approval.Seen) { s.To.Version = 3 }, "policy"},
		{"the new policy was deleted", func(_ *approval.Authorization, s *approval.Seen) { s.To.Deleted = true }, "policy"},
		{"no move, with another policy", func(a *approval.Authorization, s *approval.Seen) {
			a.Move, s.Device.Device.PolicyID = approval.Move{}, "t"
		}, ""},
	} {
		a, s := moveOf()
		c.change(&a, &s)
		if err := a.Gone(s); err == nil != (c.want == "") || err != nil && !strings.Contains(fault.From(err).Detail, c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Who decides needs the right to the effect and all policies that it concerns, and types the
// name of the new policy where the impact is high.
func TestAuthorization_Subject(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		change   func(*approval.Authorization, *approval.Seen)
		needs    access.Permission
		policies []string
		typed    string
	}{
		{"a move with high impact", func(*approval.Authorization, *approval.Seen) {},
			access.DevicesRead | access.PoliciesWrite | access.PoliciesRead, []string{"f", "f", "t"}, "T"},
		{"a move without", func(_ *approval.Authorization, s *approval.Seen) { s.To.Document = s.From.Document },
			access.DevicesRead | access.PoliciesWrite | access.PoliciesRead, []string{"f", "f", "t"}, ""},
		{"after another move", func(_ *approval.Authorization, s *approval.Seen) {
			s.OnTheWay = []policy.Policy{{ID: "o", Type: policy.Platform, Document: []byte(`{}`)}}
		}, access.DevicesRead | access.PoliciesWrite | access.PoliciesRead, []string{"f", "f", "t", "o"}, "T"},
		{"a command", func(a *approval.Authorization, s *approval.Seen) {
			a.Move, s.From, s.To = approval.Move{}, policy.Policy{}, policy.Policy{}
		},
			access.DevicesCommandDestructive | access.DevicesRead, []string{"f"}, ""},
		{"a command to a device that is gone", func(a *approval.Authorization, s *approval.Seen) {
			a.Move, s.Device = approval.Move{}, asset.Asset{}
		}, 0, nil, ""},
	} {
		a, s := moveOf()
		c.change(&a, &s)
		got := a.Subject(s)
		expect.Equal(t, c.name, expect.Values{"needs": {got.Matter.Needs, c.needs},
			"policies": {slices.Equal(got.Matter.Policies, c.policies), true},
			"typed":    {got.Name, c.typed}, "expires": {got.Expires, at(60)}})
	}
}

// A call that waits, was declined or has no place says so, each with another address.
func TestRefusal_Detail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		r        approval.Refusal
		detail   string
		not      string
		url      bool
		declined bool
	}{
		{"it would ask", approval.Refusal{Verdict: approval.Asks}, "the call itself is answered", "calls of this caller wait", false,
			false},
		{"too many wait", approval.Refusal{Verdict: approval.TooMany}, "5 calls of this caller wait", "the call itself", false, false},
		{"it asked", approval.Refusal{Verdict: approval.Asks, ID: "i"}, "within 10 minutes", "declined", true, false},
		{"it waits", approval.Refusal{Verdict: approval.Waits, ID: "i"}, "within 10 minutes", "declined", true, false},
		{"declined", approval.Refusal{Verdict: approval.Refused, ID: "i"}, "declined this call", "reason", true, true},
		{"declined with a reason", approval.Refusal{Verdict: approval.Refused, ID: "i", Reason: "not now"},
			`The person's reason: "not now"`, "within", true, true},
	} {
		f := c.r.Fault("https://m.test")
		expect.Equal(t, c.name, expect.Values{"detail": {strings.Contains(f.Detail, c.detail), true},
			"other detail": {strings.Contains(f.Detail, c.not), false},
			"address":      {f.Approval.URL != "", c.url}, "declined": {f.Approval.Declined != nil, c.declined}})
	}
}

// Other moves under way make a move as bad as the worst of them.
func TestCompare_OnTheWay(t *testing.T) {
	t.Parallel()
	at := func(name, document string) policy.Policy {
		return policy.Policy{ID: name, Name: name, Type: policy.Platform, Document: []byte(document)}
	}
	from, to := at("from", `{}`), at("to", `{"wifiConfigDisabled":true}`)
	same, wild := at("same", `{"wifiConfigDisabled":true}`), at("wild", `{"x":1}`)
	vr := to
	vr.VROnly = true
	for _, c := range []struct {
		name              string
		from, to          policy.Policy
		onTheWay          []policy.Policy
		difference        approval.Difference
		impact            string
		warnings, unnamed int
		says              string // in what no setting names
	}{
		{"alone", from, to, nil, approval.Risky, "NORMAL", 1, 0, ""},
		{"after an equal policy", from, to, []policy.Policy{same}, approval.Risky, "NORMAL", 1, 0, ""},
		{"after another", from, to, []policy.Policy{from}, approval.Risky, "NORMAL", 1, 1, `another move is under way to "from"`},
		{"after one of unknown settings", same, to, []policy.Policy{wild}, approval.Risky, "NORMAL", 1, 2,
			`another move is under way to "wild"`},
		{"after one of high impact", same, to, []policy.Policy{at("high", `{"wifiConfigDisabled":true,"factoryResetDisabled":true}`)},
			approval.Risky, "HIGH", 0, 1, `under way to "high"`},
		{"after a policy that is gone", same, to, []policy.Policy{{}}, approval.Risky, "HIGH", 0, 1, "not there any more"},
		{"equal", same, to, nil, approval.Same, "NORMAL", 0, 0, ""},
		{"after an equal policy, equal", same, to, []policy.Policy{to}, approval.Same, "NORMAL", 0, 0, ""},
		{"equal, but for headsets only", same, vr, nil, approval.Other, "NORMAL", 0, 1, "for headsets only"},
	} {
		got := approval.Compare(c.from, c.to, c.onTheWay...)
		expect.Equal(t, c.name, expect.Values{"difference": {got.Difference, c.difference}, "impact": {got.Impact, c.impact},
			"warnings": {len(got.Warnings), c.warnings},
			"unnamed":  {len(got.Unnamed), c.unnamed}, "says": {strings.Contains(strings.Join(got.Unnamed, " "), c.says), true}})
	}
}
