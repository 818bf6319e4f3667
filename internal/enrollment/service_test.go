package enrollment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func minimal() enrollment.Observation {
	return enrollment.Observation{CompanyID: "c1", Device: "enterprises/LC1/devices/d1", Management: asset.Platform,
		ReportedAt: start, ObservedAt: start}
}

func TestClean_RefusesWhatNamesNoDevice(t *testing.T) {
	t.Parallel()
	if _, err := minimal().Clean(start); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*enrollment.Observation){
		"no company":         func(o *enrollment.Observation) { o.CompanyID = "" },
		"no device":          func(o *enrollment.Observation) { o.Device = "" },
		"long device":        func(o *enrollment.Observation) { o.Device = strings.Repeat("d", 513) },
		"controls in device": func(o *enrollment.Observation) { o.Device = "d\x00" },
		"broken device":      func(o *enrollment.Observation) { o.Device = "d\xff" },
		"management":         func(o *enrollment.Observation) { o.Management = "SELF" },
		"ownership":          func(o *enrollment.Observation) { o.Ownership = "MINE" },
		"mode":               func(o *enrollment.Observation) { o.Mode = "ROOT" },
		"long message id":    func(o *enrollment.Observation) { o.MessageID = strings.Repeat("m", 513) },
	} {
		t.Run(name, func(t *testing.T) {
			o := minimal()
			change(&o)
			if _, err := o.Clean(start); fault.CodeOf(err) != fault.InvalidArguments {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	o := minimal()
	o.Previous = []string{"old", "", "bad\n", o.Device}
	o.SerialNumber, o.Brand, o.Model = " SN\x00-1 ", "ac\u202eme", strings.Repeat("M", 500)
	o.PolicyID, o.AppliedPolicy, o.AppliedVersion = "fine", "../other", 3
	o.EnrolledAt, o.ReportedAt, o.ObservedAt = start.Add(-time.Hour), start.Add(24*365*time.Hour), start.Add(30*time.Second)
	o.APILevel = -3
	o.Specifications = map[string]string{"osVersion": "1\x1b4", "": "x", "\x00": "y", "blank": " \t"}
	o.StatusReport = json.RawMessage(
		`{"batteryLevel":77,"big":12345678901234567890,"text":"a\u0000b\u001b","deep":{"list":["x\u202e",null,true]},"\u0000":1}`)
	o.Location = &asset.Location{Latitude: -90, Longitude: 180, AccuracyMeters: 0, ReportedAt: start.Add(time.Hour)}
	o.Apps = []asset.App{{Package: "b"}, {Package: "a\x00", Name: "A\u202e", Version: strings.Repeat("1", 500)}, {Package: " "},
		{Package: "b", Name: "again"}}
	got, err := o.Clean(start)
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"previous":       {got.Previous, "[old]"},
		"serial number":  {got.SerialNumber, "SN-1"},
		"brand":          {got.Brand, "acme"},
		"model":          {len(got.Model), "128"},
		"policy":         {got.PolicyID, "fine"},
		"applied":        {fmt.Sprint(got.AppliedPolicy, got.AppliedVersion), "0"},
		"enrolled":       {got.EnrolledAt.Equal(o.EnrolledAt), "true"},
		"reported":       {got.ReportedAt.Equal(start), "true"},
		"observed":       {got.ObservedAt.Equal(o.ObservedAt), "true"},
		"API level":      {got.APILevel, "0"},
		"specifications": {got.Specifications, "map[osVersion:14]"},
		"report": {string(got.StatusReport),
			`{"batteryLevel":77,"big":12345678901234567890,"deep":{"list":["x",null,true]},"text":"ab"}`},
		"apps": {fmt.Sprint(len(got.Apps), got.Apps[0].Package, got.Apps[0].Name, len(got.Apps[0].Version), got.Apps[1]),
			"2aA128 {b    false}"},
		"location": {got.Location.ReportedAt.Equal(start), "true"},
	} {
		t.Run(what, func(t *testing.T) {
			if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
				t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
			}
		})
	}
}

func TestClean_DropsInvalidFacts(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	wide := `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", 3000), ",") + `]}`
	for _, report := range []string{"", "null", "[]", "1", `"x"`, "{", `{"a":1}x`, `{"a":1}{}`, deep, wide,
		`{"a":"` + strings.Repeat("x", 300<<10) + `"}`} {
		o := minimal()
		o.StatusReport = json.RawMessage(report)
		if got, err := o.Clean(start); err != nil || got.StatusReport != nil {
			t.Errorf("the report %.40q was kept as %.40q, %v", report, got.StatusReport, err)
		}
	}
	for _, l := range []asset.Location{
		{Latitude: 90.1}, {Latitude: -91}, {Longitude: 181}, {Longitude: -180.5}, {AccuracyMeters: -1},
		{Latitude: math.NaN()}, {Longitude: math.Inf(1)}, {AccuracyMeters: math.Inf(1)},
	} {
		o := minimal()
		o.Location = &l
		if got, err := o.Clean(start); err != nil || got.Location != nil {
			t.Errorf("the location %+v was kept, %v", l, err)
		}
	}
}

// TestClean_AnyInput: what is kept is bounded, printable, and no later
// cleaning changes it.
func TestClean_AnyInput(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "runes")
	})
	rapid.Check(t, func(t *rapid.T) {
		o := minimal()
		o.SerialNumber, o.Brand, o.StableID, o.Model = text.Draw(t, "serial"), text.Draw(t, "brand"), text.Draw(t, "stable"),
			text.Draw(t, "model")
		o.Specifications = rapid.MapOf(text, text).Draw(t, "specifications")
		report, err := json.Marshal(rapid.MapOf(text, text).Draw(t, "report"))
		if err != nil {
			t.Fatal(err)
		}
		o.StatusReport = report
		for range rapid.IntRange(0, 5).Draw(t, "apps") {
			o.Apps = append(o.Apps, asset.App{Package: text.Draw(t, "package"), Name: text.Draw(t, "name")})
		}
		if rapid.Bool().Draw(t, "broken") {
			o.StatusReport = json.RawMessage(text.Draw(t, "raw"))
		}
		got, err := o.Clean(start)
		if err != nil {
			t.Fatal(err)
		}
		kept := []string{got.SerialNumber, got.Brand, got.StableID, got.Model, string(got.StatusReport)}
		for _, a := range got.Apps {
			kept = append(kept, a.Package, a.Name)
		}
		for key, value := range got.Specifications {
			kept = append(kept, key, value)
		}
		for _, k := range kept {
			if !utf8.ValidString(k) || strings.IndexFunc(k, unicode.IsControl) >= 0 {
				t.Fatalf("kept %q", k)
			}
		}
		if got.StatusReport != nil && !json.Valid(got.StatusReport) {
			t.Fatalf("the report is %s", got.StatusReport)
		}
		again, err := got.Clean(start)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(got) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("SN", "osVersion", "14", []byte(`{"batteryLevel":1}`), 1.0, 2.0, int64(0))
	f.Add("\x00", "\xff", "\u202e", []byte(`{"a":[{}]}`), math.NaN(), -181.0, int64(math.MaxInt32))
	f.Fuzz(func(t *testing.T, serial, key, value string, report []byte, latitude, longitude float64, seconds int64) {
		o := minimal()
		o.SerialNumber, o.Specifications, o.StatusReport = serial, map[string]string{key: value}, report
		o.Location = &asset.Location{Latitude: latitude, Longitude: longitude}
		o.ReportedAt = time.Unix(seconds%(1<<40), 0)
		got, err := o.Clean(start)
		if err != nil {
			t.Fatal(err)
		}
		if got.ReportedAt.After(start.Add(time.Minute)) || got.StatusReport != nil && !json.Valid(got.StatusReport) ||
			len(got.SerialNumber) > 4*128 {
			t.Errorf("%+v", got)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
	})
}

// fleet is two companies with devices in a real database.
type fleet struct {
	testing.TB
	now     time.Time
	db      *database.DB
	service *enrollment.Service
}

func newFleet(t testing.TB) *fleet {
	f := &fleet{TB: t, now: start}
	clock := func() time.Time { return f.now }
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, filepath.Join(t.TempDir(), "muster.db")), Now: clock})
	f.ok(err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f.db, f.service = db, &enrollment.Service{Store: db, Companies: db.Companies, Now: clock}
	return f
}

func (f *fleet) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) company(slug string, after time.Duration) company.Company {
	f.Helper()
	c, err := company.New(slug, slug, access.Settings{}, f.now)
	f.ok(err)
	c.InactiveAfter = after
	f.ok(f.db.CreateCompany(f.Context(), c))
	return c
}

func (f *fleet) report(c company.Company, device string) enrollment.Change {
	f.Helper()
	change, err := f.service.Observe(f.Context(), enrollment.Observation{CompanyID: c.ID, Device: device, Management: asset.Platform,
		Enrolling: true, EnrolledAt: start, ReportedAt: f.now, ObservedAt: f.now})
	f.ok(err)
	return change
}

func (f *fleet) status(c company.Company, id string) asset.Status {
	f.Helper()
	a, err := f.db.Asset(f.Context(), c.ID, id)
	f.ok(err)
	return a.Status
}

func TestSweepInactive_SilentDevices(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	acme, other := f.company("acme", time.Hour), f.company("other", 24*time.Hour)
	silent, speaks, patient := f.report(acme, "d1").AssetID, f.report(acme, "d2").AssetID, f.report(other, "d3").AssetID
	f.now = start.Add(time.Hour - time.Second)
	f.report(acme, "d2")
	if n, err := f.service.SweepInactive(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d became inactive too early, %v", n, err)
	}
	f.now = start.Add(time.Hour + time.Second)
	if n, err := f.service.SweepInactive(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d became inactive, %v", n, err)
	}
	if f.status(acme, silent) != asset.Inactive || f.status(acme, speaks) == asset.Inactive || f.status(other, patient) == asset.Inactive {
		t.Error("the wrong ones became inactive")
	}
	f.report(acme, "d1")
	if got := f.status(acme, silent); got == asset.Inactive {
		t.Error("a device that speaks again stays inactive")
	}
}

func TestSweepInactive_TakesBatches(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	acme := f.company("acme", time.Hour)
	const devices = 520
	for i := range devices {
		f.report(acme, fmt.Sprintf("d%d", i))
	}
	f.now = start.Add(2 * time.Hour)
	if n, err := f.service.SweepInactive(t.Context()); n != devices || err != nil {
		t.Errorf("%d became inactive, %v", n, err)
	}
}

// failing is a store in which one company's devices are out of reach.
type failing struct {
	enrollment.Store
	company string
}

func (s failing) MarkInactive(ctx context.Context, companyID string, since time.Time, limit int) (int, error) {
	if companyID == s.company {
		return 0, errors.New("out of reach")
	}
	return s.Store.MarkInactive(ctx, companyID, since, limit)
}

func TestSweepInactive_FailureStaysInOneCompany(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	bad, good := f.company("bad", time.Hour), f.company("good", time.Hour)
	f.report(bad, "d1")
	id := f.report(good, "d2").AssetID
	f.now = start.Add(2 * time.Hour)
	f.service.Store = failing{f.db, bad.ID}
	n, err := f.service.SweepInactive(t.Context())
	if n != 1 || err == nil || !strings.Contains(err.Error(), "company bad") || f.status(good, id) != asset.Inactive {
		t.Errorf("%d, %v", n, err)
	}
}

func TestObserve_RefusesBeforeTheStore(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	if _, err := f.service.Observe(t.Context(), enrollment.Observation{CompanyID: "c1", Device: "d\n"}); fault.CodeOf(err) !=
		fault.InvalidArguments {
		t.Error(err)
	}
}
