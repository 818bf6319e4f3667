package database_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
)

// imports imports a file's text and says what it did.
func (f *fixture) imports(file string) string {
	f.Helper()
	lines, wrong, err := asset.ReadLines(strings.NewReader(file))
	f.ok(err)
	if len(wrong) > 0 {
		return asset.Imported{Errors: wrong}.Failed()
	}
	planned, err := f.db.Import(f.Context(), f.company.ID, lines, asset.ImportOptions{Dry: true})
	f.ok(err)
	done, err := f.db.Import(f.Context(), f.company.ID, lines, asset.ImportOptions{})
	f.ok(err)
	equal(f, "the plan", fmt.Sprint(planned), fmt.Sprint(done))
	f.checkCounts()
	f.checkTerms()
	if len(done.Errors) > 0 {
		return done.Failed()
	}
	return fmt.Sprint(done.Made, done.Changed, done.Left)
}

func TestImport(t *testing.T) {
	withCompany(t, func(f *fixture) {
		file := "identification,serialNumber,model,tags,user\nOne,S1,Pixel,a;b,Ada\nTwo,S2,,,\nSpare,,,x,\nSpare,,,y,\n"
		equal(f, "first", f.imports(file), "4 0 0")
		equal(f, "again", f.imports(file), "0 0 4")
		equal(f, "recorded", f.recorded(activity.AssetsImported), 1) // what changes nothing is not
		equal(f, "changed", f.imports("serialNumber,tags,user,identification\ns1 ,c,,\nS2,,Bea,\n,z,,Spare\n,,,New\n"), "1 3 0")
		equal(f, "by the new tag", f.finds(asset.Filter{Tags: []string{"c"}}), "One")
		equal(f, "by the old tag", f.finds(asset.Filter{Tags: []string{"a"}}), "")
		equal(f, "an empty cell changes nothing", f.finds(asset.Filter{Text: "ada"}), "One")
		equal(f, "assigned", f.finds(asset.Filter{Text: "bea"}), "Two")

		// A device that enrolls is the asset, and its own facts stay.
		o := f.joined("d1", f.newPolicy("Office").ID)
		o.SerialNumber, o.Brand = "S1", ""
		one := f.asset(f.observe(o).AssetID)
		equal(f, "enrolled", one.Identification, "One")
		equal(f, "managed", f.imports("identification,serialNumber,model,brand\nFirst,S1,Other,other\n"), "0 1 0")
		one = f.asset(one.ID)
		equal(f, "the device's facts", fmt.Sprint(one.Identification, one.Specifications["model"], one.Specifications["brand"]),
			"FirstPhone 1")
		other := f.newCompany("other")
		f.company, other = other, f.company
		equal(f, "another company's", f.imports("identification,serialNumber\nTheirs,S1\n"), "1 0 0")
		f.company = other
		equal(f, "untouched", f.asset(one.ID).Identification, "First")
		_, err := f.db.Import(f.Context(), "none", []asset.Line{{Number: 2, Identification: "One"}}, asset.ImportOptions{})
		f.code(fault.NotFound, err)
	})
}

// importing imports a file's text.
func (f *fixture) importing(file string) transaction {
	lines, wrong, err := asset.ReadLines(strings.NewReader(file))
	f.ok(err)
	equal(f, "faulty lines", len(wrong), 0)
	return func(ctx context.Context, db *database.DB) error {
		_, err := db.Import(ctx, f.company.ID, lines, asset.ImportOptions{})
		return err
	}
}

// slowly runs a test with a company of two devices, "d1" and "d2", and an import that has changed the
// first and waits for the second until letGo.
func slowly(t *testing.T, test func(x *crossed, one asset.Asset, imports transaction, letGo func())) {
	t.Parallel()
	f := newFixture(t, postgresEngine(t)) // on SQLite one transaction writes at a time
	c, err := pgx.Connect(t.Context(), f.url)
	f.ok(err)
	defer func() { f.ok(c.Close(context.Background())) }()
	x := &crossed{fixture: f, c: c}
	one, two := x.enroll("d1", ""), x.enroll("d2", "")
	test(x, one, x.importing("identification,serialNumber,user\nOne,SN-d1,Bea\nTwo,SN-d2,Bea\nThree,SN-d3,Bea\n"),
		x.holding("assets", two.ID))
}

// What ends a user's rights, and a command to a device, do not wait for an import. What decides which
// asset a device is is refused until it has ended, and another import waits.
func TestImport_KeepsNoStopWaiting(t *testing.T) {
	slowly(t, func(x *crossed, one asset.Asset, imports transaction, letGo func()) {
		other, ada, second := x.open(x), x.person("Ada", false), make(chan error, 1)
		joins, p := x.joined("d3", ""), x.agentPolicy("Kiosk")
		x.during(imports, letGo, func() {
			_, begun, err := other.Begin(x.Context(), x.intent(one, command.WipeCompanyData), nil)
			x.ok(err)
			equal(x.T, "a wipe begins", begun, true)
			_, err = other.UpdateUser(x.Context(), x.company.ID, ada.ID, func(u *account.User) error { u.Disabled = true; return nil })
			x.ok(err)
			x.ok(x.settings(func(s *access.Settings) { s.Stop = access.Stop{At: x.clock.Now(), Reason: "lost", All: true} }))

			_, err = other.Observe(impatient{x.Context()}, joins)
			x.code(fault.Unavailable, err)
			_, err = x.redeemWithin(impatient{x.Context()}, x.agentToken(p), "SN-1")
			x.code(fault.Unavailable, err)
			x.code(fault.Unavailable, imports(impatient{x.Context()}, other))
			go func() { second <- imports(x.Context(), other) }()
		})
		x.ok(<-second)
		equal(x.T, "imports that changed something", x.recorded(activity.AssetsImported), 1)
		equal(x.T, "the asset of a device that joins", x.asset(x.observe(joins).AssetID).Identification, "Three")
	})
}

