package access_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// The greatest and smallest controls that are taken, and what is just beyond them.
func TestControls_Wrong(t *testing.T) {
	t.Parallel()
	limit := func(devices int, window time.Duration) access.Controls {
		return access.Controls{DestructiveLimit: access.DestructiveLimit{Devices: devices, Window: window}}
	}
	for _, c := range []struct {
		name string
		k    access.Controls
		want string // the setting that is wrong; empty: none
	}{
		{"none", access.Controls{}, ""},
		{"the defaults", access.DefaultControls(), ""},
		{"the greatest age", access.Controls{ApproverAge: access.MaxApproverAge}, ""},
		{"a greater age", access.Controls{ApproverAge: access.MaxApproverAge + 1}, "approverAge"},
		{"an age below zero", access.Controls{ApproverAge: -1}, "approverAge"},
		{"another rule of approvals", access.Controls{ApplyApproval: "SOME"}, "applyApproval"},
		{"another rule of reasons", access.Controls{RequireReason: "SOME"}, "requireReason"},
		{"the smallest limit", limit(1, time.Minute), ""},
		{"the greatest limit", limit(access.MaxLimitDevices, access.MaxLimitWindow), ""},
		{"more devices", limit(access.MaxLimitDevices+1, time.Minute), "destructiveLimit"},
		{"fewer than one device", limit(-1, time.Minute), "destructiveLimit"},
		{"no device in a window", limit(0, time.Minute), "destructiveLimit"},
		{"a longer window", limit(1, access.MaxLimitWindow+time.Minute), "destructiveLimit"},
		{"a shorter window", limit(1, time.Minute-1), "destructiveLimit"},
		{"no whole minutes", limit(1, 90*time.Second), "destructiveLimit"},
	} {
		var wrong []string
		for name := range c.k.Wrong() {
			wrong = append(wrong, name)
		}
		if got := strings.Join(wrong, " "); got != c.want {
			t.Errorf("%s: wrong are %q, want %q", c.name, got, c.want)
		}
	}
	for rule, want := range map[access.ApprovalRule]bool{"": false, access.ApproveNone: false, access.ApproveRisky: true,
		access.ApproveAll: true} {
		if rule.On() != want {
			t.Errorf("the rule %q is on: %t, want %t", rule, rule.On(), want)
		}
	}
}

// While the company is stopped, only the end of the stop takes effect.
func TestLoosening_MayTakeEffect(t *testing.T) {
	t.Parallel()
	stopped := access.Settings{Stop: access.Stop{At: time.Unix(1, 0)}}
	for _, name := range access.ControlNames() {
		if err := (access.Loosening{Control: name}).MayTakeEffect(access.Settings{}); err != nil {
			t.Errorf("%s without a stop: %v", name, err)
		}
		want := fault.Refused
		if name == access.StopControl {
			want = ""
		}
		if err := (access.Loosening{Control: name}).MayTakeEffect(stopped); fault.CodeOf(err) != want {
			t.Errorf("%s during a stop: %v, want %q", name, err, want)
		}
	}
	if err := stopped.SetControl(access.StopControl, "ON"); err == nil || !stopped.Stop.On() {
		t.Errorf("a stop was set as a control: %v", err)
	}
	for _, keep := range access.ControlNames() {
		now := access.Settings{KeepActivity: time.Hour}
		if now.Keep(keep, stopped); now.Stop.On() != (keep == access.StopControl) {
			t.Errorf("keeping %s: stopped %t", keep, now.Stop.On())
		}
	}
	if !slices.Contains(access.ControlNames(), access.StopControl) {
		t.Error("the stop is no control")
	}
}

// An age counts from the moment at which it is reached.
func TestApprover_ExactlyOldEnough(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	k := access.DefaultControls()
	k.SecondPerson = true
	old := now.Add(-k.ApproverAge)
	m := access.Matter{AskedBy: "u2", AskedSince: old}
	a := access.Approver{UserID: "u1", CreatedAt: old, RightsAt: old, Passkeys: []time.Time{old}}
	if err := a.May(m, k, now); err != nil {
		t.Errorf("all exactly old enough: %v", err)
	}
	if err := a.May(m, k, now.Add(-1)); err == nil {
		t.Error("all a moment too young")
	}
	m.Administers = true
	if err := a.May(m, k, now); err == nil || !strings.Contains(err.Error(), "manage the company") {
		t.Errorf("without the right to manage the company: %v", err)
	}
	a.Manages = true
	if err := a.May(m, k, now); err != nil {
		t.Errorf("of an administrator: %v", err)
	}
	k.SecondPerson = false
	if err := a.May(access.Matter{Administers: true, AskedBy: "u1"}, k, now); err == nil ||
		!strings.Contains(err.Error(), "second administrator") {
		t.Errorf("what an administrator asked for: %v", err)
	}
	if got := a.Rights(); !slices.Contains(got, access.ManageCompany) {
		t.Errorf("the rights of an administrator are %v", got)
	}
	a.Manages = false
	if got := a.Rights(); slices.Contains(got, access.ManageCompany) {
		t.Errorf("the rights of another are %v", got)
	}
}
