package database_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

func TestEditAsset(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, other := f.newPolicy("Office"), f.newPolicy("Field")
		a := f.enroll("d1", p.ID)
		edit := func(e asset.Edit) asset.Asset {
			f.Helper()
			returned, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, e)
			f.ok(err)
			stored := f.asset(a.ID)
			equal(f, "returned custom data", fmt.Sprint(returned.Public().CustomData), fmt.Sprint(stored.Public().CustomData))
			return stored
		}
		got := edit(asset.Edit{Tags: []string{"Shop", "shop", "Shop"},
			CustomData: map[string]*string{"user": new("Ada Lovelace"), "room": new("1")}})
		equal(f, "tags without the repeated one", strings.Join(got.Tags, " "), "Shop shop")
		got = edit(asset.Edit{AddTags: []string{"floor 3"}, DropTags: []string{"shop"},
			CustomData: map[string]*string{"room": nil, "gone": nil}})
		equal(f, "tags and custom data after an edit", fmt.Sprint(got.Tags, got.CustomData), "[Shop floor 3] map[user:Ada Lovelace]")
		equal(f, "assets found by the user's name", f.finds(asset.Filter{Text: "lovel"}), "Phone 1 N-d1")
		equal(f, "assets found by the tag", f.finds(asset.Filter{Tags: []string{"floor 3"}}), "Phone 1 N-d1")
		equal(f, "assets found by the removed tag", f.finds(asset.Filter{Tags: []string{"shop"}}), "")
		edit(asset.Edit{Identification: new("Reception")})
		edit(asset.Edit{Identification: new("Reception"), Tags: got.Tags})
		equal(f, "recorded edits: not the last, which changed nothing", f.recorded(activity.AssetChanged), 3)
		f.observe(f.observation("d1"))
		equal(f, "name after a report of the device", f.asset(a.ID).Identification, "Reception")
		f.checkTerms()

		for name, e := range map[string]asset.Edit{
			"51 tags":               {Tags: many(51)},
			"16 KiB of custom data": {CustomData: map[string]*string{"a": new(strings.Repeat("é", 8192))}},
		} {
			_, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, e)
			if fault.CodeOf(err) != fault.InvalidArguments {
				f.Errorf("%s: got the error %v, want the code %s", name, err, fault.InvalidArguments)
			}
		}
		for _, policies := range [][]string{{other.ID}, {}} { // those of a user who may not edit this asset
			_, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, asset.Edit{Policies: policies, Tags: []string{}})
			f.code(fault.NotFound, err)
			equal(f, "tags after a refused edit", len(f.asset(a.ID).Tags), 2)
		}
		foreign := f.newCompany("foreign")
		_, err := f.db.EditAsset(f.Context(), foreign.ID, a.ID, asset.Edit{Identification: new("Mine")})
		f.code(fault.NotFound, err)
	})
}

// many returns n different tags.
func many(n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprint("tag ", i))
	}
	return tags
}

// Concurrent edits on two replicas, each of another tag and another key of the custom data, all have their effect.
func TestEditAsset_AtOnce(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", "")
		second := f.open(f)
		var all sync.WaitGroup
		for n := range 20 {
			db := f.db
			if n%2 == 0 {
				db = second
			}
			all.Go(func() {
				_, err := db.EditAsset(f.Context(), f.company.ID, a.ID,
					asset.Edit{AddTags: []string{fmt.Sprint("t", n)}, CustomData: map[string]*string{fmt.Sprint("k", n): new("v")}})
				f.ok(err)
			})
		}
		all.Wait()
		got := f.asset(a.ID)
		equal(f, "tags and keys", fmt.Sprint(len(got.Tags), len(got.CustomData)), "20 20")
		f.checkTerms()
	})
}
