package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/test/expect"
)

func TestPermission_Kinds(t *testing.T) {
	t.Parallel()
	const read, both = access.DevicesRead, access.DevicesRead | access.PoliciesRead
	for _, c := range []struct {
		p               access.Permission
		each            []access.Permission
		writes, nothing bool
		implied         access.Permission
	}{
		{0, nil, false, true, 0},
		{read, []access.Permission{read}, false, false, read},
		{access.PoliciesRead, []access.Permission{access.PoliciesRead}, false, false, access.PoliciesRead},
		{both, []access.Permission{read, access.PoliciesRead}, false, false, both},
		{access.DevicesCommand, []access.Permission{access.DevicesCommand}, true, true, access.DevicesCommand | read},
		{access.DevicesCommandDestructive, []access.Permission{access.DevicesCommandDestructive}, true, true,
			access.DevicesCommandDestructive | read},
		{access.PoliciesWrite, []access.Permission{access.PoliciesWrite}, true, true, access.PoliciesWrite | access.PoliciesRead},
		{access.Provisioning, []access.Permission{access.Provisioning}, true, true, access.Provisioning | access.PoliciesRead},
	} {
		each := access.Each(c.p)
		slices.Sort(c.each)
		expect.Equal(t, c.p.String(), expect.Values{"each": {fmt.Sprint(each), fmt.Sprint(c.each)}, "writes": {c.p.Writes(), c.writes},
			"allows nothing": {c.p.AllowsNothing(), c.nothing}, "implied": {c.p.WithImplied(), c.implied}})
	}
	if !both.Has(read) || !both.Has(both) || read.Has(both) || read.Has(access.PoliciesRead) {
		t.Error("some rights are not those that are held")
	}
	var all access.Permission
	for _, one := range access.Each(access.All) {
		all |= one
	}
	if all != access.All || len(access.All.Names()) != len(access.Each(access.All)) {
		t.Errorf("all are %v, one by one %v", access.All, access.Each(access.All))
	}
}

func TestGrant_FrozenConnection(t *testing.T) {
	t.Parallel()
	p := access.Principal{Kind: access.Connection, Permissions: access.All, Settings: access.Settings{OAuthConnections: true}}
	if err := access.Grant(p, access.DevicesRead, access.NoGate); err != nil {
		t.Errorf("a connection: %v", err)
	}
	p.Frozen = true
	if err := access.Grant(p, access.DevicesRead, access.NoGate); err == nil || !strings.Contains(err.Error(), "frozen") {
		t.Errorf("a frozen connection: %v", err)
	}
}

func TestPrincipal_MaySee(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policies []string
		want     bool
	}{{nil, true}, {[]string{}, false}, {[]string{"p2"}, false}, {[]string{"p2", "p1"}, true}} {
		if got := (access.Principal{Policies: c.policies}).MaySee("p1"); got != c.want {
			t.Errorf("limited to %v: %t, want %t", c.policies, got, c.want)
		}
	}
}

// Each character is equally likely: a byte has no room for a fifth of some of them.
func TestRandomText(t *testing.T) {
	t.Parallel()
	const each = 4000
	counts := map[rune]int{}
	text := access.RandomText(62 * each)
	for _, c := range text {
		counts[c]++
	}
	if one := access.RandomText(1); len(one) != 1 {
		t.Errorf("one character is %q", one)
	}
	if len(text) != 62*each || len(counts) != 62 {
		t.Fatalf("%d characters of %d kinds, want %d of 62", len(text), len(counts), 62*each)
	}
	for c, n := range counts {
		if n < each*9/10 || n > each*11/10 { // more than six standard deviations
			t.Errorf("%q occurs %d times, want about %d", c, n, each)
		}
	}
}

func TestReplacement_Refusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    access.Replacement
		want string
	}{
		{access.Replacement{MayDestroy: true, Named: true}, ""},
		{access.Replacement{MayDestroy: true}, "type the asset's name"},
		{access.Replacement{Named: true}, "takes the permission"},
		{access.Replacement{}, "takes the permission"},
	} {
		if err := c.r.Refusal(); err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		}
	}
}

// Each gate, for each kind of caller and all settings.
func TestGrant_EachGate(t *testing.T) {
	t.Parallel()
	for n := range 1 << 5 {
		on := func(bit int) bool { return n>>bit&1 == 1 }
		s := access.Settings{DeviceCommands: on(0), DestructiveCommands: on(1), PolicyChanges: on(2), Provisioning: on(3),
			OAuthConnections: on(4)}
		for _, kind := range kinds {
			for _, gate := range gates {
				p := access.Principal{Kind: kind, Permissions: access.All, Settings: s}
				if err, want := access.Grant(p, access.DevicesRead, gate), expected(p, access.DevicesRead, gate); (err == nil) != want {
					t.Errorf("%s at the gate %q with %+v: %v, want %t", kind, gate, s, err, want)
				}
			}
		}
	}
}

// Destructive commands are off wherever device commands are.
func TestSettings_Switch(t *testing.T) {
	t.Parallel()
	for _, gate := range access.Gates() {
		for _, on := range []bool{false, true} {
			s := access.Settings{DeviceCommands: true, DestructiveCommands: true}
			s.Switch(gate, on)
			want := gate != access.DeviceCommands && gate != access.DestructiveCommands || on
			if s.On(gate) != on || s.DestructiveCommands != want {
				t.Errorf("%s switched to %t: %+v", gate, on, s)
			}
		}
	}
}

func TestDestructiveLimit_Words(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]access.DestructiveLimit{"no limit": {},
		"3 devices in 120 minutes": {Devices: 3, Window: 2 * time.Hour}} {
		if got := l.Words(); got != want {
			t.Errorf("%s: %q, want %q", l, got, want)
		}
	}
}
