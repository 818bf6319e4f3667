package database

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
)

const providerColumns = `i.company_id, i.name, i.issuer, i.client_id, i.client_secret, i.enabled, i.creates_users, i.role, i.updated_at, i.saved_by, i.saved_rights`

func providerFields(p *account.IdentityProvider) []any {
	return []any{&p.CompanyID, &p.Name, &p.Issuer, &p.ClientID, asBase64{&p.Secret}, &p.Enabled, &p.CreatesUsers, &p.Role, at(&p.UpdatedAt),
		&p.SavedBy, &p.SavedRights}
}

// Provider implements account.ProviderStore.
func (db *DB) Provider(ctx context.Context, companyID string) (account.IdentityProvider, error) {
	return findProvider(ctx, db.read(), `i.company_id = ?`, companyID)
}

// ProviderByDomain implements account.ProviderStore.
func (db *DB) ProviderByDomain(ctx context.Context, domain string) (account.IdentityProvider, error) {
	return findProvider(ctx, db.read(), `i.company_id = (SELECT d.company_id FROM identity_domains d WHERE d.domain = ?) AND i.enabled`,
		domain)
}

// HasProviders implements account.ProviderStore.
func (db *DB) HasProviders(ctx context.Context) (bool, error) {
	return holds(ctx, db.read(), `SELECT company_id FROM identity_providers WHERE enabled LIMIT 1`)
}

func findProvider(ctx context.Context, c conn, where string, arg any) (account.IdentityProvider, error) {
	p, err := find(ctx, c, "identity provider", into(providerFields),
		`SELECT `+providerColumns+` FROM identity_providers i WHERE `+where, arg)
	if err != nil {
		return p, err
	}
	p.Domains, err = list(ctx, c, scanValue[string], `SELECT d.domain FROM identity_domains d WHERE d.company_id = ? ORDER BY d.domain`,
		p.CompanyID)
	return p, err
}

// anyProvider returns a company's provider; zero: there is none.
func anyProvider(ctx context.Context, c conn, companyID string) (account.IdentityProvider, error) {
	return orNone(findProvider(ctx, c, `i.company_id = ?`, companyID))
}

// SaveProvider implements account.ProviderStore.
func (db *DB) SaveProvider(ctx context.Context, p account.IdentityProvider,
	check func(now account.IdentityProvider, users []account.User) error) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		users, err := lockUsers(ctx, t, p.CompanyID)
		if err != nil {
			return err
		}
		before, err := anyProvider(ctx, t, p.CompanyID)
		if err != nil {
			return err
		}
		if err := check(before, users); err != nil {
			return err
		}
		if err := db.claimDomains(ctx, t, p.CompanyID, p.Domains); err != nil {
			return err
		}
		t.do(ctx,
			`INSERT INTO identity_providers (company_id, name, issuer, client_id, client_secret, enabled, creates_users, role, updated_at, saved_by, saved_rights)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (company_id) DO UPDATE SET name = excluded.name, issuer = excluded.issuer,
				client_id = excluded.client_id, client_secret = excluded.client_secret, enabled = excluded.enabled,
				creates_users = excluded.creates_users, role = excluded.role, updated_at = excluded.updated_at,
				saved_by = excluded.saved_by, saved_rights = excluded.saved_rights`,
			p.CompanyID, p.Name, p.Issuer, p.ClientID, base64.StdEncoding.EncodeToString(p.Secret), p.Enabled, p.CreatesUsers,
			string(p.Role), millis(db.now()), p.SavedBy, int64(p.SavedRights))
		t.do(ctx, `DELETE FROM identity_domains WHERE company_id = ?`, p.CompanyID)
		for _, domain := range p.Domains {
			t.do(ctx, `INSERT INTO identity_domains (domain, company_id) VALUES (?, ?)`, domain, p.CompanyID)
		}
		return db.recordProvider(ctx, t, before, p)
	})
	return taken(err, "one of the domains signs in with another company")
}

// lockUsers locks a company and all of its users. They are read again once no other can be
// created: who signs in for the first time waits.
func lockUsers(ctx context.Context, t *tx, companyID string) ([]account.User, error) {
	t.check(holdCompany(ctx, t, companyID))
	listed(ctx, t, scanValue[string], `SELECT u.id FROM users u WHERE u.company_id = ? ORDER BY u.id`+t.hold(), companyID)
	listed(ctx, t, scanValue[string], `SELECT id FROM companies WHERE id = ?`+t.lock(), companyID)
	return list(ctx, t, into(userFields), `SELECT `+userColumns+` FROM users u WHERE u.company_id = ? ORDER BY u.id`+t.hold(), companyID)
}

