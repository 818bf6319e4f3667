package database_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

func TestObserve_DeviceJoinsReportsAndLeaves(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Warehouse")
		o := f.joined("enterprises/LCacme/devices/d1", p.ID)
		o.AppliedPolicy, o.ReportedAt = "", time.Time{}
		change := f.observe(o)
		if !change.Applied || change.Epoch != 1 || change.PolicyID != "" {
			f.Fatalf("joining: %+v", change)
		}
		a := f.asset(change.AssetID)
		equal(f, "status", a.Status, asset.Synchronizing)
		equal(f, "policy's name", a.Device.PolicyName, "Warehouse")
		equal(f, "syncedAt", a.SyncedAt, time.Time{})

		o = f.observation(o.Device)
		o.AppliedPolicy, o.AppliedVersion = p.ID, 1
		change = f.observe(o)
		if change.Epoch != 1 || change.PolicyID != p.ID {
			f.Fatalf("applying: %+v", change)
		}
		a = f.asset(a.ID)
		equal(f, "status", a.Status, asset.Active)
		equal(f, "syncedAt", a.SyncedAt, f.clock.Now())
		equal(f, "applied", a.Device.PolicyApplied, 1)

		wipe, lock := f.begin(a, command.WipeCompanyData), f.begin(a, command.Lock)
		o = f.observation(o.Device)
		o.Gone = true
		if change = f.observe(o); !change.Ended || change.Epoch != 1 {
			f.Fatalf("leaving: %+v", change)
		}
		a = f.asset(a.ID)
		equal(f, "status", a.Status, asset.Deleted)
		equal(f, "device", a.Device, nil)
		equal(f, "wipe", f.command(wipe.ID).State, command.Succeeded)
		equal(f, "lock", f.command(lock.ID).State, command.Failed)

		if change = f.observe(f.observation(o.Device)); change != (enrollment.Change{}) {
			f.Fatalf("a late report: %+v", change)
		}
		f.checkCounts()
	})
}

func TestObserve_ChangesOnlyWhatIsReported(t *testing.T) {
	withCompany(t, func(f *fixture) {
		lost := true
		o := f.joined("d", f.newPolicy("p").ID)
		o.APILevel, o.LostMode = 34, &lost
		o.Specifications = map[string]string{"osVersion": "14", "imei": "1"}
		o.StatusReport = json.RawMessage(`{"batteryLevel": 7}`)
		o.Location = &asset.Location{Latitude: 1.5, Longitude: -2.25, AccuracyMeters: 3, ReportedAt: o.ReportedAt}
		id := f.observe(o).AssetID
		before := f.asset(id)
		equal(f, "specifications", before.Specifications, map[string]string{"osVersion": "14", "imei": "1",
			"serialNumber": "SN-d", "brand": "Acme", "model": "Phone 1"})
		equal(f, "location", *before.Device.Location, *o.Location)
		equal(f, "status report", string(before.Device.StatusReport), `{"batteryLevel": 7}`)
		equal(f, "lost, level", words(before.Device.LostMode, before.Device.APILevel), "true 34")
		equal(f, "ownership, mode", words(before.Device.Ownership, before.Device.Mode), words(asset.CompanyOwned, asset.FullyManaged))

		next := f.observation("d")
		next.Specifications = map[string]string{"osVersion": "15"}
		f.observe(next)
		want := before
		want.Specifications["osVersion"] = "15"
		want.SyncedAt, want.Device.LastSeenAt = next.ReportedAt, next.ReportedAt
		equal(f, "asset", fmt.Sprint(f.asset(id).Specifications), fmt.Sprint(want.Specifications))
		got, expect := *f.asset(id).Device, *want.Device
		equal(f, "location", *got.Location, *expect.Location)
		got.Location, expect.Location = nil, nil
		equal(f, "device", got, expect)

		old := f.observation("d")
		old.Location = &asset.Location{ReportedAt: o.ReportedAt.Add(-time.Hour)}
		f.observe(old)
		equal(f, "location after an older one", f.asset(id).Device.Location.Latitude, 1.5)
	})
}

