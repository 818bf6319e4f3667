package database_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/resource"
)

// companion enrolls a companion of a platform device.
func (f *fixture) companion(a asset.Asset) agentdevice.Device {
	f.Helper()
	token := agentdevice.Token{Hash: sha256.Sum256([]byte(resource.NewID())), CompanyID: f.company.ID, AssetID: a.ID, Epoch: a.Device.Epoch,
		ExpiresAt: f.clock.Now().Add(time.Hour)}
	f.ok(f.db.CreateCompanionToken(f.Context(), token))
	d, err := f.db.RedeemCompanionToken(f.Context(), token.Hash, agentdevice.Device{ID: resource.NewID(), Role: protocol.Companion,
		Key: protocol.PublicKey{SPKI: resource.NewID()}, State: agentdevice.Active}, f.clock.Now())
	f.ok(err)
	return d
}

// However the enrollment of a platform device ends, its companion is hinted to,
// once that is durable.
func TestCompanion_HintedWhenItsDeviceEnds(t *testing.T) {
	withCompany(t, func(f *fixture) {
		var mu sync.Mutex
		var hinted []string
		f.Cleanup(f.db.Listen(agentdevice.EndTopic, func(ids []string) {
			mu.Lock()
			defer mu.Unlock()
			hinted = append(hinted, ids...)
		}))
		for how, end := range map[string]func(device string, a asset.Asset){
			"gone": func(device string, _ asset.Asset) {
				o := f.observation(device)
				o.Gone = true
				f.observe(o)
			},
			"no longer at the platform": func(_ string, a asset.Asset) {
				f.ok(f.db.MarkDeleted(f.Context(), a.ID, a.Device.Epoch, f.clock.Now()))
			},
			"wiped": func(_ string, a asset.Asset) {
				wipe := f.begin(a, command.WipeCompanyData)
				_, _, err := f.db.Advance(f.Context(), wipe.ID,
					command.Transition{From: []command.State{command.Prepared}, To: command.Succeeded})
				f.ok(err)
			},
			"enrolled again": func(device string, _ asset.Asset) { f.observe(f.joined(device, "")) },
		} {
			device := resource.NewID()
			a := f.enroll(device, "")
			d := f.companion(a)
			f.observe(f.observation(device))
			mu.Lock()
			before := slices.Contains(hinted, d.ID)
			mu.Unlock()
			end(device, a)
			mu.Lock()
			after := slices.Contains(hinted, d.ID)
			mu.Unlock()
			equal(f, how+": hinted before, after", words(before, after), words(false, true))
		}
	})
}

// What a companion says of apps is found as what the platform says.
func TestCompanion_AppsAreFound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		d := f.companion(a)
		for _, c := range []struct{ apps, found string }{
			{`[{"packageName":"com.x","versionCode":3}]`, a.Identification}, {`[]`, ""},
		} {
			_, err := f.db.ReportCompanion(f.Context(), d, agentdevice.CompanionReport{
				Status: json.RawMessage(`{"applications":` + c.apps + `}`), SeenAt: f.clock.Now()})
			f.ok(err)
			equal(f, "found", f.finds(asset.Filter{App: "com.x"}), c.found)
		}
	})
}

// A device that fell silent is back when its companion is heard of, and can fall silent again.
func TestReportCompanion_BringsTheDeviceBack(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", f.newPolicy("Office").ID)
		companion := f.companion(a)
		silent := func() {
			f.Helper()
			f.clock.Advance(31 * 24 * time.Hour)
			n, err := f.db.MarkInactive(f.Context(), f.company.ID, f.clock.Now().Add(-30*24*time.Hour), 10)
			f.ok(err)
			equal(f, "silent", n, 1)
			equal(f, "status", f.asset(a.ID).Status, asset.Inactive)
		}
		for range 2 {
			silent()
			_, err := f.db.ReportCompanion(f.Context(), companion, agentdevice.CompanionReport{SeenAt: f.clock.Now()})
			f.ok(err)
			equal(f, "status", f.asset(a.ID).Status, asset.Active)
			f.checkCounts()
		}
		silences := 0
		for _, e := range f.reader(f.db, all()).rest(f) {
			if e.Type == event.DeviceSilent {
				silences++
			}
		}
		equal(f, "told", silences, 2)
	})
}
