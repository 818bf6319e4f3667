package database_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

var serialRuns = flag.Int("serial-runs", 1, "how often TestWrites_Serializable runs each pair of writes; 200 for the long run")

// scene is one company with one enrolled device, one policy and what the
// writes below need: the same in every run, but for ids.
type scene struct {
	f         *fixture // with the company of this scene
	asset     asset.Asset
	policy    policy.Policy
	other     policy.Policy
	lock      command.Command
	proposal  proposal.Proposal
	companion [sha256.Size]byte // hash of an unspent companion token
	at        time.Time
}

// write is one transaction of the service on the scene's asset or policy. A
// sweep leaves out rows that another transaction has locked and comes back to
// them, so it runs again at the end.
type write struct {
	name  string
	run   func(ctx context.Context, s *scene, db *database.DB) error
	sweep bool
}

// observed is a report of the scene's device. The later of two reports of one
// device wins, so each write has a time of its own.
func (s *scene) observed(seconds int) enrollment.Observation {
	at := s.at.Add(time.Duration(seconds) * time.Second)
	return enrollment.Observation{CompanyID: s.f.company.ID, Device: s.device(), Management: asset.Platform, ReportedAt: at, ObservedAt: at}
}

func (s *scene) device() string { return "enterprises/LC" + s.f.company.Slug + "/devices/d" }

func observe(ctx context.Context, db *database.DB, o enrollment.Observation) error {
	_, err := db.Observe(ctx, o)
	return err
}

// serialWrites are the writes whose pairs are run against each other.
func serialWrites() []write {
	return []write{
		{name: "begin a command", run: func(ctx context.Context, s *scene, db *database.DB) error {
			_, _, err := db.Begin(ctx, s.f.intent(s.asset, command.Reboot), nil)
			return err
		}},
		{name: "settle a command", run: func(ctx context.Context, s *scene, db *database.DB) error {
			_, _, err := db.Advance(ctx, s.lock.ID, command.Transition{From: []command.State{command.Sent}, To: command.Succeeded,
				Outcome: "locked", Feedback: s.at})
			return err
		}},
		{name: "take a status report", run: func(ctx context.Context, s *scene, db *database.DB) error {
			o := s.observed(1)
			o.AppliedPolicy, o.AppliedPush, o.StatusReport = s.policy.ID, 5, json.RawMessage(`{"batteryLevel":7}`)
			return observe(ctx, db, o)
		}},
		{name: "take an enrollment", run: func(ctx context.Context, s *scene, db *database.DB) error {
			o := s.observed(2)
			o.Enrolling, o.EnrolledAt, o.SerialNumber, o.Brand, o.PolicyID = true, o.ObservedAt, "SN", "Acme", s.other.ID
			return observe(ctx, db, o)
		}},
		{name: "take the end of management", run: func(ctx context.Context, s *scene, db *database.DB) error {
			o := s.observed(3)
			o.Gone = true
			return observe(ctx, db, o)
		}},
		{name: "take another device's enrollment with the same serial number",
			run: func(ctx context.Context, s *scene, db *database.DB) error {
				o := s.observed(4)
				o.Device += "2"
				o.Enrolling, o.EnrolledAt, o.SerialNumber, o.Brand, o.PolicyID = true, o.ObservedAt, "SN", "Acme", s.policy.ID
				return observe(ctx, db, o)
			}},
		{name: "move the device to another policy", run: func(ctx context.Context, s *scene, db *database.DB) error {
			return db.AssignPolicy(ctx, s.asset.ID, s.asset.Device.Epoch, s.other.ID)
		}},
		{name: "mark the asset deleted", run: func(ctx context.Context, s *scene, db *database.DB) error {
			return db.MarkDeleted(ctx, s.asset.ID, s.asset.Device.Epoch, s.at)
		}},
		{name: "mark silent devices inactive", sweep: true, run: func(ctx context.Context, s *scene, db *database.DB) error {
			_, err := db.MarkInactive(ctx, s.f.company.ID, s.at.Add(time.Second), 10)
			return err
		}},
		{name: "enroll a companion", run: func(ctx context.Context, s *scene, db *database.DB) error {
			d := agentdevice.Device{ID: resource.NewID(), Role: protocol.Companion,
				Key:   protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: "k"},
				State: agentdevice.Active, EnrolledAt: s.at, SeenAt: s.at}
			_, err := db.RedeemCompanionToken(ctx, s.companion, d, s.at)
			return err
		}},
		{name: "note that push reaches the device", run: func(ctx context.Context, s *scene, db *database.DB) error {
			return db.SetPushReachable(ctx, s.asset.ID, s.asset.Device.Epoch, true)
		}},
		{name: "save the policy", run: func(ctx context.Context, s *scene, db *database.DB) error {
			next := s.policy
			next.Name, next.Document = "Renamed", json.RawMessage(`{"a":2}`)
			_, err := db.SavePolicy(ctx, next, 1, policy.Revision{SavedAt: s.at, Origin: policy.FromPortal})
			return err
		}},
		{name: "delete the policy", run: func(ctx context.Context, s *scene, db *database.DB) error {
			_, err := db.DeletePolicy(ctx, s.f.company.ID, s.policy.ID, s.at)
			return err
		}},
		{name: "note that the platform has the policy", run: func(ctx context.Context, s *scene, db *database.DB) error {
			return db.SetPushed(ctx, s.policy.ID, 1, 5, s.at)
		}},
		{name: "claim a proposal", run: func(ctx context.Context, s *scene, db *database.DB) error {
			_, err := db.ClaimProposal(ctx, proposal.Claim{ID: s.proposal.ID, Holder: "replica", For: time.Minute})
			return err
		}},
	}
}

