package database

import (
	"cmp"
	"context"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
)

const companyColumns = `c.id, c.slug, c.created_at, ` + savedCompany

// savedCompany are the columns of a company that may change.
const savedCompany = `c.name, c.inactive_after, c.enterprise, c.upgrade_notice, c.lost_message, c.lost_phone, c.lost_organization,
	c.keep_commands, c.keep_places, c.keep_events, ` + settingsColumns

func companyFields(c *company.Company) []any {
	return append([]any{&c.ID, &c.Slug, at(&c.CreatedAt)}, savedCompanyFields(c)...)
}

func savedCompanyFields(c *company.Company) []any {
	return append([]any{&c.Name, (*duration)(&c.InactiveAfter), &c.Enterprise, &c.UpgradeNotice, &c.Lost.Message, &c.Lost.PhoneNumber,
		&c.Lost.Organization, (*duration)(&c.KeepCommands), (*duration)(&c.KeepPlaces), (*duration)(&c.KeepEvents)},
		settingsFields(&c.Settings)...)
}

// CreateCompany adds a company. It fails with fault.Refused if another company has the slug or the enterprise.
func (db *DB) CreateCompany(ctx context.Context, c company.Company) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		stored := c
		stored.Settings.KeepActivity = cmp.Or(c.Settings.KeepActivity, company.DefaultKeepActivity)
		stored.KeepCommands = cmp.Or(c.KeepCommands, company.DefaultKeepCommands)
		stored.KeepPlaces = cmp.Or(c.KeepPlaces, company.DefaultKeepPlaces)
		stored.KeepEvents = cmp.Or(c.KeepEvents, company.DefaultKeepEvents)
		t.check(t.Insert(ctx, "companies", companyColumns, companyFields(&stored)))
		t.check(db.beginChain(ctx, t, c.ID))
		return db.recordCompany(ctx, t, activity.CompanyCreated, company.Company{}, c)
	})
	return taken(err, "there is a company %s already", c.Slug)
}

// CompanyByID finds a company by its id, or fails with fault.NotFound, like the next two.
func (db *DB) CompanyByID(ctx context.Context, id string) (company.Company, error) {
	return findCompany(ctx, db.read(), `c.id = ?`, id)
}

// CompanyBySlug finds a company by its slug.
func (db *DB) CompanyBySlug(ctx context.Context, slug string) (company.Company, error) {
	return findCompany(ctx, db.read(), `c.slug = ?`, slug)
}

// CompanyByEnterprise finds the company that is connected to an enterprise of the platform.
func (db *DB) CompanyByEnterprise(ctx context.Context, enterprise string) (company.Company, error) {
	return findCompany(ctx, db.read(), `c.enterprise = ? AND c.enterprise <> ''`, enterprise)
}

func findCompany(ctx context.Context, c conn, where string, arg any) (company.Company, error) {
	return find(ctx, c, "company", into(companyFields), `SELECT `+companyColumns+` FROM companies c WHERE `+where, arg)
}

// Companies returns every company, by slug.
func (db *DB) Companies(ctx context.Context) ([]company.Company, error) {
	return listCompanies(ctx, db.read())
}

func listCompanies(ctx context.Context, c conn) ([]company.Company, error) {
	return list(ctx, c, into(companyFields), `SELECT `+companyColumns+` FROM companies c ORDER BY c.slug`)
}

// holdCompany locks a company's row until the transaction ends. Other transactions can insert rows that refer to
// it.
func holdCompany(ctx context.Context, t *tx, id string) error {
	_, err := find(ctx, t, "company", scanValue[string], `SELECT id FROM companies WHERE id = ?`+t.hold(), id)
	return err
}

// holdCompanyOf is holdCompany for the company of a table's row; without such a row it locks nothing.
func holdCompanyOf(ctx context.Context, t *tx, table, id string) {
	t.holds(ctx, `SELECT id FROM companies WHERE id = (SELECT company_id FROM `+table+` WHERE id = ?)`+t.hold(), id)
}

// UpdateCompany saves what change has changed, except the id, the slug and the time of creation, and returns the
// company. It fails with fault.Refused if another company has the enterprise. change can run more than once.
func (db *DB) UpdateCompany(ctx context.Context, id string, change func(*company.Company) error) (company.Company, error) {
	var updated company.Company
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		c, err := findCompany(ctx, t, `c.id = ?`+t.hold(), id)
		if err != nil {
			return err
		}
		next := c
		if err := change(&next); err != nil {
			return err
		}
		next.ID, next.Slug, next.CreatedAt = c.ID, c.Slug, c.CreatedAt
		updated = next
		return db.saveCompany(ctx, t, c, next)
	})
	if err = taken(err, "the enterprise %s belongs to another company", updated.Enterprise); err != nil {
		return company.Company{}, err
	}
	return updated, nil
}

// saveCompany saves next in place of c, and records the changes. It cancels what they make obsolete: waiting changes of
// the same controls, and approvals that stricter controls do not allow.
func (db *DB) saveCompany(ctx context.Context, t *tx, c, next company.Company) error {
	t.check(beingDeleted(ctx, t, c.ID))
	next.Settings.KeepActivity = cmp.Or(next.Settings.KeepActivity, c.Settings.KeepActivity)
	next.KeepCommands = cmp.Or(next.KeepCommands, c.KeepCommands)
	next.KeepPlaces = cmp.Or(next.KeepPlaces, c.KeepPlaces)
	next.KeepEvents = cmp.Or(next.KeepEvents, c.KeepEvents)
	saved := savedCompanyFields(&next)
	t.do(ctx, `UPDATE companies SET (`+strings.ReplaceAll(savedCompany, "c.", "")+`) = (`+marks(len(saved))+`) WHERE id = ?`,
		append(saved, c.ID)...)
	if next.KeepCommands != c.KeepCommands || next.KeepPlaces != c.KeepPlaces {
		t.check(retainAgain(ctx, t, c.ID))
	}
	if next.Settings != c.Settings {
		t.raises(c.ID)
	}
	db.supersede(ctx, t, c, next)
	t.check(db.recordCompany(ctx, t, activity.CompanyChanged, c, next))
	db.followApproval(ctx, t, c, next)
	return nil
}

// callersColumns are of a company what its callers are let in by.
var callersColumns = `c.slug, ` + controlVersion("c.id") + `, ` + settingsColumns //nolint:gochecknoglobals // never written to

func callersFields(p *access.Principal) []any {
	return append([]any{&p.CompanySlug, &p.Version}, settingsFields(&p.Settings)...)
}

// settingsColumns are the columns of a company's settings, in the order of
// settingsFields.
const settingsColumns = `c.device_commands, c.destructive_commands, c.policy_changes, c.provisioning, c.oauth_connections,
	c.apply_approval, c.second_person, c.approver_age, c.destructive_approval, c.limit_devices, c.limit_window, c.require_reason,
	c.stopped_at, c.stop_reason, c.stop_all, c.keep_activity`

func settingsFields(s *access.Settings) []any {
	c := &s.Controls
	return []any{&s.DeviceCommands, &s.DestructiveCommands, &s.PolicyChanges, &s.Provisioning, &s.OAuthConnections,
		&c.ApplyApproval, &c.SecondPerson, (*duration)(&c.ApproverAge), &c.DestructiveApproval,
		&c.DestructiveLimit.Devices, (*duration)(&c.DestructiveLimit.Window), &c.RequireReason,
		at(&s.Stop.At), &s.Stop.Reason, &s.Stop.All, (*duration)(&s.KeepActivity)}
}
