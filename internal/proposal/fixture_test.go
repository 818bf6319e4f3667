package proposal_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = to
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// schema checks documents against the vendor's published schema.
type schema struct{ document *discovery.Document }

func (s schema) CheckDocument(document json.RawMessage) error {
	return s.document.Validate("Policy", document)
}

var loadSchema = sync.OnceValues(discovery.Load)

// mood is how the vendor takes the next push.
type answer string

const (
	takes        answer = "takes it"
	refuses      answer = "refuses it"
	notReached   answer = "is not reached"
	losesAnswer  answer = "takes it, and the answer is lost"
	losesRequest answer = "never gets it, without a sign"
)

// vendor holds copies of policies.
type vendor struct {
	tb     testing.TB
	schema schema

	mu      sync.Mutex
	mood    answer // of the next push alone; zero: takes
	deaf    bool   // cannot be read
	copies  map[string]policy.Copy
	bytes   map[string]string
	pushes  []policy.Policy
	before  func(policy.Policy) // called before each push, without the lock
	sending map[string]bool
}

func (v *vendor) PushUnsaved(_ context.Context, _ company.Company, p policy.Policy) (policy.PushResult, int64) {
	v.mu.Lock()
	before, overlap := v.before, v.sending[p.ID]
	v.sending[p.ID] = true
	v.mu.Unlock()
	if overlap {
		v.tb.Errorf("two pushes of policy %s at once", p.ID)
	}
	if before != nil {
		before(p)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sending[p.ID] = false
	m := v.mood
	v.mood = ""
	switch m {
	case refuses:
		return policy.PushResult{Code: outcome.Refused, Detail: "the platform refused the policy: too strict"}, 0
	case notReached:
		return policy.PushResult{Code: outcome.NotSent, Detail: "the platform is not reached", Cause: errors.New("no route")}, 0
	case losesRequest:
		return policy.PushResult{Code: outcome.Unknown, Detail: "no answer"}, 0
	}
	if err := v.schema.CheckDocument(p.Document); err != nil {
		v.tb.Errorf("the vendor was sent what it does not know: %v", err)
	}
	v.pushes = append(v.pushes, p)
	version := v.copies[p.ID].Version + 1
	v.copies[p.ID], v.bytes[p.ID] = policy.Copy{Version: version}, string(p.Document)
	if m == losesAnswer {
		return policy.PushResult{Code: outcome.Unknown, Detail: "no answer"}, 0
	}
	return policy.PushResult{Code: outcome.Done}, version
}

func (v *vendor) ReadCopy(_ context.Context, _ company.Company, p policy.Policy) (policy.Copy, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.deaf {
		return policy.Copy{}, errors.New("no answer")
	}
	c := v.copies[p.ID]
	document, exists := v.bytes[p.ID]
	c.Same = exists && document == string(p.Document)
	return c, nil
}

func (v *vendor) next(m answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mood = m
}

func (v *vendor) holds(policyID string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bytes[policyID]
}

// fixture is a company with a platform, and replicas of the service around one
// database.
type fixture struct {
	testing.TB
	clock      *clock
	url        string
	db         *database.DB
	vendor     *vendor
	policies   policy.Service
	service    *proposal.Service
	reconciler *proposal.Reconciler
	company    company.Company
	devices    int
}

// each runs a test on both engines.
func each(t *testing.T, test func(t *testing.T, r *fixture)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, newFixture(t, dbtest.Postgres(t))) })
}

func onSQLite(tb testing.TB) *fixture {
	return newFixture(tb, dbtest.SQLite(tb, filepath.Join(tb.TempDir(), "muster.db")))
}