// newScene sets one up. Names that are compared do not depend on the number.
func newScene(e *engine, t *testing.T, db *database.DB, number int) *scene {
	t.Helper()
	f := &fixture{T: t, engine: e, db: db}
	f.company = f.newCompany(fmt.Sprintf("scene-%d-end", number))
	s := &scene{f: f, at: e.clock.Now()}
	s.policy, s.other = f.newPolicy("First"), f.newPolicy("Second")
	o := s.observed(0)
	o.Enrolling, o.EnrolledAt, o.SerialNumber, o.Brand = true, s.at, "SN", "Acme"
	o.Ownership, o.Mode, o.PolicyID, o.AppliedPolicy, o.AppliedVersion = asset.CompanyOwned, asset.FullyManaged, s.policy.ID, s.policy.ID, 1
	s.asset = f.asset(f.observe(o).AssetID)
	s.lock = f.begin(s.asset, command.Lock)
	_, _, err := db.Advance(t.Context(), s.lock.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Sent,
		Ref: "operations/" + s.lock.ID})
	f.ok(err)
	s.companion = sha256.Sum256([]byte(f.company.ID))
	f.ok(db.CreateCompanionToken(t.Context(), agentdevice.Token{Hash: s.companion, CompanyID: f.company.ID, AssetID: s.asset.ID,
		Epoch: s.asset.Device.Epoch, ExpiresAt: s.at.Add(time.Hour)}))
	p := s.policy
	s.proposal, err = db.Propose(t.Context(), proposal.Proposal{ID: resource.NewProposalID(), CompanyID: p.CompanyID,
		CompanySlug: p.CompanySlug,
		Capability:  proposal.UpdateSettings, Status: proposal.Pending, Impact: proposal.Normal, Title: "t", Summary: "s",
		PolicyID: p.ID, TargetName: p.Name, BaseVersion: p.Version,
		Next:  proposal.Next{PolicyID: p.ID, Name: "Renamed", Document: json.RawMessage(`{"a":3}`)},
		Owner: access.Actor{Kind: access.APIKey, ID: "k1", Name: "ci"}}, 10*time.Minute)
	f.ok(err)
	return s
}

// serialTables are the rows that are compared, each with its company's part.
var serialTables = []struct{ name, where string }{
	{"activity", "company_id = ?"},
	{"agent_devices", "company_id = ?"},
	{"asset_apps", "asset_id IN (SELECT id FROM assets WHERE company_id = ?)"},
	{"asset_counts", "company_id = ? AND count <> 0"},
	{"asset_terms", "company_id = ?"},
	{"assets", "company_id = ?"},
	{"commands", "company_id = ?"},
	{"companion_tokens", "company_id = ?"},
	{"device_names", "company_id = ?"},
	{"patch_counts", "company_id = ? AND count <> 0"},
	{"policies", "company_id = ?"},
	{"policy_pushes", "policy_id IN (SELECT id FROM policies WHERE company_id = ?)"},
	{"policy_revisions", "policy_id IN (SELECT id FROM policies WHERE company_id = ?)"},
	{"proposals", "company_id = ?"},
	{"push_retries", "policy_id IN (SELECT id FROM policies WHERE company_id = ?)"},
}

