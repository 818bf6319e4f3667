package database_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// agentPolicy makes a policy for agents.
func (f *fixture) agentPolicy(display string) policy.Policy {
	f.Helper()
	p := policy.Policy{ID: resource.NewID(), CompanyID: f.company.ID, CompanySlug: f.company.Slug, Name: display, Type: policy.Agent,
		Version: 1, Document: []byte(`{"settings":{}}`), CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
	f.ok(f.db.CreatePolicy(f.Context(), p, policy.Author{Kind: "USER", ID: "u1", Name: "Ada"}, ""))
	return p
}

// enrollAgent enrolls an agent under a policy. The agent claims the serial number.
func (f *fixture) enrollAgent(p policy.Policy, serial string) (agentdevice.Device, error) {
	f.Helper()
	return f.redeem(f.agentToken(p), serial)
}

// agentToken makes a token for an agent under a policy.
func (f *fixture) agentToken(p policy.Policy) agentdevice.Token {
	f.Helper()
	token := agentdevice.Token{Hash: sha256.Sum256([]byte(resource.NewID())), CompanyID: f.company.ID, PolicyID: p.ID,
		ExpiresAt: f.clock.Now().Add(time.Hour)}
	f.ok(f.db.CreateAgentToken(f.Context(), token))
	return token
}

// enrollInto enrolls an agent into an asset, under the asset's policy. The agent claims the serial number.
func (f *fixture) enrollInto(assetID, serial string) (agentdevice.Device, error) {
	f.Helper()
	token, err := f.db.CreateAssetToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte(resource.NewID())),
		CompanyID: f.company.ID, AssetID: assetID, ExpiresAt: f.clock.Now().Add(time.Hour)}, nil)
	f.ok(err)
	return f.redeem(token, serial)
}

func (f *fixture) redeem(token agentdevice.Token, serial string) (agentdevice.Device, error) {
	f.Helper()
	return f.redeemWithin(f.Context(), token, serial)
}

func (f *fixture) redeemWithin(ctx context.Context, token agentdevice.Token, serial string) (agentdevice.Device, error) {
	f.Helper()
	d := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager,
		Key:   protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: resource.NewID()},
		State: agentdevice.Active, EnrolledAt: f.clock.Now(), SeenAt: f.clock.Now()}
	return f.db.EnrollAgent(ctx, agentdevice.Enrollment{Hash: token.Hash, Device: d, Again: f.clock.Now()}, f.agent(serial))
}

// recorded counts the entries of the activity log with an action.
func (f *fixture) recorded(action activity.Action) int {
	f.Helper()
	entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID}, activity.Cursor{}, 100)
	f.ok(err)
	n := 0
	for _, e := range entries {
		if e.Action == action {
			n++
		}
	}
	return n
}

// A serial number joins an agent to what is not managed, and never to a live
// asset, whichever management that has.
func TestEnrollAgent_SerialIsAClaim(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.agentPolicy("Kiosk")
		phone := f.observe(f.joined("phone", ""))
		first, err := f.enrollAgent(p, "SN-phone")
		f.ok(err)
		if first.AssetID == phone.AssetID {
			f.Fatal("an agent took over a platform device's asset")
		}
		equal(f, "management of the phone", f.asset(phone.AssetID).Device.Management, asset.Platform)
		second, err := f.enrollAgent(p, "SN-phone")
		f.ok(err)
		if second.AssetID == first.AssetID {
			f.Fatal("an agent took over another agent's live asset")
		}
		same, err := f.db.SameSerial(f.Context(), f.company.ID, second.AssetID)
		f.ok(err)
		equal(f, "assets with this serial number", len(same), 2)
		ended, err := f.db.EndAgent(f.Context(), first, agentdevice.Ending{How: agentdevice.Unenrolled, At: f.clock.Now()})
		f.ok(err)
		equal(f, "ended", ended, true)
		third, err := f.enrollAgent(p, "SN-phone")
		f.ok(err)
		equal(f, "the asset that had ended", third.AssetID, first.AssetID)
		equal(f, "recorded enrollments, takeovers, ends", words(f.recorded(activity.AssetEnrolled), f.recorded(activity.AssetTakenOver),
			f.recorded(activity.AssetEnded)), "4 0 1")
		f.checkCounts()
	})
}

