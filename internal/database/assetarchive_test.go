package database_test

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

func TestArchiveAssets(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{
			{ID: "a1", CompanyID: f.company.ID, Identification: "One", Tags: []string{"x"},
				Specifications: map[string]string{"serialNumber": "S1"}},
			{ID: "a2", CompanyID: f.company.ID, Identification: "Two", Tags: []string{"x"}},
			{ID: "a3", CompanyID: f.company.ID, Identification: "Three"}}))
		live, gone := f.enroll("d1", ""), f.enroll("d2", "")
		f.ok(f.db.MarkDeleted(f.Context(), gone.ID, gone.Device.Epoch, f.clock.Now()))
		put := func(archive bool, ids ...string) error {
			return f.db.ArchiveAssets(f.Context(), f.company.ID, ids, archive)
		}

		f.code(fault.Unsupported, put(true, "a1", live.ID)) // all or none
		f.code(fault.NotFound, put(true, "a1", "nothing"))
		f.code(fault.NotFound, f.db.ArchiveAssets(f.Context(), f.newCompany("other").ID, []string{"a1"}, true))
		f.code(fault.Unsupported, put(false, "a1"))
		equal(f, "before", f.finds(asset.Filter{}), "One, Phone 1 N-d1, Phone 1 N-d2, Three, Two")
		f.ok(put(true, "a1", "a2", gone.ID, "a1"))
		f.code(fault.Unsupported, put(true, "a2"))
		f.checkCounts()
		f.checkTerms()
		for what, c := range map[string]struct {
			asset.Filter
			want string
		}{
			"the list":          {asset.Filter{}, "Phone 1 N-d1, Three"},
			"pending":           {asset.Filter{Status: asset.Pending}, "Three"},
			"deleted":           {asset.Filter{Status: asset.Deleted}, ""},
			"words":             {asset.Filter{Text: "one"}, ""},
			"a tag":             {asset.Filter{Tags: []string{"x"}}, ""},
			"archived":          {asset.Filter{Archived: true}, "One, Phone 1 N-d2, Two"},
			"archived pending":  {asset.Filter{Archived: true, Status: asset.Pending}, "One, Two"},
			"archived deleted":  {asset.Filter{Archived: true, Status: asset.Deleted}, "Phone 1 N-d2"},
			"archived words":    {asset.Filter{Archived: true, Text: "two"}, "Two"},
			"archived, a tag":   {asset.Filter{Archived: true, Tags: []string{"x"}}, "One, Two"},
			"archived and lost": {asset.Filter{Archived: true, Lost: new(false)}, ""},
			"archived, limited": {asset.Filter{Archived: true, Policies: []string{"p"}}, ""},
		} {
			for _, few := range []int{0, 10_000} {
				f.db.SetFew(few)
				equal(f, fmt.Sprint(what, few), f.finds(c.Filter), c.want)
			}
		}
		one := f.asset("a1")
		equal(f, "by id", fmt.Sprintf("%s %t", one.Status, one.Archived), "PENDING true")
		_, err := f.db.EditAsset(f.Context(), f.company.ID, "a1", asset.Edit{Tags: []string{}})
		f.code(fault.Unsupported, err)

		f.ok(put(false, "a2"))
		equal(f, "an import restores", f.imports("serialNumber\nS1\n"), "0 1 0")
		o := f.joined("d3", "")
		o.SerialNumber = gone.Specifications["serialNumber"]
		equal(f, "an enrollment restores", f.observe(o).AssetID, gone.ID)
		equal(f, "after", f.finds(asset.Filter{}), "One, Phone 1 N-d1, Phone 1 N-d2, Three, Two")
		equal(f, "nothing is archived", f.finds(asset.Filter{Archived: true}), "")
		equal(f, "recorded", fmt.Sprint(f.recorded(activity.AssetArchived), f.recorded(activity.AssetRestored)), "3 1")
		f.checkCounts()
	})
}