func newFixture(tb testing.TB, url string) *fixture {
	tb.Helper()
	document, err := loadSchema()
	if err != nil {
		tb.Fatal(err)
	}
	r := &fixture{TB: tb, url: url, clock: &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}}
	r.vendor = &vendor{tb: tb, schema: schema{document}, copies: map[string]policy.Copy{}, bytes: map[string]string{},
		sending: map[string]bool{}}
	r.db = r.open()
	r.policies = policy.Service{Store: r.db, Checker: r.vendor.schema, Now: r.clock.Now}
	r.service, r.reconciler = r.replica(r.db)
	r.company = r.newCompany("acme", "enterprises/LC1")
	return r
}

func (r *fixture) open() *database.DB {
	r.Helper()
	db, err := database.Open(r.Context(), database.Options{URL: r.url, Now: r.clock.Now})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := db.Close(); err != nil {
			r.Error(err)
		}
	})
	return db
}

// replica is one more service on a database.
func (r *fixture) replica(db *database.DB) (*proposal.Service, *proposal.Reconciler) {
	return &proposal.Service{Store: db, Policies: db, Companies: db, Checker: r.vendor.schema, Publisher: r.vendor,
			PublicURL: "https://muster.test", LeaseWait: 2 * time.Second},
		&proposal.Reconciler{Store: db, Policies: db, Companies: db, Publisher: r.vendor, Now: r.clock.Now}
}

func (r *fixture) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *fixture) code(want fault.Code, err error) {
	r.Helper()
	if got := fault.CodeOf(err); got != want {
		r.Fatalf("got %q (%v), want %q", got, err, want)
	}
}

// says compares the text of a fault.
func (r *fixture) says(want string, err error) {
	r.Helper()
	if got := fault.From(err).Detail; got != want {
		r.Errorf("got %q, want %q", got, want)
	}
}

func errAway() error { return fault.New(fault.Unavailable, "the database is away") }

func (r *fixture) newCompany(slug, enterprise string) company.Company {
	r.Helper()
	c := company.Company{ID: resource.NewID(), Slug: slug, Name: slug, InactiveAfter: time.Hour, Enterprise: enterprise,
		CreatedAt: r.clock.Now(), Settings: access.Settings{PolicyChanges: true, OAuthConnections: true}}
	r.ok(r.db.CreateCompany(r.Context(), c))
	return c
}

// newPolicy makes a policy that the vendor holds, with devices.
func (r *fixture) newPolicy(display string, devices int, changes ...policy.Change) policy.Policy {
	r.Helper()
	p, err := r.policies.Create(r.Context(), policy.New{CompanyID: r.company.ID, CompanySlug: r.company.Slug, Name: display,
		Type: policy.Platform, Changes: changes, Description: "for " + display, Labels: []string{"a", "b"}, Group: "g"}, operator())
	r.ok(err)
	for range devices {
		r.enroll(p)
	}
	r.push()
	return r.policy(p.ID)
}

// enroll adds a device to a policy and returns its name.
func (r *fixture) enroll(p policy.Policy) string {
	r.Helper()
	device := resource.NewID()
	r.observe(p, device, false)
	return device
}

func (r *fixture) observe(p policy.Policy, device string, gone bool) {
	r.Helper()
	r.devices++
	r.clock.Advance(time.Millisecond)
	_, err := r.db.Observe(r.Context(), enrollment.Observation{CompanyID: r.company.ID, Device: device, Management: asset.Platform,
		SerialNumber: device, Brand: "Acme", Enrolling: !gone, Gone: gone, EnrolledAt: r.clock.Now(), ObservedAt: r.clock.Now(),
		ReportedAt: r.clock.Now(), PolicyID: p.ID, AppliedPolicy: p.ID, AppliedVersion: 1})
	r.ok(err)
}

