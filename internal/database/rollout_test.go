package database_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/rollout"
)

// release is a file of a version, whose bytes its SHA-256 names.
func (f *fixture) release(version string, code int64, size int) rollout.Release {
	f.Helper()
	content := bytes.Repeat([]byte(version), size/len(version)+1)[:size]
	r := rollout.Release{Version: version, Package: "linux-arm64", Code: code, SHA256: fmt.Sprintf("%x", sha256.Sum256(content)),
		Size: int64(size), Signer: "s"}
	f.ok(f.db.AddRelease(f.Context(), r, content))
	return r
}

// agents enrolls n devices with agents that take updates.
func (f *fixture) agents(n int) []agentdevice.Device {
	f.Helper()
	p := f.newPolicy("Headsets" + resource.NewID())
	all := make([]agentdevice.Device, n)
	for i := range all {
		hash := sha256.Sum256([]byte(resource.NewID()))
		f.ok(f.db.CreateAgentToken(f.Context(), agentdevice.Token{Hash: hash, CompanyID: f.company.ID, PolicyID: p.ID,
			ExpiresAt: f.clock.Now().Add(time.Hour)}))
		d := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager,
			Key:   protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: "k"},
			State: agentdevice.Active, EnrolledAt: f.clock.Now(), SeenAt: f.clock.Now()}
		var err error
		all[i], err = f.db.EnrollAgent(f.Context(), agentdevice.Enrollment{Hash: hash, Device: d, Again: f.clock.Now()},
			f.agent("SN-"+d.ID))
		f.ok(err)
		f.build(all[i], 1)
	}
	return all
}

func (f *fixture) build(d agentdevice.Device, code int64) {
	f.Helper()
	f.ok(f.db.UpdateAgent(f.Context(), d.ID,
		agentdevice.Change{Build: &agentdevice.Build{Version: fmt.Sprint(code), Package: "linux-arm64", Code: code}}))
}

func (f *fixture) contact(d *agentdevice.Device) {
	f.Helper()
	d.LastSequence++
	_, taken, err := f.db.Contact(f.Context(), d.ID, d.Key, d.LastSequence)
	if f.ok(err); !taken {
		f.Fatalf("no contact of %s", d.ID)
	}
}

// checkIn has a device follow an update as agents do, and reports whether it has.
func (f *fixture) checkIn(db *database.DB, d *agentdevice.Device) bool {
	f.Helper()
	f.contact(d)
	offer, there, err := db.OfferUpdate(f.Context(), d.ID, "")
	if f.ok(err); !there {
		return false
	}
	_, there, err = db.OfferUpdate(f.Context(), d.ID, offer.SHA256)
	if f.ok(err); !there {
		f.Fatal("a device that is ready is not told again")
	}
	return true
}

func (f *fixture) installed(d *agentdevice.Device, r rollout.Release) {
	f.Helper()
	f.contact(d)
	f.build(*d, r.Code)
	f.ok(f.db.UpdateTold(f.Context(), d.ID, rollout.Word{SHA256: r.SHA256, Outcome: rollout.Installed}))
}

func (f *fixture) rollout(version string) rollout.Rollout {
	f.Helper()
	all, err := f.db.Rollouts(f.Context())
	f.ok(err)
	for _, r := range all {
		if r.Version == version {
			return r
		}
	}
	f.Fatalf("no rollout of %s", version)
	return rollout.Rollout{}
}

