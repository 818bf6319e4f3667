package portal_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	records "github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/portal"
	"github.com/musterhq/muster/internal/surface/portal/activity"
	"github.com/musterhq/muster/internal/surface/portal/devices"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// between is a database in which something happens while an export is under way.
type between struct {
	*database.DB
	chosen, read func() // after the ids were chosen, and after a page was read; nil: nothing
}

func (b between) AssetIDs(ctx context.Context, f asset.Filter, o asset.Order, descending bool) ([]string, error) {
	ids, err := b.DB.AssetIDs(ctx, f, o, descending)
	happens(b.chosen)
	return ids, err
}

func (b between) AssetsByID(ctx context.Context, companyID string, ids []string) ([]asset.Asset, error) {
	all, err := b.DB.AssetsByID(ctx, companyID, ids)
	happens(b.read)
	return all, err
}

func (b between) Activity(ctx context.Context, f records.Filter, after records.Cursor, limit int) ([]records.Entry, error) {
	all, err := b.DB.Activity(ctx, f, after, limit)
	happens(b.read)
	return all, err
}

func happens(what func()) {
	if what != nil {
		what()
	}
}

// download is what a person gets at a path, and whether the file is whole.
func (o *office) download(t *testing.T, who *servertest.Browser, store between, path string) (text string, whole bool) {
	t.Helper()
	p := portal.Portal{
		Frame: &frame.Frame{Stands: o.DB().PermitStands, Companies: o.DB(), Users: o.DB(),
			Sessions: web.Sessions{Store: o.DB(), Now: o.Now}, Hub: frame.NewHub(), Now: o.Now, Log: slog.New(slog.DiscardHandler)},
		Sections: []portal.Section{&devices.Section{Assets: store}, &activity.Section{Store: store}},
	}
	mux := http.NewServeMux()
	p.Mount(mux)
	server := httptest.NewServer(mux)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range who.Cookies(o.base) {
		r.AddCookie(cookie)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		return "", false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d: %.300s", path, answer.StatusCode, body)
	}
	return string(body), err == nil
}

// A download ends with the person's leave to read, and is then seen to be a part.
func TestExport_EndsWithTheAccount(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		o := officeOf(env)
		a := o.device(t, "d1", "S1", "Phone", o.Policy)
		for path, shown := range map[string]string{"/devices/export.csv": a.ID, "/activity/export?format=csv": "asset.enrolled",
			"/activity/export?format=ndjson": a.ID} {
			who := o.person(t, account.Admin)
			if text, whole := o.download(t, who, between{DB: o.DB()}, path); !whole || !strings.Contains(text, shown) {
				t.Errorf("%s: whole %t: %.200q lacks %q", path, whole, text, shown)
			}
			disable := func() { who.Change(func(u *account.User) { u.Disabled = true }) }
			if text, whole := o.download(t, who, between{DB: o.DB(), read: disable}, path); whole || text != "" {
				t.Errorf("%s of a disabled person: whole %t, %.200q", path, whole, text)
			}
		}
	})
}

// A device that moves to a policy which the person may not see is not exported.
func TestExport_LeavesOutWhatMovedAway(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		o := officeOf(env)
		stays, moves := o.device(t, "d1", "S1", "Phone", o.Policy), o.device(t, "d2", "S2", "Phone", o.Policy)
		who := o.person(t, account.Viewer, o.Policy.ID)
		text, whole := o.download(t, who, between{DB: o.DB(), chosen: func() {
			if err := o.DB().AssignPolicy(t.Context(), moves.ID, moves.Device.Epoch, o.other.ID); err != nil {
				t.Error(err)
			}
		}}, "/devices/export.csv")
		if !whole || !strings.Contains(text, stays.ID) || strings.Contains(text, moves.ID) {
			t.Errorf("whole %t: %q should have %s alone", whole, text, stays.ID)
		}
	})
}
