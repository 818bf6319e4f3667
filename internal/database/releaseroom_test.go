package database_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/rollout"
)

// watch looks at all rollouts a few times, a minute apart.
func (f *fixture) watch() {
	f.Helper()
	for range 5 {
		f.ok(rollout.Watcher{Store: f.db, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}.Watch(f.Context()))
		f.clock.Advance(time.Minute)
	}
}

// rollsOut brings a version to the goal on devices that install it at once.
func (f *fixture) rollsOut(devices []agentdevice.Device, version string, code int64, goal int) {
	f.Helper()
	_, err := f.db.BeginRollout(f.Context(), version, goal)
	f.ok(err)
	for i := range devices {
		f.build(devices[i], code)
		f.contact(&devices[i])
	}
	f.watch()
	if r := f.rollout(version); r.State != rollout.Done || r.Ring != goal {
		f.Fatalf("the rollout of %s is %s at %d percent, want DONE at %d", version, r.State, r.Ring, goal)
	}
}

// add adds a file for a package, and returns the versions of the files that are kept, the newest first.
func (f *fixture) add(version string, code int64, pack string) ([]string, error) {
	f.Helper()
	err := f.db.AddRelease(f.Context(), rollout.Release{Version: version, Package: pack, Code: code, SHA256: version + pack, Size: 1,
		Signer: "s"}, []byte("x"))
	f.clock.Advance(time.Minute)
	all, err2 := f.db.Releases(f.Context())
	f.ok(err2)
	kept := make([]string, len(all))
	for i, r := range all {
		kept[i] = r.Version
	}
	return kept, err
}

// Each version that reaches all devices makes room for the next.
func TestRelease_RoomForEachVersion(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.agents(1)
		for n := int64(2); n < rollout.MaxReleases+6; n++ {
			version := fmt.Sprint(n, ".0")
			kept, err := f.add(version, n, "linux-arm64")
			if f.ok(err); kept[0] != version || len(kept) > rollout.MaxReleases {
				f.Fatalf("%d files are kept, the newest of %s, want %s", len(kept), kept[0], version)
			}
			f.rollsOut(devices, version, n, 100)
		}
		if r := f.rollout("44.0"); r.State != rollout.Ended {
			f.Errorf("the rollout of the last version but one is %s, want ENDED", r.State)
		}
	})
}

// Where rollouts need all files, another is refused, and none is removed for it: also not
// the first file of the same version.
func TestRelease_NoRoom(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.agents(1)
		for n := int64(2); n <= rollout.MaxReleases; n++ {
			_, err := f.add(fmt.Sprint(n, ".0"), n, "linux-arm64")
			f.ok(err)
			f.rollsOut(devices, fmt.Sprint(n, ".0"), n, 10)
		}
		_, err := f.add("41.0", 41, "linux-arm64")
		f.ok(err)
		kept, err := f.add("41.0", 41, "linux-amd64")
		if f.code(fault.Refused, err); err == nil || !strings.Contains(err.Error(), "`muster agent pause`") {
			f.Errorf("the error does not say what to do: %v", err)
		}
		if len(kept) != rollout.MaxReleases || kept[0] != "41.0" || kept[len(kept)-1] != "2.0" {
			f.Errorf("%d files are kept: %v", len(kept), kept)
		}
		_, err = f.db.PauseRollouts(f.Context())
		f.ok(err)
		_, err = f.db.BeginRollout(f.Context(), "40.0", 10)
		f.ok(err)
		kept, err = f.add("41.0", 41, "linux-amd64")
		if f.ok(err); len(kept) != rollout.MaxReleases || kept[1] != "41.0" || kept[len(kept)-1] != "3.0" {
			f.Errorf("%d files are kept: %v", len(kept), kept)
		}
	})
}

// A device that was away gets the higher version. One that went back from it gets the lower
// one again if the operator says so, and that rollout does not end at once.
func TestRollout_ReplacedBegunAgain(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.agents(20)
		away := &devices[19]
		f.clock.Advance(8 * 24 * time.Hour)
		f.release("2.0", 2, 10)
		f.rollsOut(devices[:19], "2.0", 2, 100)
		third := f.release("3.0", 3, 10)
		f.rollsOut(devices[:19], "3.0", 3, 100)
		if r := f.rollout("2.0"); r.State != rollout.Ended {
			f.Errorf("the lower version's rollout is %s, want ENDED", r.State)
		}
		if !f.checkIn(f.db, away) {
			f.Fatal("a device that was away is offered nothing")
		}
		f.ok(f.db.UpdateTold(f.Context(), away.ID, rollout.Word{SHA256: third.SHA256, Outcome: rollout.WentBack}))
		if f.checkIn(f.db, away) {
			f.Error("a device that went back is offered a version whose rollout ended")
		}
		f.rollsOut(devices[:19], "2.0", 3, 100)
		offer, there, err := f.db.OfferUpdate(f.Context(), away.ID, "")
		if f.ok(err); !there || offer.Version != "2.0" {
			f.Errorf("a device that went back is offered %v %q, want 2.0", there, offer.Version)
		}
		if r := f.rollout("3.0"); r.State != rollout.Done {
			f.Errorf("the higher version's rollout is %s, want DONE", r.State)
		}
	})
}