// The platform's device, read again, has the last report: it does not bring back the lost mode that ended after it.
func TestObserve_LostModeOfALastReport(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d", "")
		o.MessageID, o.LostMode = "m1", new(true)
		id := f.observe(o).AssetID
		lost := func(what string, want bool) {
			f.Helper()
			f.clock.Advance(time.Minute)
			equal(f, "lost after "+what, f.asset(id).Device.LostMode, want)
		}
		lost("its report", true)
		f.observe(enrollment.Observation{CompanyID: f.company.ID, Device: "d", Management: asset.Platform, LostMode: new(false),
			ObservedAt: f.clock.Now(), ReportedAt: f.clock.Now()})
		lost("its user ended it", false)
		read := o
		read.MessageID, read.Enrolling, read.ObservedAt = "", false, f.clock.Now()
		f.observe(read)
		lost("the same report was read", false)
		read.ObservedAt, read.ReportedAt = f.clock.Now(), f.clock.Now()
		f.observe(read)
		lost("a new report was read", true)
		said := f.clock.Now()
		f.clock.Advance(time.Minute)
		c := f.begin(f.asset(id), command.StopLostMode)
		_, _, err := f.db.Advance(f.Context(), c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Succeeded,
			Feedback: f.clock.Now()})
		f.ok(err)
		lost("it was found", false)
		late := o
		late.MessageID, late.Enrolling, late.ObservedAt, late.ReportedAt = "m2", false, said, said
		f.observe(late)
		lost("an earlier report came late", false)
		late.MessageID, late.ObservedAt, late.ReportedAt = "m3", f.clock.Now(), f.clock.Now()
		f.observe(late)
		lost("a later report", true)
	})
}

// The platform may list a device for a moment after its wipe. A comparison does not enroll that again.
func TestObserve_ListedAfterItsWipe(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, c := range []struct {
			name         string
			after, later time.Duration // from the wipe to the comparison, and from one enrollment to the next
			joins        bool
		}{{"at once", time.Minute, 0, false}, {"within the hour", 59 * time.Minute, 0, false}, {"after an hour", time.Hour, 0, true},
			{"enrolled again", time.Minute, time.Minute, true}} {
			joined := f.joined(c.name, "")
			id := f.observe(joined).AssetID
			f.clock.Advance(time.Hour)
			wipe := f.begin(f.asset(id), command.WipeCompanyData)
			_, _, err := f.db.Advance(f.Context(), wipe.ID, command.Transition{From: []command.State{command.Prepared},
				To: command.Succeeded, Feedback: f.clock.Now()})
			f.ok(err)
			equal(f, "status after the wipe", f.asset(id).Status, asset.Deleted)
			f.clock.Advance(c.after)
			listed := f.joined(c.name, "")
			listed.EnrolledAt = joined.EnrolledAt.Add(c.later)
			change := f.observe(listed)
			equal(f, c.name, words(change.Applied, f.asset(id).Status.Enrolled()), words(c.joins, c.joins))
		}
	})
}

func TestObserve_EachMessageOnce(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d", "")
		o.MessageID = "m1"
		equal(f, "first", f.observe(o).Applied, true)
		o.ObservedAt = o.ObservedAt.Add(time.Second)
		equal(f, "again", f.observe(o), enrollment.Change{})
		other := f.newCompany("other")
		o.CompanyID, o.Device = other.ID, "other"
		equal(f, "another company's", f.observe(o).Applied, true)
	})
}

func TestObserve_StaleIsDropped(t *testing.T) {
	withCompany(t, func(f *fixture) {
		early := f.observation("d")
		id := f.observe(f.joined("d", "")).AssetID
		equal(f, "an early report, late", f.observe(early).Applied, false)
		early.Gone = true
		equal(f, "an early end, late", f.observe(early).Applied, false)
		same := f.observation("d")
		equal(f, "a report", f.observe(same).Applied, true)
		equal(f, "one of the same moment", f.observe(same).Applied, true)
		equal(f, "status", f.asset(id).Status, asset.Active)

		// The end is the newest; an enrollment from before it brings nothing back.
		before := f.joined("d", "")
		gone := f.observation("d")
		gone.Gone = true
		f.observe(gone)
		equal(f, "an enrollment from before the end", f.observe(before).Applied, false)
		equal(f, "status", f.asset(id).Status, asset.Deleted)
		equal(f, "a second end", f.observe(gone).Applied, false)
	})
}