// An import writes nothing if its caller may not do so any more when it ends.
func TestImport_EndsWithItsPermit(t *testing.T) {
	slowly(t, func(x *crossed, one asset.Asset, imports transaction, letGo func()) {
		k, _ := x.newKey("importer", access.All)
		ctx := x.under(k, func(context.Context) (access.Principal, error) { return access.Principal{}, access.ErrMoved })
		x.during(func(_ context.Context, db *database.DB) error {
			if err := imports(ctx, db); !errors.Is(err, access.ErrMoved) {
				return fmt.Errorf("error = %w, want %w", err, access.ErrMoved)
			}
			return nil
		}, letGo, func() {
			x.ok(x.settings(func(s *access.Settings) { s.Stop = access.Stop{At: x.clock.Now(), Reason: "lost", All: true} }))
		})
		equal(x.T, "changed", x.asset(one.ID).Identification, one.Identification)
	})
}

// numbered are so many columns more.
func numbered(n int) string {
	text := ""
	for i := range n {
		text += fmt.Sprint(",column ", i)
	}
	return text
}

// A faulty line writes nothing, and of several assets with one serial number the managed
// one is meant.
func TestImport_FaultyLines(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{
			{ID: "a1", CompanyID: f.company.ID, Identification: "A", Specifications: map[string]string{"serialNumber": "S1"}},
			{ID: "a2", CompanyID: f.company.ID, Identification: "B", Specifications: map[string]string{"serialNumber": "s1"}},
			{ID: "a3", CompanyID: f.company.ID, Identification: "C", Tags: many(50)},
		}))
		equal(f, "several", f.imports("identification,serialNumber\nNew,S9\nTwice,S1\n"),
			"line 3: several assets have this serial number, and none of them is managed")
		equal(f, "nameless", f.imports("serialNumber,tags\nS7,a\n"), "line 2: identification is blank, and no asset has this serial number")
		equal(f, "nothing is made", f.finds(asset.Filter{Text: "new"}), "")
		cells := strings.Repeat(","+strings.Repeat("x", 999), 20)
		equal(f, "much custom data", f.imports("identification"+numbered(20)+"\nMuch"+cells+"\n"),
			"line 2: the asset would have too much custom data: customData must be at most 16 KiB after merging")
		equal(f, "tags replace", f.imports("identification,tags\nC,one\n"), "0 1 0")

		o := f.joined("d1", "")
		o.SerialNumber, o.Brand = "S1", ""
		managed := f.asset(f.observe(o).AssetID)
		equal(f, "the managed one", f.imports("identification,serialNumber\nManaged,S1\n"), "0 1 0")
		equal(f, "named", f.asset(managed.ID).Identification, "Managed")
		same := f.sameSerial(2, "S5")
		equal(f, "several managed", f.imports("identification,serialNumber\nX,S5\n"),
			"line 2: several managed assets have this serial number")
		equal(f, "as they were", f.asset(same[0].ID).Identification, same[0].Identification)
	})
}

// What is written is what was planned: an import whose plan does not hold any more writes
// nothing, and says so. A dry import names what it would change, and writes nothing.
func TestImport_HoldsToItsPlan(t *testing.T) {
	withCompany(t, func(f *fixture) {
		equal(f, "before", f.imports("identification,serialNumber,user\nOne,S1,Ada\nTwo,S2,Ada\n"), "2 0 0")
		lines, _, err := asset.ReadLines(strings.NewReader("identification,serialNumber,user\nOne,S1,Bea\nTwo,S2,Ada\nThree,S3,Cem\n"))
		f.ok(err)
		run := func(o asset.ImportOptions) asset.Imported {
			f.Helper()
			done, err := f.db.Import(f.Context(), f.company.ID, lines, o)
			f.ok(err)
			return done
		}
		planned := run(asset.ImportOptions{Dry: true})
		equal(f, "counts", fmt.Sprint(planned.Made, planned.Changed, planned.Left), "1 1 1")
		equal(f, "sample", fmt.Sprint(len(planned.Sample), planned.Sample[0], planned.Sample[1].Name),
			fmt.Sprint(2, asset.Planned{Line: 2, AssetID: planned.Sample[0].AssetID, Name: "One",
				Changes: []asset.Difference{{Field: "user", Before: "Ada", After: "Bea"}}}, "Three"))
		equal(f, "nothing was written", f.finds(asset.Filter{Text: "bea"}), "")
		equal(f, "the same plan again", run(asset.ImportOptions{Dry: true}).Plan, planned.Plan)

		equal(f, "between", f.imports("serialNumber,user\nS1,Dora\n"), "0 1 0")
		moved := run(asset.ImportOptions{Plan: planned.Plan})
		equal(f, "moved", moved.Moved, true)
		equal(f, "still nothing was written", f.finds(asset.Filter{Text: "cem"}), "")
		equal(f, "what would be written now", moved.Plan, run(asset.ImportOptions{Dry: true}).Plan)
		done := run(asset.ImportOptions{Plan: moved.Plan})
		equal(f, "done", fmt.Sprint(done.Moved, done.Made, done.Changed, done.Left), "false 1 1 1")
		equal(f, "written", f.finds(asset.Filter{Text: "bea"}), "One")
		again := run(asset.ImportOptions{})
		equal(f, "again", fmt.Sprint(again.Made, again.Changed, again.Left, len(again.Sample)), "0 0 3 0")
	})
}