var (
	serialID   = regexp.MustCompile(`\b[0-9a-z]{26}\b|\b[0-9a-f]{64}\b`)
	serialTime = regexp.MustCompile(`\b1[0-9]{12}\b`)
)

// rows are the scene's rows as text. The ids that the scene knows have names,
// every other id is #, and every time is T.
func (s *scene) rows(ctx context.Context, db *database.DB) ([]string, error) {
	names := strings.NewReplacer(s.f.company.ID, "company", s.f.company.Slug, "slug", s.asset.ID, "asset", s.policy.ID, "policy",
		s.other.ID, "other policy", s.lock.ID, "lock", s.proposal.ID, "proposal")
	var all []string
	for _, table := range serialTables {
		rows, err := db.Text(ctx, "SELECT * FROM "+table.name+" WHERE "+table.where, s.f.company.ID)
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			row = serialID.ReplaceAllString(names.Replace(row), "#")
			rows[i] = table.name + ": " + serialTime.ReplaceAllString(row, "T")
		}
		slices.Sort(rows)
		all = append(all, rows...)
	}
	return all, nil
}

// outcome is what one run left behind.
type outcome struct {
	Codes [2]string
	Rows  []string
}

func codeOf(err error) string {
	if err == nil {
		return "done"
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return string(fault.CodeOf(err))
	}
	return err.Error()
}

// Two writes to one asset and one policy that run at once leave what one of
// their two orders leaves. PostgreSQL is written by two replicas.
func TestWrites_Serializable(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		replicas := []*database.DB{e.openQuietly(t), nil}
		replicas[1] = replicas[0] // SQLite serves one process
		if e.name == "postgres" {
			replicas[1] = e.openQuietly(t)
		}
		m := &matrix{e: e, replicas: replicas}
		writes := serialWrites()
		for i, a := range writes {
			for _, b := range writes[i:] {
				t.Run(a.name+" and "+b.name, func(t *testing.T) {
					t.Parallel()
					m.check(t, [2]write{a, b})
				})
			}
		}
	})
}

// matrix runs pairs of writes in scenes of one database.
type matrix struct {
	e        *engine
	replicas []*database.DB
	mu       sync.Mutex
	scenes   int
}

func (m *matrix) scene(t *testing.T) *scene {
	t.Helper()
	m.mu.Lock()
	m.scenes++
	number := m.scenes
	m.mu.Unlock()
	return newScene(m.e, t, m.replicas[0], number)
}

// check compares runs of a pair at once with both orders.
func (m *matrix) check(t *testing.T, p [2]write) {
	t.Helper()
	orders := []outcome{m.inOrder(t, p, 0, 1), m.inOrder(t, p, 1, 0)}
	for range *serialRuns {
		got := m.atOnce(t, p)
		if !slices.ContainsFunc(orders, func(o outcome) bool { return cmp.Equal(o, got) }) {
			t.Fatalf("both at once leave what neither order leaves.\nUnlike the first order (-first +got):\n%s\nUnlike the second "+
				"(-second +got):\n%s",
				cmp.Diff(orders[0], got), cmp.Diff(orders[1], got))
		}
	}
}

func (m *matrix) inOrder(t *testing.T, p [2]write, order ...int) outcome {
	t.Helper()
	s := m.scene(t)
	var o outcome
	for _, i := range order {
		o.Codes[i] = codeOf(p[i].run(t.Context(), s, m.replicas[i]))
	}
	return m.end(t, p, s, o)
}

func (m *matrix) atOnce(t *testing.T, p [2]write) outcome {
	t.Helper()
	s := m.scene(t)
	var o outcome
	var both sync.WaitGroup
	start := make(chan struct{})
	for i := range p {
		both.Go(func() {
			<-start
			o.Codes[i] = codeOf(p[i].run(t.Context(), s, m.replicas[i]))
		})
	}
	close(start)
	both.Wait()
	return m.end(t, p, s, o)
}

func (m *matrix) end(t *testing.T, p [2]write, s *scene, o outcome) outcome {
	t.Helper()
	for _, w := range p {
		if !w.sweep {
			continue
		}
		if err := w.run(t.Context(), s, m.replicas[0]); err != nil {
			t.Error(err)
		}
	}
	rows, err := s.rows(t.Context(), m.replicas[0])
	if err != nil {
		t.Error(err)
	}
	o.Rows = rows
	return o
}

// openQuietly opens the database without collecting its statements, of which
// this test runs very many.
func (e *engine) openQuietly(t *testing.T) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), database.Options{URL: e.url, Now: e.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
