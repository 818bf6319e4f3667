package database_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// sameSerial are assets with a live agent each, of one serial number.
func (f *fixture) sameSerial(n int, serial string) []asset.Asset {
	f.Helper()
	p := f.agentPolicy("Policy of " + serial)
	var all []asset.Asset
	for range n {
		d, err := f.enrollAgent(p, serial)
		f.ok(err)
		all = append(all, f.asset(d.AssetID))
	}
	return all
}

// may is a person with all that a replacement takes.
func (f *fixture) may() *access.Replacement {
	return &access.Replacement{UserID: f.person(resource.NewID(), false).ID, MayDestroy: true, Named: true}
}

// counting is how many devices count in the company's limit.
func (f *fixture) counting(limit int) int {
	f.Helper()
	left, _, _, err := f.db.DestructiveLeft(f.Context(), f.company.ID)
	f.ok(err)
	return limit - left
}

// wiped is what a wipe of an asset, as it is now, meets.
func (f *fixture) wipes(id string) fault.Code {
	f.Helper()
	_, _, err := f.db.Begin(f.Context(), f.intent(f.asset(id), command.WipeCompanyData), nil)
	return fault.CodeOf(err)
}

// One device after the other under one asset does not get around a limit.
func TestBegin_LimitsCountEnrollments(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(1, 60)
		same := f.sameSerial(3, "SN-1")
		kept := same[0].ID
		equal(f, "the first device", f.wipes(kept), "")
		equal(f, "a second command to it", f.wipes(kept), "")
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, kept, same[1].ID, nil))
		equal(f, "the second device as the same asset", f.wipes(kept), fault.RateLimited)
		equal(f, "devices that count", f.counting(1), 1)

		key, _ := f.newKey("day", access.All)
		lock := func() error {
			c := f.intent(f.asset(kept), command.Lock)
			c.DevicesPerDay, c.Actor.ID = 1, key.ID
			_, _, err := f.db.Begin(f.Context(), c, nil)
			return err
		}
		f.ok(lock())
		f.ok(lock())
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, kept, same[2].ID, nil))
		f.code(fault.RateLimited, lock())
	})
}

// A person who merges lets a device leave: that takes what a destructive command takes.
func TestMergeAssets_CountsTheDeviceThatLeaves(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(2, 60)
		same, by := f.sameSerial(5, "SN-1"), f.may()
		kept := same[0].ID
		merge := func(other int, by *access.Replacement) error {
			return f.db.MergeAssets(f.Context(), f.company.ID, kept, same[other].ID, by)
		}
		without := *by
		without.MayDestroy = false
		f.code(fault.Forbidden, merge(1, &without))
		without = *by
		without.Named = false
		f.code(fault.ConfirmationRequired, merge(1, &without))
		equal(f, "after refusals", f.counting(2), 0)
		equal(f, "a wipe", f.wipes(kept), "")
		f.ok(merge(1, by))
		equal(f, "the device counted already", f.counting(2), 1)
		f.ok(merge(2, nil))
		equal(f, "the operator's merge", f.counting(2), 1)
		f.ok(merge(3, by))
		equal(f, "another device left", f.counting(2), 2)
		before := f.asset(kept)
		f.code(fault.RateLimited, merge(4, by))
		equal(f, "after the refusal", f.asset(kept).Device.Name, before.Device.Name)
		equal(f, "the other", f.asset(same[4].ID).Status.Enrolled(), true)
		refused, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Outcome: activity.Refused},
			activity.Cursor{}, 10)
		f.ok(err)
		if len(refused) != 1 || refused[0].Action != activity.AssetMerged || refused[0].Target.ID != kept {
			f.Errorf("the entry of the refusal: %+v", refused)
		}
		f.clock.Advance(time.Hour)
		f.ok(merge(4, by))
		ended, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, AssetID: same[4].ID, Action: activity.AssetEnded},
			activity.Cursor{}, 10)
		f.ok(err)
		equal(f, "entries about the asset that is left", len(ended), 1)
	})
}

// Assets that were enrolled are merged only if they claim one serial number.
func TestMergeAssets_OneSerialNumber(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(1, 60)
		one, other, nameless := f.sameSerial(1, "SN-1")[0], f.sameSerial(1, "SN-2")[0], f.sameSerial(2, "unknown")
		imported := asset.Asset{ID: resource.NewID(), CompanyID: f.company.ID, CompanySlug: f.company.Slug, Status: asset.Pending,
			Identification: "imported", CreatedAt: f.clock.Now()}
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{imported}))
		for _, by := range []*access.Replacement{nil, f.may()} {
			f.code(fault.Refused, f.db.MergeAssets(f.Context(), f.company.ID, one.ID, other.ID, by))
			f.code(fault.Refused, f.db.MergeAssets(f.Context(), f.company.ID, nameless[0].ID, nameless[1].ID, by))
		}
		f.ok(f.db.MarkDeleted(f.Context(), one.ID, one.Device.Epoch, f.clock.Now()))
		f.code(fault.Refused, f.db.MergeAssets(f.Context(), f.company.ID, one.ID, other.ID, f.may()))
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, imported.ID, other.ID, &access.Replacement{}))
		equal(f, "no device left", f.counting(1), 0)
	})
}

// A code with which a device replaces a managed one takes the same.
func TestCreateAssetToken_CountsTheDeviceThatLeaves(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(1, 60)
		same, by := f.sameSerial(2, "SN-1"), f.may()
		make := func(a asset.Asset, by *access.Replacement) error {
			_, err := f.db.CreateAssetToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte(resource.NewID())),
				CompanyID: f.company.ID,
				AssetID:   a.ID, ExpiresAt: f.clock.Now().Add(time.Hour)}, by)
			return err
		}
		f.code(fault.Forbidden, make(same[0], &access.Replacement{UserID: by.UserID, Named: true}))
		f.code(fault.ConfirmationRequired, make(same[0], &access.Replacement{UserID: by.UserID, MayDestroy: true}))
		f.ok(make(same[0], nil))
		equal(f, "the operator's", f.counting(1), 0)
		f.ok(make(same[0], by))
		f.ok(make(same[0], by))
		equal(f, "two codes for one device", f.counting(1), 1)
		f.code(fault.RateLimited, make(same[1], by))
		f.ok(make(same[1], nil))
	})
}

// A wipe that was prepared before a merge reaches no device, and does not count.
func TestBegin_DestructiveAfterAMerge(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(2, 60)
		same := f.sameSerial(2, "SN-1")
		toKept, toOther := f.intent(same[0], command.WipeCompanyData), f.intent(same[1], command.WipeCompanyData)
		f.ok(f.db.MergeAssets(f.Context(), f.company.ID, same[0].ID, same[1].ID, f.may()))
		for _, c := range []command.Command{toKept, toOther} {
			_, begun, err := f.db.Begin(f.Context(), c, nil)
			f.code(fault.Unavailable, err)
			equal(f, "begun", begun, false)
		}
		equal(f, "devices that count", f.counting(2), 1)
	})
}