// push is the pusher: it brings the vendor's copies to what is saved, under
// the policy's lease.
func (r *fixture) push() {
	r.Helper()
	behind, err := r.db.PoliciesToPush(r.Context(), "", r.clock.Now(), 100)
	r.ok(err)
	for _, p := range behind {
		holder := resource.NewID()
		got, err := r.db.Lease(r.Context(), policy.LeaseKey(p.ID), holder, time.Minute)
		r.ok(err)
		if !got {
			continue
		}
		p = r.policy(p.ID)
		if result, version := r.vendor.PushUnsaved(r.Context(), r.company, p); result.Code == outcome.Done {
			r.ok(r.db.SetPushed(r.Context(), p.ID, p.Version, version, r.clock.Now()))
		}
		r.ok(r.db.Release(r.Context(), policy.LeaseKey(p.ID), holder))
	}
}

func operator() policy.Author { return policy.Author{Kind: "SYSTEM", ID: "operator", Name: "operator"} }

func (r *fixture) policy(id string) policy.Policy {
	r.Helper()
	p, err := r.db.Policy(r.Context(), r.company.ID, id)
	r.ok(err)
	return p
}

func (r *fixture) proposal(id string) proposal.Proposal {
	r.Helper()
	p, err := r.db.Proposal(r.Context(), r.company.ID, id)
	r.ok(err)
	return p
}

func (r *fixture) revisions(policyID string) []policy.Revision {
	r.Helper()
	all, err := r.db.Revisions(r.Context(), r.company.ID, policyID, 100)
	r.ok(err)
	return all
}

// value is a setting of a document.
func value(tb testing.TB, document []byte, setting string) string {
	tb.Helper()
	values, err := policy.View(policy.Platform, document)
	if err != nil {
		tb.Fatal(err)
	}
	i := slices.IndexFunc(values, func(v policy.Value) bool { return v.ID == setting })
	return values[i].Value
}

// key is an API key of the fixture's company that may change policies.
func (r *fixture) key(id string) operation.Call {
	return operation.Call{Principal: access.Principal{Kind: access.APIKey, ID: id, Name: "key " + id, CompanyID: r.company.ID,
		CompanySlug: r.company.Slug, Permissions: access.PoliciesRead | access.PoliciesWrite, Settings: r.company.Settings}}
}

func set(setting, to string) []policy.Change { return []policy.Change{{Setting: setting, Value: to}} }

// propose proposes a change as key "k".
func (r *fixture) propose(p policy.Policy, setting, to string) proposal.Proposal {
	r.Helper()
	made, err := r.service.ProposeChanges(r.Context(), r.key("k"), p.ID, set(setting, to))
	r.ok(err)
	return made
}

func (r *fixture) apply(p proposal.Proposal) (proposal.Proposal, error) {
	r.Helper()
	return r.service.Apply(r.Context(), r.key("k"), p.ID, p.TargetName)
}

// settle lets time pass until nothing is doubtful, with reconciler and pusher at
// work, and demands that both copies agree then.
func (r *fixture) settle(policyIDs ...string) {
	r.Helper()
	for range 6 {
		r.clock.Advance(2 * time.Minute)
		r.ok(r.reconciler.Settle(r.Context()))
		r.push()
	}
	due, err := r.db.Unconfirmed(r.Context(), 10)
	r.ok(err)
	if len(due) > 0 {
		r.Fatalf("still doubtful: %+v", due)
	}
	for _, id := range policyIDs {
		p := r.policy(id)
		if got := r.vendor.holds(id); got != string(p.Document) {
			r.Fatalf("the copies differ\nvendor %s\n  ours %s", got, p.Document)
		}
		if p.Push.Version != p.Version || p.Push.Error != "" {
			r.Fatalf("push %+v of version %d", p.Push, p.Version)
		}
	}
}

// part runs a part of a test on the same fixture: a database of its own would cost
// seconds.
func (r *fixture) part(name string, test func(t *testing.T, r *fixture)) {
	r.TB.(*testing.T).Run(name, func(t *testing.T) {
		sub := *r
		sub.TB, sub.vendor.tb = t, t
		test(t, &sub)
		r.devices = sub.devices
	})
}

// same compares what a test read with what it expects.
func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(want, got, everything, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