// 1,000 devices over three rings, two replicas. One device of each ring lies in a drawer,
// which pauses nothing. The devices of the last ring die on the version: the rollout pauses
// within 37 hours of the first death, names them, and holds back those that have not begun.
func TestRollout_ThreeRings(t *testing.T) {
	withCompany(t, func(f *fixture) {
		other := f.open(f)
		f.clock.Advance(time.Hour)
		devices, good := f.agents(1000), f.release("2.0", 2, 100)
		_, err := f.db.BeginRollout(f.Context(), "2.0", 100)
		f.ok(err)
		watchers := []rollout.Watcher{{Store: f.db, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)},
			{Store: other, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}}
		dead, updated, rings := map[string]bool{}, map[string]bool{}, map[int]int{}
		died := time.Time{}
		for hour := 0; f.rollout("2.0").State == rollout.Running; hour++ {
			if hour == 200 {
				t.Fatalf("it goes on: %+v", f.rollout("2.0"))
			}
			for _, w := range watchers {
				f.ok(w.Watch(f.Context()))
			}
			ring := f.rollout("2.0").Ring
			bad := ring == 100
			for i := range devices {
				d := &devices[i]
				if dead[d.ID] || hour%12 != i%12 { // each comes twice a day
					continue
				}
				began := f.checkIn([]*database.DB{f.db, other}[i%2], d)
				switch {
				case !began || updated[d.ID]:
				case bad || rings[ring] == 0: // the first of each ring goes into a drawer
					dead[d.ID] = true
					rings[ring]++
					if bad && died.IsZero() {
						died = f.clock.Now()
					}
				default:
					f.installed(d, good)
					updated[d.ID] = true
					rings[ring]++
				}
			}
			f.clock.Advance(time.Hour)
		}
		r := f.rollout("2.0")
		if r.State != rollout.Paused || r.Ring != 100 || rings[1] < 9 || rings[10] < 85 {
			t.Fatalf("%+v after %v", r, rings)
		}
		if after := f.clock.Now().Sub(died); after > 37*time.Hour {
			t.Errorf("it pauses after %s", after)
		}
		named := 0
		for _, d := range devices {
			if strings.Contains(r.Reason, "acme/"+d.AssetID) {
				if named++; !dead[d.ID] {
					t.Errorf("it names %s, which is well", d.ID)
				}
			}
		}
		if named == 0 || !strings.Contains(r.Reason, "devices that began") {
			t.Errorf("it names %d devices: %s", named, r.Reason)
		}
		for i := range devices {
			if d := &devices[i]; !dead[d.ID] && f.checkIn(f.db, d) {
				t.Fatal("a paused rollout is offered")
			}
		}
		t.Logf("rings %v, %d named", rings, named)
	})
}

// What is added, in which order.
func TestRelease_Rules(t *testing.T) {
	withCompany(t, func(f *fixture) {
		first := f.release("1.0", 1, 10)
		f.ok(f.db.AddRelease(f.Context(), first, bytes.Repeat([]byte("1.0"), 4)[:10]))
		f.release("2.0", 2, 200_000)
		for name, change := range map[string]func(r *rollout.Release){
			"other bytes":  func(r *rollout.Release) { r.Version, r.Code = "2.0", 2 },
			"lower":        func(r *rollout.Release) { r.Version, r.Code = "1.5", 1 },
			"between":      func(r *rollout.Release) { r.Version, r.Code = "1.5", 0 },
			"same code":    func(r *rollout.Release) { r.Version, r.Code = "3.0", 2 },
			"other signer": func(r *rollout.Release) { r.Signer = "x" },
			"other code":   func(r *rollout.Release) { r.Version, r.Package, r.Code = "2.0", "linux-amd64", 3 },
		} {
			r := rollout.Release{Version: "3.0", Package: "linux-arm64", Code: 3, SHA256: "other", Size: 1, Signer: "s"}
			change(&r)
			if err := f.db.AddRelease(f.Context(), r, []byte("x")); fault.CodeOf(err) != fault.Refused {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := f.db.BeginRollout(f.Context(), "9.0", 100)
		f.code(fault.NotFound, err)
	})
}

// A device reads the files that it was offered, and no others.
func TestRelease_Parts(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices, r := f.agents(2), f.release("2.0", 2, 100_000)
		r.Code = 2
		_, err := f.db.ReleaseSize(f.Context(), devices[0].ID, r.SHA256)
		f.code(fault.NotFound, err)
		_, err = f.db.BeginRollout(f.Context(), "2.0", 100)
		f.ok(err)
		f.ok(rollout.Watcher{Store: f.db, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}.Watch(f.Context()))
		first, second := &devices[0], &devices[1]
		if rollout.Place(first.ID) > rollout.Place(second.ID) {
			first, second = second, first
		}
		if !f.checkIn(f.db, first) || f.checkIn(f.db, second) {
			t.Fatal("the ring has another device")
		}
		size, err := f.db.ReleaseSize(f.Context(), first.ID, r.SHA256)
		if f.ok(err); size != 100_000 {
			t.Errorf("it has %d bytes", size)
		}
		var whole []byte
		for n := range int64(3) {
			part, err := f.db.ReleasePart(f.Context(), first.ID, r.SHA256, n)
			f.ok(err)
			whole = append(whole, part...)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(whole)); got != r.SHA256 {
			t.Errorf("the parts are %s, want %s", got, r.SHA256)
		}
		_, err = f.db.ReleasePart(f.Context(), second.ID, r.SHA256, 0)
		f.code(fault.NotFound, err)
		_, err = f.db.ReleasePart(f.Context(), first.ID, r.SHA256, 3)
		f.code(fault.NotFound, err)
	})
}

