package database

import (
	"context"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
)

// AddDomain implements account.DomainStore.
func (db *DB) AddDomain(ctx context.Context, d account.Domain) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		added := t.count(ctx,
			`INSERT INTO company_domains (domain, company_id, added_at) VALUES (?, ?, ?) ON CONFLICT (domain) DO NOTHING`,
			d.Name, d.CompanyID, millis(d.AddedAt))
		if added > 0 {
			return db.recordDomain(ctx, t, d.CompanyID, activity.Change{Field: "domain", After: d.Name})
		}
		owner := valueIn[string](ctx, t, `SELECT company_id FROM company_domains WHERE domain = ?`, d.Name)
		if owner == d.CompanyID {
			return nil
		}
		other, err := findCompany(ctx, t, `c.id = ?`, owner)
		t.check(err)
		return fault.New(fault.Refused, "cannot add %s: it belongs to company %s; remove it there first (`muster company domain remove "+
			"--company %s %s`)", d.Name, other.Slug, other.Slug, d.Name)
	})
}

// RemoveDomain implements account.DomainStore.
func (db *DB) RemoveDomain(ctx context.Context, companyID, domain string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if t.count(ctx, `DELETE FROM company_domains WHERE domain = ? AND company_id = ?`, domain, companyID) == 0 {
			return fault.New(fault.NotFound, "the company has no domain %s", domain)
		}
		t.do(ctx, `DELETE FROM identity_domains WHERE domain = ? AND company_id = ?`, domain, companyID)
		return db.recordDomain(ctx, t, companyID, activity.Change{Field: "domain", Before: domain})
	})
}

// Domains implements account.DomainStore.
func (db *DB) Domains(ctx context.Context, companyID string) ([]account.Domain, error) {
	return list(ctx, db.read(), into(func(d *account.Domain) []any { return []any{&d.Name, &d.CompanyID, at(&d.AddedAt)} }),
		`SELECT d.domain, d.company_id, d.added_at FROM company_domains d WHERE d.company_id = ? ORDER BY d.domain`, companyID)
}

func (db *DB) recordDomain(ctx context.Context, t *tx, companyID string, change activity.Change) error {
	c, err := findCompany(ctx, t, `c.id = ?`, companyID)
	t.check(err)
	return db.recordOf(ctx, t, c, activity.CompanyDomains, change)
}

// claimDomains returns fault.Refused if a domain does not belong to the company.
// The only company of an installation is given what it names.
func (db *DB) claimDomains(ctx context.Context, t *tx, companyID string, domains []string) error {
	companies := valueIn[int64](ctx, t, `SELECT COUNT(*) FROM (SELECT 1 FROM companies WHERE slug > '' LIMIT 2) AS few`)
	for _, domain := range domains {
		if companies == 1 {
			t.do(ctx,
				`INSERT INTO company_domains (domain, company_id, added_at) VALUES (?, ?, ?) ON CONFLICT (domain) DO NOTHING`,
				domain, companyID, millis(db.now()))
		}
		if valueIn[int64](ctx, t, `SELECT COUNT(*) FROM company_domains WHERE domain = ? AND company_id = ?`, domain, companyID) == 0 {
			c, err := findCompany(ctx, t, `c.id = ?`, companyID)
			t.check(err)
			return &fault.Error{Code: fault.Refused,
				Detail: "cannot use the domain " + domain + ": it is not assigned to " + c.Name + "; ask the operator to run `muster " +
					"company domain add --company " + c.Slug + " " + domain + "`",
				Fields: []fault.Field{{Field: "domains", Message: domain + " is not assigned to this company"}}}
		}
	}
	return nil
}

// ForeignDomain implements account.DomainOwners.
func (db *DB) ForeignDomain(ctx context.Context, companyID, domain string) (bool, error) {
	return holds(ctx, db.read(), `SELECT domain FROM company_domains WHERE domain = ? AND company_id <> ?`, domain, companyID)
}