// A lost device's place says nothing of the report that was sent before it.
func TestObserve_PlaceMakesNoReportStale(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		found := false
		f.clock.Advance(time.Minute)
		report := f.observation("d")
		report.LostMode, report.StatusReport, report.MessageID = &found, json.RawMessage(`{"batteryLevel": 7}`), "m1"
		f.clock.Advance(time.Minute)
		here := &asset.Location{Latitude: 1.5, Longitude: -2.25, ReportedAt: f.clock.Now()}
		f.observe(enrollment.Observation{CompanyID: f.company.ID, Device: "d", Management: asset.Platform, Location: here,
			ObservedAt: f.clock.Now(), MessageID: "m2"})
		equal(f, "the report is applied", f.observe(report).Applied, true)
		a = f.asset(a.ID)
		equal(f, "location", *a.Device.Location, *here)
		equal(f, "status report", string(a.Device.StatusReport), `{"batteryLevel": 7}`)
		report.ObservedAt, report.MessageID = report.ObservedAt.Add(-time.Second), "m3"
		equal(f, "an older report is applied", f.observe(report).Applied, false)
	})
}

// A lost device's place is kept also if a newer report of the device was applied before it, and changes nothing else.
func TestObserve_ReportMakesNoPlaceStale(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.clock.Advance(time.Minute)
		id := f.enroll("d", f.newPolicy("Office").ID).ID
		joined := f.clock.Now()
		place := func(found, published time.Time) enrollment.Observation {
			return enrollment.Observation{CompanyID: f.company.ID, Device: "d", Management: asset.Platform, ObservedAt: published,
				Location: &asset.Location{Latitude: 1.5, Longitude: -2.25, ReportedAt: found}}
		}
		f.clock.Advance(2 * time.Minute)
		f.observe(f.observation("d"))
		before, late := f.asset(id), place(joined.Add(time.Second), joined.Add(time.Minute))
		equal(f, "a late place is applied", f.observe(late).Applied, true)
		before.Device.Location = late.Location
		equal(f, "device", f.asset(id).Device, before.Device)
		stale := f.observation("d")
		stale.ObservedAt = f.clock.Now().Add(-2 * time.Second)
		equal(f, "an older report is applied", f.observe(stale).Applied, false)

		f.observe(place(f.clock.Now(), f.clock.Now()))
		late = place(joined.Add(30*time.Second), joined.Add(time.Minute))
		equal(f, "a late place that is not the newest is applied", f.observe(late).Applied, true)
		equal(f, "place", f.asset(id).Device.Location.ReportedAt, f.clock.Now())
		early := place(joined.Add(-time.Second), joined.Add(-time.Second))
		equal(f, "a place from before the enrollment is applied", f.observe(early).Applied, false)
		trail, err := f.db.Trail(f.Context(), f.company.ID, id, time.Time{}, 10)
		f.ok(err)
		equal(f, "places", len(trail), 3)
		gone := f.observation("d")
		gone.Gone = true
		f.observe(gone)
		ended := f.observe(place(joined.Add(time.Minute), joined.Add(time.Minute)))
		equal(f, "a place of a device that ended is applied", ended.Applied, false)
	})
}

func TestObserve_UnknownDeviceThatEnded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.observation("d")
		o.Gone = true
		equal(f, "the end", f.observe(o), enrollment.Change{})
		equal(f, "a late report", f.observe(f.observation("d")), enrollment.Change{})
		if change := f.observe(f.joined("d", "")); !change.Applied || change.Epoch != 1 {
			f.Fatalf("a new enrollment: %+v", change)
		}
		f.checkCounts()
	})
}

func TestObserve_ReportEnrolls(t *testing.T) {
	withCompany(t, func(f *fixture) {
		change := f.observe(f.observation("d"))
		if !change.Applied || change.Epoch != 1 {
			f.Fatalf("%+v", change)
		}
		// The enrollment that comes after all, older or newer, begins nothing.
		o := f.joined("d", "")
		o.EnrolledAt = f.asset(change.AssetID).Device.EnrolledAt.Add(-time.Second)
		f.observe(o)
		equal(f, "epoch", f.asset(change.AssetID).Device.Epoch, 1)
	})
}

