package access_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/test/expect"
)

// A permit is renewed for a caller who may do exactly what they could.
func TestPermit_Renew(t *testing.T) {
	t.Parallel()
	was := access.Principal{Kind: access.APIKey, ID: "k", Permissions: access.All, Version: 3, Expires: time.Unix(1000, 0)}
	fewer, refused := was, errors.New("refused")
	fewer.Permissions = access.DevicesRead
	newer := was
	newer.Version, newer.Expires = 4, time.Unix(2000, 0)
	for _, c := range []struct {
		name    string
		now     access.Principal
		err     error
		moved   bool
		version int64
	}{
		{"the same", was, nil, false, 3},
		{"the same at a later version", newer, nil, false, 4},
		{"fewer permissions", fewer, nil, true, 3},
		{"refused", was, refused, true, 3},
	} {
		p := access.NewPermit(was, func(context.Context) (access.Principal, error) { return c.now, c.err })
		err := p.Renew(t.Context())
		expect.Equal(t, c.name, expect.Values{"moved": {errors.Is(err, access.ErrMoved), c.moved}, "moves": {p.Moves() == 1, c.moved},
			"failed": {err != nil, c.moved}, "version": {p.Caller().Version, c.version}})
		now, err := p.Again(t.Context())
		expect.Equal(t, c.name+", again", expect.Values{"error": {err, c.err}, "permissions": {now.Permissions, c.now.Permissions}})
	}
	if _, err := access.NewPermit(was, nil).Again(t.Context()); !errors.Is(err, access.ErrMoved) {
		t.Errorf("a caller who cannot be asked: %v", err)
	}
}

// Who raises the version by a write of their own goes on; a raise by others shows.
func TestPermit_Wrote(t *testing.T) {
	t.Parallel()
	for raised, want := range map[int64]int64{0: 3, 3: 3, 4: 4, 5: 3} {
		p := access.NewPermit(access.Principal{Version: 3}, nil)
		before := p.Used()
		p.Wrote(raised)
		if p.Caller().Version != want || before || !p.Used() {
			t.Errorf("a write that raised it to %d: version %d, used %t before and %t after, want version %d", raised, p.Caller().Version,
				before, p.Used(), want)
		}
	}
}

func TestPermit_Ended(t *testing.T) {
	t.Parallel()
	end := time.Unix(1000, 0)
	for _, c := range []struct {
		name    string
		expires time.Time
		now     time.Time
		want    bool
	}{
		{"without an end", time.Time{}, end, false},
		{"before", end, end.Add(-1), false},
		{"at the end", end, end, true},
		{"after", end, end.Add(1), true},
	} {
		if got := (access.Principal{Expires: c.expires}).Ended(c.now); got != c.want {
			t.Errorf("%s: ended %t, want %t", c.name, got, c.want)
		}
	}
}

// What was read ahead is taken once, by who it fits.
func TestTake(t *testing.T) {
	t.Parallel()
	ctx := access.Commands(t.Context(), "c1", "companies/acme/assets/a1")
	if a := access.AheadOf(ctx); a.Asset != "a1" || a.CompanyID != "c1" {
		t.Errorf("ahead: asset %q of %q", a.Asset, a.CompanyID)
	}
	access.AheadOf(ctx).Found("text", 7)
	seven := func(n int) bool { return n == 7 }
	if _, ok := access.Take(ctx, func(n int) bool { return n == 8 }); ok {
		t.Error("what does not fit is taken")
	}
	if n, ok := access.Take(ctx, seven); !ok || n != 7 {
		t.Errorf("taken: %d, %t", n, ok)
	}
	if n, ok := access.Take(ctx, seven); ok || n != 0 {
		t.Errorf("taken twice: %d, %t", n, ok)
	}
	if s, ok := access.Take(ctx, func(string) bool { return true }); !ok || s != "text" {
		t.Errorf("the other value: %q, %t", s, ok)
	}
	if _, ok := access.Take(t.Context(), seven); ok {
		t.Error("taken without anything ahead")
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	ctx := access.WithOrigin(t.Context(), access.Origin{RequestID: "r1", Address: "192.0.2.1"})
	for given, want := range map[string]string{"": "r1", "r2": "r2"} {
		o := access.OriginOf(access.WithActor(ctx, access.OperatorActor("ada"), given))
		expect.Equal(t, given, expect.Values{"request": {o.RequestID, want}, "actor": {o.Actor.Name, "command line (ada)"},
			"address": {o.Address, "192.0.2.1"}})
	}
	if a := access.OperatorActor(""); a.Name != "command line" || a.Kind != access.System {
		t.Errorf("an operator who is not known: %+v", a)
	}
}
