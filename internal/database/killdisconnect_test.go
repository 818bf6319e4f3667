package database_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
)

// disconnectsOn makes this test program one that gives up an enterprise, until it is killed.
const disconnectsOn = "MUSTER_TEST_DISCONNECTS_ON"

func disconnectUntilKilled(url string) error {
	db, err := database.Open(context.Background(), database.Options{URL: url, Now: time.Now})
	if err != nil {
		return err
	}
	c, err := db.CompanyBySlug(context.Background(), "acme")
	if err != nil {
		return err
	}
	return db.FinishDisconnection(context.Background(), c.ID, c.Enterprise, time.Now())
}

// Giving up an enterprise with many devices ends them in parts. Killed with SIGKILL in each
// of them, it leaves whole parts, goes on where it was, and ends each device once.
func TestFinishDisconnection_KilledInEachPart(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		const devices, part = 650, 200
		f := newFixture(t, e)
		f.connect("enterprises/a")
		policy := f.newPolicy("p").ID
		all := make([]asset.Asset, devices)
		for n := range all {
			all[n] = f.enroll("d"+words(n), policy)
		}
		sent := f.begin(all[0], command.Lock)
		f.ok(f.db.SetEnterpriseLost(f.Context(), f.company.ID, "enterprises/a", true, f.clock.Now()))
		f.ok(f.db.BeginDisconnection(f.Context(), f.company.ID, "enterprises/a", true, f.clock.Now()))
		ended := func() int64 {
			n, err := f.db.CountAssets(f.Context(), asset.Filter{CompanyID: f.company.ID, Status: asset.Deleted})
			f.ok(err)
			return n
		}
		kills := 0
		for before := ended(); before < devices; before = ended() {
			killed := killDisconnection(f, func() bool { return ended() > before })
			if now := ended(); now%part != 0 && now != devices {
				f.Errorf("%d devices ended, want whole parts of %d", now, part)
			}
			if killed {
				kills++
			}
		}
		if kills == 0 {
			f.Error("no process was killed: nothing is proven")
		}
		if err := f.db.FinishDisconnection(f.Context(), f.company.ID, "enterprises/a", f.clock.Now()); err != nil &&
			!strings.Contains(err.Error(), "not being given up") {
			f.Fatal(err) // the last process may have been done
		}
		owner, err := f.db.CompanyByID(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "connected", owner.Connected(), false)
		equal(f, "command", f.command(sent.ID).State, command.Unconfirmed)
		records, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Action: activity.CompanyDisconnected},
			activity.Cursor{}, 10)
		f.ok(err)
		equal(f, "records of the disconnection", len(records), 1)
		for _, one := range []asset.Asset{all[0], all[part], all[devices-1]} {
			records, err := f.db.Activity(f.Context(),
				activity.Filter{CompanyID: f.company.ID, AssetID: one.ID, Action: activity.AssetEnded}, activity.Cursor{}, 10)
			f.ok(err)
			equal(f, "records of a device's end", len(records), 1)
		}
		f.checkCounts()
		f.checkTerms()
	})
}

// killDisconnection starts a process that goes on with the disconnection, and kills it once
// due. It reports whether the process was still at work.
func killDisconnection(f *fixture, due func() bool) bool {
	f.Helper()
	return killWorker(f, disconnectsOn, due)
}

// killWorker starts this program with a variable that names the database, and kills it once
// due. It reports whether the process was still at work.
func killWorker(f *fixture, variable string, due func() bool) bool {
	f.Helper()
	self, err := os.Executable()
	f.ok(err)
	process := exec.CommandContext(f.Context(), self)
	process.Env = append(os.Environ(), variable+"="+f.url)
	process.Stderr = os.Stderr
	f.ok(process.Start())
	done := make(chan error, 1)
	go func() { done <- process.Wait() }()
	for !due() {
		select {
		case err := <-done:
			f.ok(err)
			return false
		default:
		}
	}
	_ = process.Process.Kill()
	return <-done != nil
}