// A token that was made for an asset joins it, once, while no other device has.
func TestEnrollAgent_TokenForAsset(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.agentPolicy("Kiosk")
		first, err := f.enrollAgent(p, "SN-1")
		f.ok(err)
		stale, err := f.db.CreateAssetToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte("stale")), CompanyID: f.company.ID,
			AssetID: first.AssetID, ExpiresAt: f.clock.Now().Add(time.Hour)}, nil)
		f.ok(err)
		equal(f, "policy", stale.PolicyID, p.ID)
		wipe := f.begin(f.asset(first.AssetID), command.WipeCompanyData)
		f.ok(f.db.Deliver(f.Context(), agentdevice.Delivery{CommandID: wipe.ID, DeviceID: first.ID, Type: string(wipe.Type),
			Args: []byte(`{}`), Brings: agentdevice.WipePending}))
		second, err := f.enrollInto(first.AssetID, "other")
		f.ok(err)
		equal(f, "asset, epoch", words(second.AssetID, second.Epoch), words(first.AssetID, 2))
		before, err := f.db.AgentDevice(f.Context(), first.ID)
		f.ok(err)
		equal(f, "the device before", words(before.State, before.Superseded, before.Wiped, before.Open),
			words(agentdevice.Deleted, true, true, 0))
		equal(f, "its wipe", words(f.command(wipe.ID).State, f.command(wipe.ID).Outcome),
			words(command.Failed, command.ReleasedWithoutErasing))
		equal(f, "recorded", f.recorded(activity.AssetTakenOver), 1)
		f.ok(f.db.CreateAgentToken(f.Context(), stale)) // as one that was made for the enrollment before
		_, err = f.redeem(stale, "SN-1")
		f.code(fault.Refused, err)
		phone := f.observe(f.joined("phone", ""))
		_, err = f.db.CreateAssetToken(f.Context(), agentdevice.Token{CompanyID: f.company.ID, AssetID: phone.AssetID, PolicyID: p.ID}, nil)
		f.code(fault.Unsupported, err)
		_, err = f.db.CreateAssetToken(f.Context(), agentdevice.Token{CompanyID: f.newCompany("other").ID, AssetID: first.AssetID,
			PolicyID: p.ID}, nil)
		f.code(fault.NotFound, err)
	})
}

// A new token of an asset ends the one before, and neither one that is spent nor one that a confirmed request has bound.
func TestCreateAssetToken_EndsTheOneBefore(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b := f.sameSerial(1, "SN-1")[0], f.sameSerial(1, "SN-2")[0]
		token := func(text string, of asset.Asset) agentdevice.Token {
			f.Helper()
			made, err := f.db.CreateAssetToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte(text)), CompanyID: f.company.ID,
				AssetID: of.ID, ExpiresAt: f.clock.Now().Add(time.Hour)}, nil)
			f.ok(err)
			return made
		}
		shown, another := token("shown", a), token("another's", b)
		f.token("asks")
		f.is(agentdevice.ErrWaiting, f.lost("asks", "k1", "SN-1"))
		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, f.onlyRequest(), *f.may()))
		token("next", a)
		_, err := f.redeem(shown, "SN-3")
		f.code(fault.Refused, err)
		f.ok(f.lost("asks", "k1", "SN-1"))
		equal(f, "the enrollment that was confirmed", f.asset(a.ID).Device.Epoch, 2)
		token("last", a)
		f.ok(f.plain("last", "k2", "SN-3"))
		token("after", a)
		f.ok(f.plain("last", "k2", "SN-3")) // its answer was lost
		equal(f, "the last enrollment", f.asset(a.ID).Device.Epoch, 3)
		_, err = f.redeem(another, "SN-4")
		f.ok(err)
	})
}

// A former key that the asset no longer belongs to joins nothing.
func TestEnrollAgent_FormerKey(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.agentPolicy("Kiosk")
		first, err := f.enrollAgent(p, "SN-1")
		f.ok(err)
		again := func(former agentdevice.Device) (agentdevice.Device, error) {
			token := agentdevice.Token{Hash: sha256.Sum256([]byte(resource.NewID())), CompanyID: f.company.ID, PolicyID: p.ID,
				ExpiresAt: f.clock.Now().Add(time.Hour)}
			f.ok(f.db.CreateAgentToken(f.Context(), token))
			d := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager, Key: protocol.PublicKey{SPKI: resource.NewID()},
				State: agentdevice.Active}
			return f.db.EnrollAgent(f.Context(), agentdevice.Enrollment{Hash: token.Hash, Device: d, Again: f.clock.Now(),
				Former: former.ID, FormerKey: former.Key}, f.agent("SN-1"))
		}
		wrong := first
		wrong.Key.SPKI = "another"
		_, err = again(wrong)
		f.code(fault.Refused, err)
		second, err := again(first)
		f.ok(err)
		equal(f, "asset, epoch", words(second.AssetID, second.Epoch), words(first.AssetID, 2))
		_, err = again(first)
		f.code(fault.Refused, err)
		other, err := f.enrollAgent(p, "SN-2")
		f.ok(err)
		token := agentdevice.Token{Hash: sha256.Sum256([]byte(resource.NewID())), CompanyID: f.company.ID, PolicyID: p.ID,
			AssetID: other.AssetID, Epoch: 1, ExpiresAt: f.clock.Now().Add(time.Hour)}
		_, err = f.db.CreateAssetToken(f.Context(), token, nil)
		f.ok(err)
		moved := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager, Key: protocol.PublicKey{SPKI: resource.NewID()},
			State: agentdevice.Active}
		moved, err = f.db.EnrollAgent(f.Context(), agentdevice.Enrollment{Hash: token.Hash, Device: moved, Again: f.clock.Now(),
			Former: second.ID, FormerKey: second.Key}, f.agent("SN-1"))
		f.ok(err)
		equal(f, "the asset of a token that was made for one", moved.AssetID, other.AssetID)
	})
}