// Pauses hold back whom they concern: all devices, or a company's.
func TestRollout_Pauses(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := &f.agents(1)[0]
		f.release("2.0", 2, 10)
		watch := func() {
			f.Helper()
			f.clock.Advance(rollout.WatchEvery)
			f.ok(rollout.Watcher{Store: f.db, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}.Watch(f.Context()))
		}
		begin := func(goal int) error {
			_, err := f.db.BeginRollout(f.Context(), "2.0", goal)
			return err
		}
		offered := func(what string, want bool) {
			f.Helper()
			if got := f.checkIn(f.db, d); got != want {
				t.Errorf("%s: offered %v", what, got)
			}
		}
		offered("before", false)
		f.ok(begin(10))
		offered("before the first look", false)
		watch()
		offered("begun", true)
		f.ok(f.db.SetAgentPause(f.Context(), f.company.ID, true))
		f.ok(f.db.SetAgentPause(f.Context(), f.company.ID, true))
		offered("the company pauses", false)
		f.ok(f.db.SetAgentPause(f.Context(), f.company.ID, false))
		offered("it goes on", true)
		n, err := f.db.PauseRollouts(f.Context())
		if f.ok(err); n != 1 || f.rollout("2.0").State != rollout.Paused {
			t.Errorf("%d are paused", n)
		}
		offered("the operator pauses", false)
		watch()
		f.ok(begin(0))
		if r := f.rollout("2.0"); r.Goal != 10 {
			t.Errorf("without a goal it goes on to %d percent, want as before", r.Goal)
		}
		offered("the operator goes on", true)
		f.build(*d, 2)
		watch()
		watch()
		watch()
		if r := f.rollout("2.0"); r.State != rollout.Done || r.Ring != 10 {
			t.Errorf("with all devices: %+v", r)
		}
		f.code(fault.Refused, begin(5))
		f.ok(begin(100))
		if r := f.rollout("2.0"); r.State != rollout.Running {
			t.Errorf("a larger goal: %+v", r)
		}
		f.release("3.0", 3, 10)
		_, err = f.db.BeginRollout(f.Context(), "3.0", 100)
		if f.ok(err); f.rollout("2.0").State != rollout.Ended {
			t.Errorf("another version: %+v", f.rollout("2.0"))
		}
	})
}

// The log of each company that has agents names the rollouts that the operator begins and pauses, and that pause by
// themselves; what changes nothing is in none.
func TestRollout_IsRecorded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.agents(1)
		f.release("2.0", 2, 10)
		without := f.newCompany("without")
		ctx := access.WithActor(f.Context(), access.Actor{Kind: access.System, Name: "root"}, "")
		_, err := f.db.BeginRollout(ctx, "2.0", 10)
		f.ok(err)
		f.clock.Advance(time.Second)
		for range 2 {
			_, err = f.db.PauseRollouts(ctx)
			f.ok(err)
		}
		f.clock.Advance(time.Second)
		_, err = f.db.BeginRollout(ctx, "2.0", 0)
		f.ok(err)
		f.clock.Advance(time.Second)
		for _, state := range []rollout.State{rollout.Running, rollout.Paused, rollout.Paused} {
			was := f.rollout("2.0")
			is := was
			is.State, is.WatchedAt = state, f.clock.Now()
			moved, err := f.db.MoveRollout(f.Context(), was, is)
			f.ok(err)
			equal(f, "moved", moved, true)
		}
		equal(f, "with agents", f.companyChanges(f.company.ID), []string{
			"Muster paused the rollout of the agent's version 2.0", "root began the rollout of the agent's version 2.0 to 10 percent",
			"root paused the rollouts of the agent to all companies", "root began the rollout of the agent's version 2.0 to 10 percent"})
		equal(f, "without agents", len(f.companyChanges(without.ID)), 0)
	})
}

// companyChanges are the changes of a company in its activity log, in words, the newest first.
func (f *fixture) companyChanges(companyID string) (all []string) {
	f.Helper()
	entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: companyID, Area: "company"}, activity.Cursor{}, 10)
	f.ok(err)
	for _, e := range entries {
		if e.Action == activity.CompanyChanged {
			s := e.Tell(func(string) (past, base, noun string) { return "", "", "" })
			all = append(all, s.Who.Name+" "+s.String())
		}
	}
	return all
}

