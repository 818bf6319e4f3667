package database_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// What is read with a key is the asset of the key's company, as it is then, and is used once.
func TestAhead_AssetWithItsKey(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("p").ID)
		ours, _ := apikey.New(f.company.ID, "ours", "operator", access.All, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), ours))
		other := f.newCompany("other")
		theirs, _ := apikey.New(other.ID, "theirs", "operator", access.All, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(f.Context(), theirs))

		for _, name := range []string{a.ID, a.PathName()} {
			ctx := access.Shows(f.Context(), name)
			key, p, err := f.db.KeyByPrefix(ctx, ours.Prefix)
			f.ok(err)
			equal(f, "key and company", words(key.ID, p.CompanyID, p.CompanySlug), words(ours.ID, f.company.ID, "acme"))
			f.ok(f.db.AssignPolicy(f.Context(), a.ID, a.Device.Epoch, f.newPolicy("after "+name).ID))
			first, err := f.db.Asset(ctx, f.company.ID, a.ID)
			f.ok(err)
			again, err := f.db.Asset(ctx, f.company.ID, a.ID)
			f.ok(err)
			equal(f, "as it was with the key", first, a)
			equal(f, "as it is now", again, f.asset(a.ID))
			a = again
		}

		ctx := access.Shows(f.Context(), a.ID)
		_, p, err := f.db.KeyByPrefix(ctx, theirs.Prefix)
		f.ok(err)
		equal(f, "company", p.CompanyID, other.ID)
		if kept, ok := access.Take(ctx, func(asset.Asset) bool { return true }); ok {
			f.Fatalf("a key of another company was read with %v", kept)
		}
		_, err = f.db.Asset(ctx, other.ID, a.ID)
		f.code(fault.NotFound, err)

		ctx = access.Shows(f.Context(), a.ID)
		_, _, err = f.db.KeyByPrefix(ctx, ours.Prefix)
		f.ok(err)
		_, err = f.db.Asset(ctx, other.ID, a.ID)
		f.code(fault.NotFound, err)
	})
}

// What a call commands is the asset of its company, with its agent, whatever it spends.
func TestAhead_TargetWithTheSpending(t *testing.T) {
	withCompany(t, func(f *fixture) {
		agents := f.agents(2)
		a, another := f.asset(agents[0].AssetID), f.asset(agents[1].AssetID)
		other := f.newCompany("other")
		for _, c := range []struct {
			name, companyID, assetID string
			found                    bool
		}{
			{"ours", f.company.ID, a.ID, true},
			{"another's", other.ID, a.ID, false},
			{"of no asset", f.company.ID, "nothing", false},
		} {
			ctx := access.Commands(f.Context(), c.companyID, c.assetID)
			for n := range 3 { // the third is too many
				used, spent, _, err := f.db.Spend(ctx, "k:"+c.name, 2, time.Minute, f.clock.Now())
				f.ok(err)
				equal(f, "spent of "+c.name, words(used, spent), words(min(n+1, 2), n < 2))
			}
			agentNow, err := f.db.AgentOf(f.Context(), a.ID, a.Device.Epoch)
			f.ok(err)
			if c.found && f.name == "postgres" { // where both are read with the spending
				f.ok(f.db.AssignPolicy(f.Context(), a.ID, a.Device.Epoch, f.newPolicy("after the spending").ID))
			}
			got, err := f.db.CommandTarget(ctx, c.companyID, c.assetID)
			if !c.found {
				f.code(fault.NotFound, err)
				continue
			}
			f.ok(err)
			want := a
			device := *a.Device
			device.PolicyName, device.StatusReport, device.Location = "", nil, nil
			want.CustomData, want.Tags, want.Specifications, want.Device = nil, nil, nil, &device
			equal(f, "target, as it was with the spending", got, want)
			agent, err := f.db.AgentOf(ctx, a.ID, a.Device.Epoch)
			f.ok(err)
			equal(f, "agent, as it was with the spending", agent, agentNow)
			again, err := f.db.CommandTarget(ctx, c.companyID, c.assetID)
			f.ok(err)
			device.PolicyID = f.asset(a.ID).Device.PolicyID
			equal(f, "target, read again", again, want)
		}
		ctx := access.Commands(f.Context(), f.company.ID, a.ID)
		_, _, _, err := f.db.Spend(ctx, "k", 2, time.Minute, f.clock.Now())
		f.ok(err)
		beside, err := f.db.CommandTarget(ctx, f.company.ID, another.ID)
		f.ok(err)
		equal(f, "target that was not read with the spending", beside.ID, another.ID)
	})
}
