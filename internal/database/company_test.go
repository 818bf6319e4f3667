package database_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
)

func TestCompany_FoundBySlugIDAndEnterprise(t *testing.T) {
	withCompany(t, func(f *fixture) {
		other := f.newCompany("zebra")
		for what, find := range map[string]func() (company.Company, error){
			"id":         func() (company.Company, error) { return f.db.CompanyByID(f.Context(), f.company.ID) },
			"slug":       func() (company.Company, error) { return f.db.CompanyBySlug(f.Context(), f.company.Slug) },
			"enterprise": func() (company.Company, error) { return f.db.CompanyByEnterprise(f.Context(), f.company.Enterprise) },
		} {
			c, err := find()
			f.ok(err)
			equal(f, "by "+what, c, f.company)
		}
		all, err := f.db.Companies(f.Context())
		f.ok(err)
		equal(f, "all", all, []company.Company{f.company, other})
	})
}

func TestCompany_NotFound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		unbound := f.newCompany("unbound")
		_, err := f.db.UpdateCompany(f.Context(), unbound.ID, func(c *company.Company) error { c.Enterprise = ""; return nil })
		f.ok(err)
		_, err = f.db.CompanyByID(f.Context(), "missing")
		f.code(fault.NotFound, err)
		_, err = f.db.CompanyBySlug(f.Context(), "")
		f.code(fault.NotFound, err)
		_, err = f.db.CompanyByEnterprise(f.Context(), "")
		f.code(fault.NotFound, err)
		_, err = f.db.UpdateCompany(f.Context(), "missing", func(*company.Company) error { return nil })
		f.code(fault.NotFound, err)
	})
}

func TestCompany_SlugAndEnterpriseAreUnique(t *testing.T) {
	withCompany(t, func(f *fixture) {
		same := f.company
		same.ID, same.Enterprise = "same", ""
		f.code(fault.Refused, f.db.CreateCompany(f.Context(), same))
		other := f.newCompany("other")
		_, err := f.db.UpdateCompany(f.Context(), other.ID, func(c *company.Company) error {
			c.Enterprise = f.company.Enterprise
			return nil
		})
		f.code(fault.Refused, err)
	})
}

func TestUpdateCompany_IsAtomic(t *testing.T) {
	withCompany(t, func(f *fixture) {
		const times = 20
		second := f.open(f)
		var all sync.WaitGroup
		for range times {
			for _, db := range []interface {
				UpdateCompany(ctx context.Context, id string, change func(*company.Company) error) (company.Company, error)
			}{f.db, second} {
				all.Go(func() {
					_, err := db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error {
						c.InactiveAfter += time.Second
						return nil
					})
					if err != nil {
						f.Error(err)
					}
				})
			}
		}
		all.Wait()
		c, err := f.db.CompanyByID(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "inactiveAfter", c.InactiveAfter, f.company.InactiveAfter+2*times*time.Second)
	})
}

func TestUpdateCompany_ChangesAllOrNothing(t *testing.T) {
	withCompany(t, func(f *fixture) {
		want := f.company
		want.Name, want.Settings, want.InactiveAfter = "New", access.Settings{PolicyChanges: true, OAuthConnections: true,
			KeepActivity: 90 * 24 * time.Hour}, time.Hour
		want.KeepEvents = company.DefaultKeepEvents
		got, err := f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error {
			*c = want
			c.ID, c.Slug, c.CreatedAt = "x", "x", time.Time{} // these never change
			return nil
		})
		f.ok(err)
		equal(f, "updated", got, want)
		wrong := errors.New("no")
		_, err = f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error {
			c.Name = "Other"
			return wrong
		})
		if !errors.Is(err, wrong) {
			f.Fatalf("error = %v, want the change's own", err)
		}
		got, err = f.db.CompanyByID(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "stored", got, want)
	})
}