// What a device says is kept once, and what was installed stays so.
func TestUpdateTold(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d, r := &f.agents(1)[0], f.release("2.0", 2, 10)
		_, err := f.db.BeginRollout(f.Context(), "2.0", 100)
		f.ok(err)
		f.ok(rollout.Watcher{Store: f.db, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}.Watch(f.Context()))
		f.checkIn(f.db, d)
		state := func() (m rollout.Member) {
			f.ok(f.db.Members(f.Context(), "2.0", func(one rollout.Member) { m = one }))
			return m
		}
		tells := func(o rollout.Outcome, detail string) {
			f.Helper()
			f.clock.Advance(time.Minute)
			f.ok(f.db.UpdateTold(f.Context(), d.ID, rollout.Word{SHA256: r.SHA256, Outcome: o, Detail: detail}))
		}
		if m := state(); m.Outcome != rollout.Began || !m.Daily || m.BeganAt.IsZero() {
			t.Errorf("it began: %+v", m)
		}
		tells(rollout.Failed, "no room")
		first := state()
		tells(rollout.Failed, "no room")
		if again := state(); first != again || again.Outcome != rollout.Failed || again.Detail != "no room" {
			t.Errorf("reported twice: %+v, %+v", first, again)
		}
		if f.checkIn(f.db, d); state().Outcome != rollout.Began {
			t.Errorf("it does not begin again: %+v", state())
		}
		tells(rollout.WentBack, "")
		if f.checkIn(f.db, d) {
			t.Error("a version that a device went back from is offered again")
		}
		troubles, err := f.db.UpdateTroubles(f.Context(), f.company.ID, 10)
		if f.ok(err); len(troubles) != 1 || troubles[0].AssetID != d.AssetID || troubles[0].Name == "" ||
			troubles[0].Outcome != rollout.WentBack {
			f.Errorf("the company sees %+v", troubles)
		}
		versions, err := f.db.AgentVersions(f.Context(), f.company.ID)
		if f.ok(err); len(versions) != 1 || versions[0] != (rollout.Count{Version: "1", Devices: 1}) {
			f.Errorf("the company's devices run %+v", versions)
		}
		f.build(*d, 3) // a later one was installed otherwise
		if troubles, err = f.db.UpdateTroubles(f.Context(), f.company.ID, 10); err != nil || len(troubles) > 0 {
			f.Errorf("with a later version the company sees %+v, %v", troubles, err)
		}
		other := f.newCompany("other")
		troubles, err = f.db.UpdateTroubles(f.Context(), other.ID, 10)
		if f.ok(err); len(troubles) > 0 {
			f.Errorf("another company sees %+v", troubles)
		}
		tells(rollout.Installed, "")
		if m := state(); m.Outcome != rollout.WentBack {
			t.Errorf("later words change it: %+v", m)
		}
	})
}

// A company's page counts its devices in an index alone, and finds failed updates without looking at every device.
func TestUpdates_AreReadFromIndexes(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.release("2.0", 2, 10)
		d := f.agents(1)[0]
		const numbers = `WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 2000) `
		f.tamper(`INSERT INTO agent_devices (id, company_id, asset_id, epoch, role, key_alg, key_spki, last_sequence, state, wiped, capabilities,
			push_token, open_deliveries, erasing_at, enrolled_at, seen_at, agent_version, agent_package, agent_code) ` + numbers + `
			SELECT 'd' || i, '` + f.company.ID + `', '` + d.AssetID + `', 1, 'manager', 'ed25519', '', 0, CASE WHEN i % 4 = 0 THEN 'DELETED'
				ELSE 'ACTIVE' END, FALSE, 'null', '', 0, 0, 1, 1, '1.' || (i % 2), 'linux-arm64', 1 FROM n`)
		f.tamper(`INSERT INTO agent_updates (device_id, version, sha256, state, detail, daily, offered_at, began_at, ended_at) ` + numbers + `
			SELECT 'd' || i, '2.0', '', CASE WHEN i % 500 = 1 THEN 'FAILED' ELSE 'INSTALLED' END, '', TRUE, 1, 1, i FROM n`)
		if f.name == "postgres" {
			f.tamper(`VACUUM ANALYZE agent_devices`)
			f.tamper(`VACUUM ANALYZE agent_updates`)
		}
		ran := collect(f.db)
		versions, err := f.db.AgentVersions(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "versions", fmt.Sprint(versions), "[{1.1 1000} {1.0 500} {1 1}]")
		troubles, err := f.db.UpdateTroubles(f.Context(), f.company.ID, 3)
		f.ok(err)
		equal(f, "troubles", len(troubles), 3)
		plan := f.planner(f, f.db, "enable_bitmapscan = off")
		for query, n := range ran.soFar() {
			lines := strings.Join(plan(query, n), "\n")
			alone := strings.Contains(lines, "COVERING INDEX agent_devices_build") ||
				strings.Contains(lines, "Index Only Scan") && strings.Contains(lines, "agent_devices_build")
			if strings.Contains(query, "GROUP BY d.agent_version") && !alone ||
				strings.Contains(query, "u.ended_at DESC") && !strings.Contains(lines, "agent_updates_failed") {
				f.Errorf("%s reads more than it shows:\n%s\n\n%s", f.name, query, lines)
			}
		}
	})
}