func (db *DB) recordProvider(ctx context.Context, t *tx, before, after account.IdentityProvider) error {
	changes := activity.Differences(
		activity.Change{Field: "issuer", Before: before.Issuer, After: after.Issuer},
		activity.Change{Field: "clientId", Before: before.ClientID, After: after.ClientID},
		activity.Change{Field: "domains", Before: strings.Join(before.Domains, " "), After: strings.Join(after.Domains, " ")},
		activity.Change{Field: "enabled", Before: access.OnOff(before.Enabled), After: access.OnOff(after.Enabled)},
		activity.Change{Field: "createsUsers", Before: access.OnOff(before.CreatesUsers), After: access.OnOff(after.CreatesUsers)},
		activity.Change{Field: "role", Before: string(before.Role), After: string(after.Role)},
	)
	if string(before.Secret) != string(after.Secret) {
		changes = append(changes, activity.Change{Field: "clientSecret", After: "changed"})
	}
	c, err := findCompany(ctx, t, `c.id = ?`, after.CompanyID)
	if err != nil || len(changes) == 0 {
		return err
	}
	return db.recordOf(ctx, t, c, activity.SignInSetUp, changes...)
}

// IdentityUser implements account.ProviderStore.
func (db *DB) IdentityUser(ctx context.Context, companyID, issuer, subject string) (string, error) {
	return find(ctx, db.read(), "identity", scanValue[string],
		`SELECT user_id FROM identities WHERE company_id = ? AND issuer = ? AND subject = ?`, companyID, issuer, subject)
}

// LinkIdentity implements account.ProviderStore.
func (db *DB) LinkIdentity(ctx context.Context, l account.IdentityLink, made *account.User, check account.LinkCheck) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if made != nil {
			if err := db.createUser(ctx, t, *made); err != nil {
				return err
			}
		}
		return db.linkIdentity(ctx, t, l, check)
	})
}

// LinkInvited implements account.ProviderStore.
func (db *DB) LinkInvited(ctx context.Context, token access.SecretHash, l account.IdentityLink, by account.Inviter,
	check account.LinkCheck) (account.User, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (account.User, error) {
		accepted, err := db.takeInvitation(ctx, t, token, by)
		if err == nil && accepted.ID != l.UserID {
			err = fault.New(fault.NotFound, "the invitation is over")
		}
		if err != nil {
			return accepted, err
		}
		return accepted, db.linkIdentity(ctx, t, l, check, activity.Change{Field: "byInvitationOf", After: by.Name})
	})
}

// linkIdentity locks the user, which keeps the provider from being saved, has the link
// checked, and saves it.
func (db *DB) linkIdentity(ctx context.Context, t *tx, l account.IdentityLink, check account.LinkCheck, more ...activity.Change) error {
	u, err := findUser(ctx, t, `u.id = ? AND u.company_id = ?`+t.lock(), l.UserID, l.CompanyID)
	if err != nil {
		return err
	}
	p, err := findProvider(ctx, t, `i.company_id = ?`, l.CompanyID)
	if err != nil {
		return err
	}
	if err := check(p, u); err != nil {
		return err
	}
	if err := refuseStopped(ctx, t, l.CompanyID, "company sign-in takes no new person"); err != nil {
		return err
	}
	// An address that the provider gave to another person opens no account without a proof.
	other := t.holds(ctx, `SELECT i.subject FROM identities i WHERE i.user_id = ? AND i.company_id = ? AND i.issuer = ?
		AND i.subject <> ? AND NOT EXISTS (SELECT 1 FROM passkeys k WHERE k.user_id = ?) LIMIT 1`,
		l.UserID, l.CompanyID, l.Issuer, l.Subject, l.UserID)
	if other && u.PasswordHash == "" {
		return fault.New(fault.Refused, "your address belongs to another account at %s: ask an administrator", p.Name)
	}
	owner := valueIn[string](ctx, t, `INSERT INTO identities (company_id, issuer, subject, user_id, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (company_id, issuer, subject) DO UPDATE SET subject = excluded.subject RETURNING user_id`,
		l.CompanyID, l.Issuer, l.Subject, l.UserID, millis(db.now()))
	if owner != l.UserID {
		return fault.New(fault.Refused, "%s knows you as another user already", p.Name)
	}
	return db.recordPerson(ctx, t, l.UserID, activity.IdentityLinked, activity.OK,
		append([]activity.Change{{Field: "issuer", After: l.Issuer}, {Field: "subject", After: l.Subject}}, more...)...)
}
