package database_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

func TestImport_AssetsArePending(t *testing.T) {
	withCompany(t, func(f *fixture) {
		want := asset.Asset{ID: resource.NewID(), CompanyID: f.company.ID, CompanySlug: "acme", Identification: "Till 3 ö",
			Status: asset.Pending, CreatedAt: f.clock.Now(),
			CustomData: map[string]string{"department": "Sales", "\"": "\\"}, Tags: []string{"a", "b;c"},
			Specifications: map[string]string{"serialNumber": "S1", "model": "M"}}
		bare := asset.Asset{ID: resource.NewID(), CompanyID: f.company.ID, CompanySlug: "acme", Status: asset.Pending,
			CreatedAt: f.clock.Now()}
		given := want
		given.Status, given.Device = asset.Active, &asset.Device{Name: "x"} // an import ignores both
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{given, bare}))
		equal(f, "asset", f.asset(want.ID), want)
		equal(f, "bare asset", f.asset(bare.ID), bare)
		n, err := f.db.CountAssets(f.Context(), asset.Filter{CompanyID: f.company.ID, Status: asset.Pending})
		f.ok(err)
		equal(f, "count", n, 2)
	})
}

func TestImport_IsAllOrNothing(t *testing.T) {
	withCompany(t, func(f *fixture) {
		var many []asset.Asset
		for n := range 250 {
			many = append(many, asset.Asset{ID: fmt.Sprintf("a%03d", n), CompanyID: f.company.ID, CreatedAt: f.clock.Now()})
		}
		many[249].ID = many[0].ID
		f.code(fault.Refused, f.db.ImportAssets(f.Context(), many))
		n, err := f.db.CountAssets(f.Context(), asset.Filter{CompanyID: f.company.ID})
		f.ok(err)
		equal(f, "count after the failure", n, 0)
		many[249].ID = "a249"
		f.ok(f.db.ImportAssets(f.Context(), many))
		f.checkCounts()
	})
}

func TestAsset_OfAnotherCompanyIsNotFound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, other := f.enroll("d", ""), f.newCompany("other")
		_, err := f.db.Asset(f.Context(), other.ID, a.ID)
		f.code(fault.NotFound, err)
		page, total, err := f.db.Assets(f.Context(), asset.Query{Filter: asset.Filter{CompanyID: other.ID},
			Page: operation.PageRequest{Size: 20}, Order: asset.BySyncedAt})
		f.ok(err)
		equal(f, "assets and total", words(len(page), total), "0 0")
	})
}

// inventory fills a company with size assets of every status and policy, in random order but the
// same in each run. It returns them with the ids of the three policies.
func (f *fixture) inventory(size int) (all []asset.Asset, policies []string) {
	f.Helper()
	policies = []string{f.newPolicy("p0").ID, f.newPolicy("p1").ID, f.newPolicy("p2").ID}
	random := rand.New(rand.NewPCG(1, 2))
	var pending []asset.Asset
	for n := range size {
		f.clock.Advance(time.Duration(random.IntN(2)) * time.Second) // some have the same time
		if random.IntN(6) == 0 {
			pending = append(pending, asset.Asset{ID: resource.NewID(), CompanyID: f.company.ID, CreatedAt: f.clock.Now(),
				Identification: fmt.Sprintf("%s%d", []string{"a", "B", "ö", ""}[random.IntN(4)], random.IntN(9))})
			continue
		}
		p := policies[random.IntN(3)]
		device := fmt.Sprintf("d%d", n)
		o := f.joined(device, p)
		o.Model = []string{"Pixel", "galaxy", "Ömega"}[random.IntN(3)]
		o.SerialNumber = fmt.Sprintf("%04d", random.IntN(30)) + device
		if random.IntN(4) == 0 {
			o.AppliedPolicy = ""
		}
		a := f.asset(f.observe(o).AssetID)
		if random.IntN(5) == 0 {
			f.ok(f.db.MarkDeleted(f.Context(), a.ID, a.Device.Epoch, f.clock.Now()))
		}
	}
	f.ok(f.db.ImportAssets(f.Context(), pending))
	_, err := f.db.MarkInactive(f.Context(), f.company.ID, f.clock.Now().Add(-time.Minute), size/8)
	f.ok(err)
	ids, err := f.db.Text(f.Context(), `SELECT id FROM assets WHERE company_id = ?`, f.company.ID)
	f.ok(err)
	for _, id := range ids {
		all = append(all, f.asset(id))
	}
	return all, policies
}

