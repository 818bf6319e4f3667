package access_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
)

func anyControls(t *rapid.T, label string) access.Settings {
	pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, label+" "+what) }
	s := access.Settings{Controls: access.Controls{
		ApplyApproval: access.ApprovalRules()[pick(3, "approval")], SecondPerson: pick(2, "second") == 1,
		ApproverAge: time.Duration(pick(3, "age")) * time.Hour, DestructiveApproval: pick(2, "destructive") == 1,
	}}
	if pick(4, "limit") > 0 {
		s.Controls.DestructiveLimit = access.DestructiveLimit{Devices: 1 + pick(3, "devices"),
			Window: time.Duration(1+pick(3, "minutes")) * time.Minute}
	}
	if pick(2, "stop") == 1 {
		s.Stop = access.Stop{At: time.Unix(1, 0), Reason: "r", All: pick(2, "all") == 1}
	}
	return s
}

// Every difference between two settings is a loosening in at least one direction,
// none is without a difference, and a waiting value becomes what it was asked as.
func TestLoosens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyControls(t, "before"), anyControls(t, "after")
		for _, name := range access.ControlNames() {
			loosens, back := access.Loosens(name, before, after), access.Loosens(name, after, before)
			if same := before.Control(name) == after.Control(name); same == (loosens || back) {
				t.Errorf("%s from %s to %s: loosens %t, back %t", name, before.Control(name), after.Control(name), loosens, back)
			}
			if loosens && back && name != access.DestructiveLimitControl { // more devices in a longer time is neither
				t.Errorf("%s loosens both from %s to %s and back", name, before.Control(name), after.Control(name))
			}
			if name == access.StopControl && after.Stop.On() {
				continue
			}
			set := before
			if err := set.SetControl(name, after.Control(name)); err != nil || set.Control(name) != after.Control(name) {
				t.Errorf("%s set to %s is %s, %v", name, after.Control(name), set.Control(name), err)
			}
		}
	})
	if !access.Loosens("something new", access.Settings{}, access.Settings{}) {
		t.Error("a control that is not known does not wait")
	}
}

// Each control waits when it is loosened, but for the rule about reasons, which
// protects nothing by itself.
func TestControlNames(t *testing.T) {
	t.Parallel()
	waits := map[string]bool{"requirereason": true}
	for _, name := range access.ControlNames() {
		waits[strings.ToLower(string(name))] = true
	}
	for field := range reflect.TypeFor[access.Controls]().Fields() {
		if !waits[strings.ToLower(field.Name)] {
			t.Errorf("%s can be loosened at once", field.Name)
		}
	}
}

func TestLoosening_Wanted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		control     access.ControlName
		after, want string
	}{
		{access.StopControl, "OFF", "resume changes"},
		{access.SecondPersonControl, "OFF", "change “Second person” to off"},
		{access.ApplyApprovalControl, "OFF", "change “Approval of policy changes” to none"},
		{access.ApproverAgeControl, "1h30m", "change “Minimum age of a second administrator” to 1.5 hours"},
		{access.KeepActivityControl, "9600h", "change “How long activity is kept” to 400 days"},
		{access.KeepActivityControl, "long", "change “How long activity is kept” to long"},
		{access.DestructiveLimitControl, "3/120m", "change “Limit of destructive commands” to 3 devices in 120 minutes"},
		{access.DestructiveLimitControl, "many", "change “Limit of destructive commands” to many"},
		{"something new", "ON", "change “something new” to ON"},
	} {
		if got := (access.Loosening{Control: c.control, After: c.after}).Wanted(); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.control, c.after, got, c.want)
		}
	}
}