func TestObserve_DeviceEnrollsAgain(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for what, again := range map[string]func(o *enrollment.Observation){
			"under a previous name": func(o *enrollment.Observation) {
				o.Previous, o.Device, o.SerialNumber = []string{"other", o.Device}, o.Device+"-new", ""
			},
			"with its brand and serial": func(o *enrollment.Observation) {
				o.Device, o.Brand, o.SerialNumber = o.Device+"-new", "ACME ", " sn-"+o.Device
			},
			"under the same name": func(*enrollment.Observation) {},
		} {
			for _, ended := range []bool{false, true} {
				f.enrollAgain(fmt.Sprintf("%s, ended %v", what, ended), ended, again)
			}
		}
		f.enrollAgain("under another management", true, func(o *enrollment.Observation) {
			o.Device, o.Management = o.Device+"-agent", asset.Agent
		})
		f.checkCounts()
	})
}

// enrollAgain enrolls a device, has it end if it should, and enrolls it again.
func (f *fixture) enrollAgain(what string, ended bool, again func(o *enrollment.Observation)) {
	device := what
	a := f.enroll(device, f.newPolicy(what).ID)
	wipe, lock := f.begin(a, command.WipeCompanyData), f.begin(a, command.Lock)
	if ended {
		f.ok(f.db.MarkDeleted(f.Context(), a.ID, 1, f.clock.Now()))
	}
	o := f.joined(device, "")
	again(&o)
	equal(f, what, f.observe(o), enrollment.Change{Applied: true, AssetID: a.ID, Epoch: 2})
	for _, c := range []command.Command{wipe, lock} {
		if got := f.command(c.ID); !got.State.Final() || got.Outcome == "" {
			f.Fatalf("%s: a command of the old enrollment: %+v", what, got)
		}
	}
	d := f.asset(a.ID).Device
	equal(f, what, words(d.Name, d.Management, d.PolicyID, d.PolicyApplied), words(o.Device, o.Management, "", 0))
	if o.Device == device {
		return
	}
	late := f.observation(device)
	late.Gone = true
	equal(f, what+": the old name's end", f.observe(late).Applied, false)
	equal(f, what, f.asset(a.ID).Status.Enrolled(), true)
}

func TestObserve_SimilarDevicesStayApart(t *testing.T) {
	withCompany(t, func(f *fixture) {
		other := f.newCompany("other")
		for what, change := range map[string]func(o *enrollment.Observation){
			"another brand":          func(o *enrollment.Observation) { o.Brand = "Other" },
			"another serial":         func(o *enrollment.Observation) { o.SerialNumber += "e" },
			"no serial":              func(o *enrollment.Observation) { o.SerialNumber = "" },
			"a stable id of its own": func(o *enrollment.Observation) { o.StableID = "s" },
			"another company":        func(o *enrollment.Observation) { o.CompanyID = other.ID },
		} {
			a := f.enroll(what, "")
			o := f.joined(what, "")
			o.Device = "new " + what
			change(&o)
			if got := f.observe(o); got.AssetID == a.ID || got.Epoch != 1 {
				f.Fatalf("%s: taken for the same device: %+v", what, got)
			}
		}
	})
}

func TestObserve_PlaceholderSerialsIdentifyNothing(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ids := map[string]bool{}
		for _, device := range []string{"d", "e", "f"} {
			o := f.joined(device, "")
			o.SerialNumber = "Unknown"
			ids[f.observe(o).AssetID] = true
		}
		equal(f, "assets", len(ids), 3)
	})
}

func TestObserve_StableIDFindsTheDevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d", "")
		o.StableID, o.SerialNumber = "s", ""
		id := f.observe(o).AssetID
		o = f.joined("e", "")
		o.StableID, o.SerialNumber = "s", ""
		equal(f, "asset", f.observe(o).AssetID, id)
		// One company's id means nothing in another.
		o = f.joined("f", "")
		o.StableID, o.CompanyID = "s", f.newCompany("other").ID
		if f.observe(o).AssetID == id {
			f.Fatal("another company's device was taken for it")
		}
	})
}