// The platform still lists the device that an asset had before a merge: what a comparison
// finds makes no other asset of it. A notification that it enrolled does.
func TestMergeAssets_FormerDeviceIsStillListed(t *testing.T) {
	withCompany(t, func(f *fixture) {
		phone := f.enroll("phone", "")
		agent, err := f.enrollAgent(f.agentPolicy("Kiosk"), "SN-phone")
		f.ok(err)
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, phone.ID, agent.AssetID, nil))
		equal(f, "a comparison", f.observe(f.joined("phone", "")), enrollment.Change{})
		equal(f, "management", f.asset(phone.ID).Device.Management, asset.Agent)
		enrolled := f.joined("phone", "")
		enrolled.MessageID = "m1"
		equal(f, "a notification", f.observe(enrolled).Applied, true)
		f.checkCounts()
	})
}

// A person may say that two assets are one device, also across managements.
func TestMergeAssets(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.agentPolicy("Kiosk")
		phone := f.asset(f.observe(f.joined("phone", "")).AssetID)
		lock := f.begin(phone, command.Lock)
		agent, err := f.enrollAgent(p, "SN-phone")
		f.ok(err)
		f.code(fault.Refused, f.db.MergeAssets(f.Context(), f.company.ID, phone.ID, phone.ID, nil))
		f.code(fault.NotFound, f.db.MergeAssets(f.Context(), f.newCompany("other").ID, phone.ID, agent.AssetID, nil))
		located := f.observation(agent.ID)
		located.Management, located.AppliedPolicy, located.AppliedVersion = asset.Agent, p.ID, 1
		lost := true // such a device tells where it is
		located.LostMode = &lost
		f.observe(located)
		located.Location = &asset.Location{Latitude: 28.1, Longitude: -15.4, ReportedAt: f.clock.Now()}
		f.observe(located)
		limited := all()
		limited.Policies = []string{p.ID}
		readers := []*reader{f.reader(f.db, all()), f.reader(f.db, limited)}
		before := []int{len(readers[0].rest(f)), len(readers[1].rest(f))}
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, phone.ID, agent.AssetID, nil))
		path := func(id string) string { return resource.Of(f.company.Slug, resource.Assets, id) }
		for n, r := range readers {
			events := []string{}
			for _, e := range r.rest(f)[before[n]:] {
				if e.Type != event.CommandFailed {
					events = append(events, words(e.Type, e.Data.AssetID))
				}
			}
			equal(f, "events", events, []string{words(event.DeviceUnenrolled, path(agent.AssetID)),
				words(event.DeviceLostMode, path(phone.ID)), words(event.DeviceEnrolled, path(phone.ID))})
		}
		for id, places := range map[string]int{phone.ID: 1, agent.AssetID: 0} {
			trail, err := f.db.Trail(f.Context(), f.company.ID, id, time.Time{}, 10)
			f.ok(err)
			equal(f, "places", len(trail), places)
		}
		kept := f.asset(phone.ID)
		equal(f, "kept", words(kept.Status.Enrolled(), kept.Device.Management, kept.Device.Name, kept.Device.PolicyID, kept.Device.Epoch),
			words(true, asset.Agent, agent.ID, p.ID, 2))
		left := f.asset(agent.AssetID)
		equal(f, "the other", words(left.Status, left.Specifications["serialNumber"]), words(asset.Deleted, ""))
		equal(f, "command", f.command(lock.ID).State, command.Failed)
		d, err := f.db.AgentDevice(f.Context(), agent.ID)
		f.ok(err)
		equal(f, "the agent", words(d.AssetID, d.Epoch, d.State, d.PolicyID), words(phone.ID, 2, agentdevice.Active, p.ID))
		same, err := f.db.SameSerial(f.Context(), f.company.ID, phone.ID)
		f.ok(err)
		equal(f, "assets with this serial number", len(same), 0)
		equal(f, "a report of the former device", f.observe(f.observation("phone")).Applied, false)
		report := f.observation(agent.ID)
		report.Management, report.AppliedPolicy, report.AppliedVersion = asset.Agent, p.ID, 1
		equal(f, "a report of the agent", f.observe(report).AssetID, phone.ID)
		f.code(fault.Refused, f.db.MergeAssets(f.Context(), f.company.ID, phone.ID, agent.AssetID, nil))
		equal(f, "recorded", f.recorded(activity.AssetMerged), 1)
		f.checkCounts()
	})
}

