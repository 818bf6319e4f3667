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
			got, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, e)
			f.ok(err)
			equal(f, "kept", fmt.Sprint(f.asset(a.ID).Public().CustomData), fmt.Sprint(got.Public().CustomData))
			return f.asset(a.ID)
		}
		got := edit(asset.Edit{Tags: []string{"Shop", "shop", "Shop"},
			CustomData: map[string]*string{"user": new("Ada Lovelace"), "room": new("1")}})
		equal(f, "tags", strings.Join(got.Tags, " "), "Shop shop")
		got = edit(asset.Edit{AddTags: []string{"floor 3"}, DropTags: []string{"shop"},
			CustomData: map[string]*string{"room": nil, "gone": nil}})
		equal(f, "merged", fmt.Sprint(got.Tags, got.CustomData), "[Shop floor 3] map[user:Ada Lovelace]")
		equal(f, "by the person", f.finds(asset.Filter{Text: "lovel"}), "Phone 1 N-d1")
		equal(f, "by the tag", f.finds(asset.Filter{Tags: []string{"floor 3"}}), "Phone 1 N-d1")
		equal(f, "by the old tag", f.finds(asset.Filter{Tags: []string{"shop"}}), "")
		edit(asset.Edit{Identification: new("Reception")})
		edit(asset.Edit{Identification: new("Reception"), Tags: got.Tags})
		equal(f, "recorded", f.recorded(activity.AssetChanged), 3) // what changes nothing is not
		f.observe(f.observation("d1"))
		equal(f, "a name of a person's stays", f.asset(a.ID).Identification, "Reception")
		f.checkTerms()

		for name, e := range map[string]asset.Edit{
			"too many tags": {Tags: many(51)},
			"too much":      {CustomData: map[string]*string{"a": new(strings.Repeat("é", 8192))}},
		} {
			_, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, e)
			if fault.CodeOf(err) != fault.InvalidArguments {
				f.Errorf("%s: %v", name, err)
			}
		}
		for name, e := range map[string]asset.Edit{"another policy": {Policies: []string{other.ID}, Tags: []string{}},
			"no policy": {Policies: []string{}, Tags: []string{}}} {
			_, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, e)
			f.code(fault.NotFound, err)
			equal(f, name, len(f.asset(a.ID).Tags), 2)
		}
		foreign := f.newCompany("foreign")
		_, err := f.db.EditAsset(f.Context(), foreign.ID, a.ID, asset.Edit{Identification: new("Mine")})
		f.code(fault.NotFound, err)
	})
}

func many(n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprint("tag ", i))
	}
	return tags
}

// Changes of different members at once lose nothing, on two replicas.
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
		equal(f, "members", fmt.Sprint(len(got.Tags), len(got.CustomData)), "20 20")
		f.checkTerms()
	})
}