func TestObserve_ImportedAssetEnrollsBySerial(t *testing.T) {
	withCompany(t, func(f *fixture) {
		imported := asset.Asset{ID: resource.NewID(), CompanyID: f.company.ID, Identification: "Till 3", CreatedAt: f.clock.Now(),
			CustomData: map[string]string{"location": "Oslo"}, Tags: []string{"till"},
			Specifications: map[string]string{"serialNumber": "sn-d "}}
		unnamed := asset.Asset{ID: resource.NewID(), CompanyID: f.company.ID, CreatedAt: f.clock.Now(),
			Specifications: map[string]string{"serialNumber": "SN-e", "brand": "ACME"}}
		foreign := asset.Asset{ID: resource.NewID(), CompanyID: f.company.ID, CreatedAt: f.clock.Now(),
			Specifications: map[string]string{"serialNumber": "SN-f", "brand": "Other"}}
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{imported, unnamed, foreign}))
		o := f.joined("d", "")
		o.StableID = "s" // an imported asset cannot know it
		change := f.observe(o)
		equal(f, "change", change, enrollment.Change{Applied: true, AssetID: imported.ID, Epoch: 1})
		a := f.asset(imported.ID)
		equal(f, "kept", words(a.Identification, a.CustomData, a.Tags, a.Status),
			words("Till 3", imported.CustomData, imported.Tags, asset.Active))
		equal(f, "named", f.asset(f.observe(f.joined("e", "")).AssetID).Identification, "Phone 1 SN-e")
		if f.observe(f.joined("f", "")).AssetID == foreign.ID {
			f.Fatal("an asset of another brand was enrolled")
		}
		f.checkCounts()
	})
}

func TestObserve_AssetIsNamedAfterItsDevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for want, o := range map[string]func(o *enrollment.Observation){
			"Phone 1 6789": func(o *enrollment.Observation) { o.SerialNumber = "123456789" },
			"Phone 1 12":   func(o *enrollment.Observation) { o.SerialNumber = "12" },
			"Phone 1 cdef": func(o *enrollment.Observation) { o.SerialNumber = "" },
			"Brand ß€öä":   func(o *enrollment.Observation) { o.SerialNumber, o.Model, o.Brand = "xß€öä", "", "Brand" },
			"Device cdef":  func(o *enrollment.Observation) { o.SerialNumber, o.Model, o.Brand = "unknown", "", "" },
		} {
			report := f.joined("enterprises/LC/devices/"+resource.NewID()+"cdef", "")
			o(&report)
			equal(f, "identification", f.asset(f.observe(report).AssetID).Identification, want)
		}
	})
}

func TestObserve_PolicyMoveIsSynchronizing(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, q := f.newPolicy("p"), f.newPolicy("q")
		a := f.enroll("d", p.ID)
		counts := func() string { return words(f.policy(p.ID).DeviceCount, f.policy(q.ID).DeviceCount) }
		equal(f, "devices", counts(), "1 0")
		move := enrollment.Observation{CompanyID: f.company.ID, Device: "d", PolicyID: q.ID, ObservedAt: f.clock.Now().Add(time.Second)}
		change := f.observe(move)
		equal(f, "change", change.PolicyID, p.ID)
		a = f.asset(a.ID)
		equal(f, "moving", words(a.Status, a.Device.PolicyName, a.Device.PolicyApplied), words(asset.Synchronizing, "q", 0))
		equal(f, "devices", counts(), "0 1")
		o := f.observation("d")
		o.AppliedPolicy, o.AppliedVersion = q.ID, 3
		change = f.observe(o)
		equal(f, "change", change.PolicyID, q.ID)
		a = f.asset(a.ID)
		equal(f, "moved", words(a.Status, a.Device.PolicyName, a.Device.PolicyApplied), words(asset.Active, "q", 3))
		f.checkCounts()
	})
}

func TestObserve_SilentDeviceIsInactive(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("p")
		quiet, joining := f.enroll("quiet", p.ID), f.joined("joining", p.ID)
		joining.AppliedPolicy, joining.ReportedAt = "", time.Time{}
		stuck := f.asset(f.observe(joining).AssetID)
		f.clock.Advance(time.Hour)
		lively := f.enroll("lively", p.ID)
		mark := func(limit int) int {
			n, err := f.db.MarkInactive(f.Context(), f.company.ID, f.clock.Now().Add(-time.Minute), limit)
			f.ok(err)
			return n
		}
		equal(f, "marked", words(mark(1), mark(10), mark(10)), "1 1 0")
		equal(f, "statuses", words(f.asset(quiet.ID).Status, f.asset(stuck.ID).Status, f.asset(lively.ID).Status),
			words(asset.Inactive, asset.Inactive, asset.Active))
		equal(f, "devices of the policy", f.policy(p.ID).DeviceCount, 3)

		// To be listed again is no report.
		o := f.observation("quiet")
		o.ReportedAt = f.asset(quiet.ID).SyncedAt
		f.observe(o)
		equal(f, "still", f.asset(quiet.ID).Status, asset.Inactive)
		f.observe(f.observation("quiet"))
		f.observe(f.observation("joining"))
		equal(f, "reported", words(f.asset(quiet.ID).Status, f.asset(stuck.ID).Status), words(asset.Active, asset.Synchronizing))
		f.checkCounts()
	})
}