// What is no pair of two assets of one device is not merged, and what a person called the asset stays.
func TestMergeAssets_Refuses(t *testing.T) {
	withCompany(t, func(f *fixture) {
		kept := f.enroll("phone", "")
		agent, err := f.enrollAgent(f.agentPolicy("Kiosk"), "SN-phone")
		f.ok(err)
		stranger := *f
		stranger.company = f.newCompany("other")
		theirs := stranger.enroll("theirs", "")
		gone := f.enroll("gone", "")
		f.ok(f.db.MarkDeleted(f.Context(), gone.ID, gone.Device.Epoch, f.clock.Now()))
		other := f.enroll("another", "")
		merges := func(keptID, otherID string) error {
			return f.db.MergeAssets(f.Context(), f.company.ID, keptID, otherID, nil)
		}
		f.code(fault.NotFound, merges(kept.ID, theirs.ID))
		f.code(fault.NotFound, merges(theirs.ID, agent.AssetID))
		for otherID, why := range map[string]string{kept.ID: "with itself", gone.ID: "has no device",
			other.ID: "different serial numbers"} {
			err := merges(kept.ID, otherID)
			if f.code(fault.Refused, err); !strings.Contains(fault.From(err).Detail, why) {
				f.Errorf("%s: %v", why, err)
			}
		}
		wipe := f.begin(f.asset(agent.AssetID), command.WipeCompanyData)
		f.code(fault.Refused, merges(kept.ID, agent.AssetID))
		_, _, err = f.db.Advance(f.Context(), wipe.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Failed})
		f.ok(err)
		name := "Phone of the porter"
		_, err = f.db.EditAsset(f.Context(), f.company.ID, kept.ID, asset.Edit{Identification: &name})
		f.ok(err)
		f.ok(merges(kept.ID, agent.AssetID))
		equal(f, "name", f.asset(kept.ID).Identification, name)
	})
}

// What was made for the device that an asset had, a token or a request, enrolls none as the asset that a merge has emptied.
func TestMergeAssets_EndsTokensAndRequests(t *testing.T) {
	withCompany(t, func(f *fixture) {
		same := f.sameSerial(2, "SN-1")
		kept, other := same[0], same[1]
		token := agentdevice.Token{Hash: sha256.Sum256([]byte("again")), CompanyID: f.company.ID, AssetID: other.ID,
			ExpiresAt: f.clock.Now().Add(time.Hour)}
		_, err := f.db.CreateAssetToken(f.Context(), token, f.may())
		f.ok(err)
		f.token("t1")
		lost := f.lost("t1", "k1", "SN-1")
		if lost == nil {
			f.Fatal("no request waits")
		}
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, kept.ID, other.ID, nil))
		_, err = f.redeem(token, "SN-1")
		f.code(fault.Refused, err)
		for _, a := range same {
			all, err := f.db.EnrollmentRequests(f.Context(), f.company.ID, a.ID)
			f.ok(err)
			for _, r := range all {
				f.code(fault.Refused, f.db.ConfirmRequest(f.Context(), f.company.ID, r.ID, *f.may()))
			}
		}
		equal(f, "the other", f.asset(other.ID).Status, asset.Deleted)
	})
}

// An archived asset that was never enrolled is merged like another, and is in the inventory then. One that was enrolled with
// another serial number is not.
func TestMergeAssets_Archived(t *testing.T) {
	withCompany(t, func(f *fixture) {
		done, err := f.db.Import(f.Context(), f.company.ID, []asset.Line{{Number: 1, Identification: "Tablet 7"}}, asset.ImportOptions{})
		f.ok(err)
		equal(f, "made", done.Made, 1)
		found, _, err := f.db.Assets(f.Context(), asset.Query{Filter: asset.Filter{CompanyID: f.company.ID},
			Page: operation.PageRequest{Size: 5}})
		f.ok(err)
		ended := f.enroll("ended", "")
		gone := f.observation("ended")
		gone.Gone = true
		f.observe(gone)
		agent, err := f.enrollAgent(f.agentPolicy("Kiosk"), "SN-9")
		f.ok(err)
		f.ok(f.db.ArchiveAssets(f.Context(), f.company.ID, []string{found[0].ID, ended.ID}, true))
		f.code(fault.Refused, f.db.MergeAssets(f.Context(), f.company.ID, ended.ID, agent.AssetID, nil))
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, found[0].ID, agent.AssetID, nil))
		kept := f.asset(found[0].ID)
		equal(f, "kept", words(kept.Archived, kept.Status.Enrolled(), kept.Device.Name), words(false, true, agent.ID))
		f.checkCounts()
	})
}
