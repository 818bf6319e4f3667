package database

import (
	"context"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/slice"
)

// named is a policy's name as it is kept.
type named struct{ company, id, name string }

func namedFields(n *named) []any { return []any{&n.company, &n.id, &n.name} }

// PolicyNamed returns the id of another policy of the company whose name people
// would take for this one.
func (db *DB) PolicyNamed(ctx context.Context, companyID, name, except string) (string, error) {
	return policyNamed(ctx, db.read(), companyID, name, except)
}

// policyNamed compares all names of the company: names change rarely, and what
// looks alike changes with Unicode, so it is not kept with the policies.
func policyNamed(ctx context.Context, c conn, companyID, name, except string) (string, error) {
	id, err := alike(ctx, c, name, except, `SELECT p.company_id, p.id, p.name FROM policies p WHERE p.company_id = ? AND NOT p.deleted`,
		companyID)
	if err == nil && id == "" {
		err = fault.New(fault.NotFound, "no such policy")
	}
	return id, err
}

// alike returns the id of the first row of a query whose name looks like name,
// other than except; empty: none does.
func alike(ctx context.Context, c conn, name, except, query, companyID string) (string, error) {
	all, err := list(ctx, c, into(namedFields), query, companyID)
	look := policy.LookOf(name)
	for _, other := range all {
		if other.id != except && look.Like(policy.LookOf(other.name)) {
			return other.id, err
		}
	}
	return "", err
}

// nameFree is fault.Refused if another policy of the company has a name that
// people would take for this one, or is about to get it by a proposal that is being applied. The company is locked.
func nameFree(ctx context.Context, t *tx, companyID, name, own string) error {
	switch _, err := policyNamed(ctx, t, companyID, name, own); {
	case err == nil:
		return fault.New(fault.Refused, "there is a policy named %q already, or one that looks the same: choose another name", name)
	case fault.CodeOf(err) != fault.NotFound:
		return err
	}
	id, err := alike(ctx, t, name, own, `SELECT v.company_id, v.next_policy_id, v.next_name FROM proposals v
		WHERE v.company_id = ? AND v.next_name_key <> '' AND v.status = 'EXECUTING'`, companyID)
	if err == nil && id != "" {
		return fault.New(fault.Refused, "another policy is about to be named %q: choose another name", name)
	}
	return err
}

// OddNames returns the policies, over all companies, whose names would be
// refused now, because of their characters or because they look like another's.
func (db *DB) OddNames(ctx context.Context) ([]policy.OddName, error) {
	all, err := list(ctx, db.read(), into(namedFields), `SELECT c.slug, p.id, p.name FROM companies c
		JOIN policies p ON p.company_id = c.id WHERE NOT p.deleted ORDER BY c.slug, p.created_at, p.id`)
	if err != nil {
		return nil, err
	}
	return policy.OddNames(slice.Map(all, func(n named) policy.OddName {
		return policy.OddName{Company: n.company, PolicyID: n.id, Name: n.name}
	})), nil
}