func TestObserve_DeviceNameIsOfTheManagement(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b := f.enroll("a", ""), f.enroll("b", "")
		o := f.joined("agent", "")
		o.Management = asset.Agent
		f.observe(o)
		f.ok(f.db.MarkDeleted(f.Context(), b.ID, 1, f.clock.Now()))
		names, err := f.db.DeviceNames(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "names", names, map[string]time.Time{"a": a.Device.EnrolledAt})
	})
}

func TestObserve_UnknownCompanyFails(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d", "")
		o.CompanyID = "missing"
		_, err := f.db.Observe(f.Context(), o)
		f.code(fault.NotFound, err)
	})
}

func TestObserve_PushReachabilityIsOfOneEnrollment(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d", "")
		f.ok(f.db.SetPushReachable(f.Context(), a.ID, 2, true))
		equal(f, "of another epoch", f.asset(a.ID).Device.PushReachable, false)
		f.ok(f.db.SetPushReachable(f.Context(), a.ID, 1, true))
		equal(f, "reachable", f.asset(a.ID).Device.PushReachable, true)
		f.observe(f.joined("d", ""))
		equal(f, "after enrolling again", f.asset(a.ID).Device.PushReachable, false)
	})
}

func TestObserve_HostileTextIsStored(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d\x00\xff", "")
		hostile := "'; DROP TABLE assets; --\x00\xff\u202e\\\""
		o.SerialNumber, o.Brand, o.Model, o.StableID, o.MessageID = hostile, hostile, hostile, hostile, "m"
		o.Specifications = map[string]string{hostile: hostile}
		o.StatusReport = json.RawMessage("{\"a\":\"\xff\"}")
		id := f.observe(o).AssetID
		o = f.observation("d\x00\xff")
		equal(f, "the same device", f.observe(o).AssetID, id)
		a := f.asset(id)
		equal(f, "model", a.Specifications["model"], "'; DROP TABLE assets; --\uFFFD\uFFFD\u202e\\\"")
		equal(f, "status report", string(a.Device.StatusReport), "{\"a\":\"\uFFFD\"}")
	})
}

func TestApps_OfADevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("p")
		a := f.enroll("d", p.ID)
		check := func(want string, since time.Time) {
			f.Helper()
			i, err := f.db.InstalledApps(f.Context(), f.company.ID, a.ID)
			f.ok(err)
			got := ""
			for _, one := range i.Apps {
				got += one.Package + " " + one.Version + ";"
			}
			equal(f, "apps", got, want)
			equal(f, "since", i.Since, since)
		}
		report := func(apps []asset.App) time.Time {
			o := f.observation("d")
			o.Apps = apps
			f.observe(o)
			return f.clock.Now()
		}
		check("", time.Time{})
		first := report([]asset.App{{Package: "a", Version: "1"}, {Package: "b", Version: "1"}})
		report(nil) // says nothing of them
		report([]asset.App{{Package: "a", Version: "1"}, {Package: "b", Version: "1"}})
		check("a 1;b 1;", first)
		foreign, err := f.db.InstalledApps(f.Context(), "other", a.ID)
		f.ok(err)
		equal(f, "apps for another company", len(foreign.Apps), 0)
		second := report([]asset.App{{Package: "a", Version: "2"}})
		check("a 2;", second)
		report([]asset.App{}) // its policy no longer lets it
		check("", time.Time{})
		report([]asset.App{{Package: "a", Version: "2"}})
		o := f.joined("d", p.ID)
		o.EnrolledAt = o.ObservedAt
		f.observe(o) // again: what was said before does not hold
		check("", time.Time{})
		report([]asset.App{{Package: "a", Version: "2"}})
		gone := f.observation("d")
		gone.Gone = true
		f.observe(gone)
		check("", time.Time{})
	})
}