// expected is what the database should answer: the ids of the assets, filtered and sorted in Go.
func expected(all []asset.Asset, q asset.Query) []string {
	kept := slices.DeleteFunc(slices.Clone(all), func(a asset.Asset) bool {
		policyID := ""
		if a.Device != nil {
			policyID = a.Device.PolicyID
		}
		wrongStatus := q.Status != "" && a.Status != q.Status
		wrongPolicy := q.PolicyID != "" && policyID != q.PolicyID
		return wrongStatus || wrongPolicy || q.Policies != nil && !slices.Contains(q.Policies, policyID)
	})
	slices.SortFunc(kept, func(a, b asset.Asset) int {
		order := map[asset.Order]int{
			asset.BySyncedAt:       a.SyncedAt.Compare(b.SyncedAt),
			asset.ByCreatedAt:      a.CreatedAt.Compare(b.CreatedAt),
			asset.ByIdentification: strings.Compare(a.Identification, b.Identification),
			asset.ByStatus:         strings.Compare(string(a.Status), string(b.Status)),
		}[q.Order]
		if order = cmp.Or(order, strings.Compare(a.ID, b.ID)); q.Descending {
			return -order
		}
		return order
	})
	ids := []string{}
	for _, a := range kept {
		ids = append(ids, a.ID)
	}
	return ids
}

// queries combines filters, statuses, orders and directions. policies are three of the company.
func queries(companyID string, policies []string) (all []asset.Query) {
	filters := []asset.Filter{{}, {PolicyID: policies[0]}, {Policies: policies[:2]}, {Policies: []string{}},
		{PolicyID: policies[1], Policies: policies[:2]}, {PolicyID: policies[2], Policies: policies[:2]}}
	many := slices.Clone(policies[1:])
	for n := range 60 { // more than maxArms of assetpage.go
		many = append(many, fmt.Sprint("other", n))
	}
	filters = append(filters, asset.Filter{Policies: many})
	for _, filter := range filters {
		for _, status := range []asset.Status{"", asset.Active, asset.Inactive, asset.Synchronizing, asset.Pending, asset.Deleted} {
			for _, order := range []asset.Order{asset.BySyncedAt, asset.ByIdentification, asset.ByStatus, asset.ByCreatedAt} {
				for _, descending := range []bool{false, true} {
					filter.CompanyID, filter.Status = companyID, status
					all = append(all, asset.Query{Filter: filter, Order: order, Descending: descending})
				}
			}
		}
	}
	return all
}

func TestLists_AreTheExpectedPages(t *testing.T) {
	withCompany(t, func(f *fixture) {
		all, policies := f.inventory(150)
		f.newCompany("other")
		byID := map[string]asset.Asset{}
		for _, a := range all {
			byID[a.ID] = a
		}
		f.db.SetDeepFrom(40) // later pages are read from the nearer end, as in assetpage.go
		for n, q := range queries(f.company.ID, policies) {
			want := expected(all, q)
			count, err := f.db.CountAssets(f.Context(), q.Filter)
			f.ok(err)
			equal(f, fmt.Sprintf("count of %+v", q), count, int64(len(want)))
			q.Page.Size = 7 + n%13
			pages := []int{0, 1, len(want) / q.Page.Size, len(want)/q.Page.Size + 1}
			if len(want) > 2*q.Page.Size {
				pages = append(pages, len(want)/q.Page.Size-1, len(want)*3/4/q.Page.Size)
			}
			for _, q.Page.Page = range pages {
				page, total, err := f.db.Assets(f.Context(), q)
				f.ok(err)
				equal(f, fmt.Sprintf("total of %+v", q), total, int64(len(want)))
				from := min(q.Page.Page*q.Page.Size, len(want))
				ids := []string{}
				for _, a := range page {
					ids = append(ids, a.ID)
					equal(f, "device of the asset "+a.ID, fmt.Sprintf("%+v", a.Device), fmt.Sprintf("%+v", byID[a.ID].Device))
				}
				equal(f, fmt.Sprintf("page of %+v", q), ids, want[from:min(from+q.Page.Size, len(want))])
			}
		}
		f.checkCounts()
	})
}

// The engine reads every page from an index, which has the order: it does not sort or scan the table.
func TestLists_AreReadFromAnIndex(t *testing.T) {
	withCompany(t, func(f *fixture) {
		statements := collect(f.db)
		policies := []string{f.newPolicy("p0").ID, f.newPolicy("p1").ID, f.newPolicy("p2").ID}
		f.enroll("d0", policies[0])
		f.enroll("d1", policies[1])
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{{ID: "p", CompanyID: f.company.ID}}))
		for _, q := range queries(f.company.ID, policies) {
			q.Page.Size = 20
			_, _, err := f.db.Assets(f.Context(), q)
			f.ok(err)
		}
		plan, pages := f.planner(f, f.db, "enable_sort = off", "enable_bitmapscan = off"), 0
		for query, args := range statements.soFar() {
			if !strings.Contains(query, "AS page") {
				continue
			}
			pages++
			lines := strings.Join(plan(query, args), "\n")
			if strings.Contains(lines, "TEMP B-TREE") || strings.Contains(lines, "Sort  ") ||
				strings.Contains(lines, "Seq Scan on assets") {
				f.Errorf("%s sorts or scans:\n%s\n\n%s", f.name, query, lines)
			}
		}
		if pages < 20 {
			f.Fatalf("the test saw %d statements of pages, want at least 20", pages)
		}
	})
}
