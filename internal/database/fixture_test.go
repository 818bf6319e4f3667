package database_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// fixture is a database with one company, and what tests do with it in a line.
type fixture struct {
	*testing.T
	*engine
	db      *database.DB
	company company.Company
}

// withCompany runs a test on both engines, each with one company.
func withCompany(t *testing.T, test func(f *fixture)) {
	t.Helper()
	each(t, func(t *testing.T, e *engine) { test(newFixture(t, e)) })
}

func newFixture(t *testing.T, e *engine) *fixture {
	f := &fixture{T: t, engine: e, db: e.open(t)}
	f.db.ProveWith(prover{newSigner()})
	f.company = f.newCompany("acme")
	return f
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) code(want fault.Code, err error) {
	f.Helper()
	if got := fault.CodeOf(err); got != want {
		f.Fatalf("code = %q (%v), want %q", got, err, want)
	}
}

func (f *fixture) newCompany(slug string) company.Company {
	f.Helper()
	c := company.Company{ID: resource.NewID(), Slug: slug, Name: "Company " + slug, InactiveAfter: 30 * 24 * time.Hour,
		Enterprise: "enterprises/LC" + slug, CreatedAt: f.clock.Now(),
		Settings:     access.Settings{DeviceCommands: true, KeepActivity: company.DefaultKeepActivity},
		KeepCommands: company.DefaultKeepCommands, KeepPlaces: company.DefaultKeepPlaces, KeepEvents: company.DefaultKeepEvents}
	f.ok(f.db.CreateCompany(f.Context(), c))
	return c
}

func (f *fixture) newPolicy(display string) policy.Policy {
	f.Helper()
	p := policy.Policy{ID: resource.NewID(), CompanyID: f.company.ID, CompanySlug: f.company.Slug, Name: display,
		Type: policy.Platform, Version: 1, Document: json.RawMessage(`{"a":1}`), CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
	f.ok(f.db.CreatePolicy(f.Context(), p, policy.Author{Kind: "USER", ID: "u1", Name: "Ada"}, ""))
	return p
}

// deletePolicy is DeletePolicy without the number of codes.
func (f *fixture) deletePolicy(ctx context.Context, companyID, id string, at time.Time) error {
	_, err := f.db.DeletePolicy(ctx, companyID, id, at)
	return err
}

// observation is a report of a device, a second after the last.
func (f *fixture) observation(device string) enrollment.Observation {
	f.clock.Advance(time.Second)
	return enrollment.Observation{CompanyID: f.company.ID, Device: device, Management: asset.Platform,
		ReportedAt: f.clock.Now(), ObservedAt: f.clock.Now()}
}

// joined is a device's enrollment under a policy that it has applied.
func (f *fixture) joined(device, policyID string) enrollment.Observation {
	o := f.observation(device)
	o.Enrolling, o.EnrolledAt = true, o.ObservedAt
	o.SerialNumber, o.Brand, o.Model = "SN-"+device, "Acme", "Phone 1"
	o.Ownership, o.Mode = asset.CompanyOwned, asset.FullyManaged
	o.PolicyID, o.AppliedPolicy, o.AppliedVersion = policyID, policyID, 1
	return o
}

func (f *fixture) observe(o enrollment.Observation) enrollment.Change {
	f.Helper()
	change, err := f.db.Observe(f.Context(), o)
	f.ok(err)
	return change
}

// asset reads an asset of the fixture's company.
func (f *fixture) asset(id string) asset.Asset {
	f.Helper()
	a, err := f.db.Asset(f.Context(), f.company.ID, id)
	f.ok(err)
	return a
}

// enroll enrolls a device and returns its asset.
func (f *fixture) enroll(device, policyID string) asset.Asset {
	f.Helper()
	return f.asset(f.observe(f.joined(device, policyID)).AssetID)
}

// intent is a command to an asset's present enrollment.
func (f *fixture) intent(a asset.Asset, kind command.Type) command.Command {
	return intentAt(a, kind, f.clock.Now())
}

func intentAt(a asset.Asset, kind command.Type, now time.Time) command.Command {
	c := command.Command{ID: resource.NewID(), CompanyID: a.CompanyID, AssetID: a.ID, Type: kind, State: command.Prepared,
		CreatedAt: now, Actor: access.Actor{Kind: access.APIKey, ID: "k1", Prefix: "abc", Name: "ci"}}
	if a.Device != nil {
		c.Epoch = a.Device.Epoch
	}
	return c
}

func (f *fixture) begin(a asset.Asset, kind command.Type) command.Command {
	f.Helper()
	c, begun, err := f.db.Begin(f.Context(), f.intent(a, kind), nil)
	f.ok(err)
	if !begun {
		f.Fatal("Begin: not begun")
	}
	return c
}

func (f *fixture) command(id string) command.Command {
	f.Helper()
	c, err := f.db.Command(f.Context(), id)
	f.ok(err)
	return c
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(want, got, everything, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// words joins values with spaces.
func words(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }
