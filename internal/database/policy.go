package database

import (
	"cmp"
	"context"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// policyColumns are a policy's, with its company's slug and, from the kept
// counts, the devices enrolled under it. Only enrolled assets have a policy.
// policyListed are those of a list, without the document, which may have 1 MiB.
const (
	policyColumns = policyNames + `p.document` + policyFigures
	policyListed  = policyNames + `''` + policyFigures

	policyNames   = `p.id, p.company_id, c.slug, p.name, p.type, p.vr_only, p.version, `
	policyFigures = `, p.description, p.labels, p.group_name, p.created_at, p.updated_at, p.deleted,
	p.push_version, p.push_error, p.pushed_at, p.push_tried_at, ` + policyDevices
	policyDevices = `(SELECT COALESCE(CAST(SUM(n.count) AS BIGINT), 0) FROM asset_counts n
	WHERE n.company_id = p.company_id AND n.policy_id = p.id)`
)

const policyTables = ` FROM policies p JOIN companies c ON c.id = p.company_id`

func policyFields(p *policy.Policy) []any {
	return []any{&p.ID, &p.CompanyID, &p.CompanySlug, (*shownName)(&p.Name), &p.Type, &p.VROnly, &p.Version, asText(&p.Document),
		&p.Description, encoded{&p.Labels}, &p.Group, at(&p.CreatedAt), at(&p.UpdatedAt), &p.Deleted,
		&p.Push.Version, &p.Push.Error, at(&p.Push.PushedAt), at(&p.Push.TriedAt), &p.DeviceCount}
}

// shownName is a policy's name as it is shown.
type shownName string

func (n *shownName) Scan(column any) error {
	name, err := kept[string](column)
	*n = shownName(policy.ShownName(name))
	return err
}

// Policy returns a policy of the company, a tombstone too.
func (db *DB) Policy(ctx context.Context, companyID, id string) (policy.Policy, error) {
	return findPolicy(ctx, db.read(), companyID, id)
}

func findPolicy(ctx context.Context, c conn, companyID, id string) (policy.Policy, error) {
	return find(ctx, c, "policy", into(policyFields), `SELECT `+policyColumns+policyTables+` WHERE p.id = ? AND p.company_id = ?`,
		id, companyID)
}

// policyOrder returns the column of an order of the list.
func policyOrder(o policy.Order) string {
	return cmp.Or(map[policy.Order]string{policy.ByUpdatedAt: "p.updated_at", policy.ByVersion: "p.version",
		policy.ByDevices: policyDevices}[o], "p.name")
}

// Policies returns one page of the company's policies that are not deleted, without
// their documents, and how many there are.
func (db *DB) Policies(ctx context.Context, q policy.Query) ([]policy.Policy, int64, error) {
	only, ids := ofPolicies(`p.id`, q.IDs)
	where, args := ` WHERE p.company_id = ? AND NOT p.deleted`+only, append([]any{q.CompanyID}, ids...)
	if q.Type != "" {
		where, args = where+` AND p.type = ?`, append(args, string(q.Type))
	}
	total, err := value[int64](ctx, db.read(), `SELECT COUNT(*) FROM policies p`+where, args...)
	if err != nil || int64(q.Offset) >= total {
		return nil, total, err
	}
	direction := ""
	if q.Descending {
		direction = " DESC"
	}
	page, err := list(ctx, db.read(), into(policyFields), `SELECT `+policyListed+policyTables+where+
		` ORDER BY `+policyOrder(q.Order)+direction+`, p.id`+direction+` LIMIT ? OFFSET ?`,
		append(args, q.Limit, q.Offset)...)
	return page, total, err
}

// CreatePolicy saves a policy at version 1 with its first revision.
func (db *DB) CreatePolicy(ctx context.Context, p policy.Policy, by policy.Author, proposalID string) error {
	p.Version = 1
	r := policy.Revision{SavedAt: p.CreatedAt, SavedBy: by, Origin: policy.FromCreate, ProposalID: proposalID}
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		t.check(holdCompany(ctx, t, p.CompanyID))
		t.check(nameFree(ctx, t, p.CompanyID, p.Name, p.ID))
		t.changed(p.CompanyID, "policy", p.ID)
		return createPolicy(ctx, t, p, r)
	})
}

func createPolicy(ctx context.Context, t *tx, p policy.Policy, r policy.Revision) error {
	t.do(ctx, `INSERT INTO policies (id, company_id, name, name_key, type, vr_only, version,
			document, description, labels, group_name, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.ID, p.CompanyID, p.Name, policy.NameKey(p.Name), p.Type, p.VROnly, p.Version,
		string(p.Document), p.Description, encode(p.Labels), p.Group, millis(p.CreatedAt), millis(p.UpdatedAt))
	return addRevision(ctx, t, p, r)
}

// SavePolicy saves next, all but type, VR and creation, as the version after
// expected, and the revision with next's content. While a proposal about the
// policy is being applied it is fault.Unavailable.
func (db *DB) SavePolicy(ctx context.Context, next policy.Policy, expected int, r policy.Revision) (policy.Policy, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (policy.Policy, error) {
		t.changed(next.CompanyID, "policy", next.ID)
		return savePolicy(ctx, t, next, expected, r)
	})
}

func savePolicy(ctx context.Context, t *tx, next policy.Policy, expected int, r policy.Revision) (policy.Policy, error) {
	t.check(holdCompany(ctx, t, next.CompanyID))
	current, err := lockPolicy(ctx, t, next.CompanyID, next.ID)
	t.check(err)
	if changing(ctx, t, next.ID) {
		return policy.Policy{}, busy()
	}
	if next.Name != current.Name && current.Version == expected {
		t.check(nameFree(ctx, t, next.CompanyID, next.Name, next.ID))
	}
	return writePolicy(ctx, t, next, current.Name, expected, r)
}

// busy is the fault of a policy that a proposal is changing.
func busy() error {
	return &fault.Error{Code: fault.Unavailable, Retryable: true,
		Detail: "a change of the policy is being sent to the platform: try again in a moment"}
}

// writePolicy saves a policy whose name was was. A name that stays is left as it
// is kept: it may be one that is shown escaped.
func writePolicy(ctx context.Context, t *tx, next policy.Policy, was string, expected int, r policy.Revision) (policy.Policy, error) {
	names, args := "", []any{}
	if next.Name != was {
		names, args = `name = ?, name_key = ?, `, append(args, next.Name, policy.NameKey(next.Name))
	}
	n := t.count(ctx, `UPDATE policies SET `+names+`version = version + 1, document = ?,
			description = ?, labels = ?, group_name = ?, updated_at = ?
		WHERE id = ? AND company_id = ? AND version = ? AND NOT deleted`,
		append(args, string(next.Document), next.Description, encode(next.Labels), next.Group,
			millis(r.SavedAt), next.ID, next.CompanyID, expected)...)
	saved, err := findPolicy(ctx, t, next.CompanyID, next.ID)
	switch {
	case err != nil:
		return policy.Policy{}, err
	case n == 0 && saved.Deleted:
		return policy.Policy{}, fault.New(fault.NotFound, "no such policy")
	case n == 0:
		return policy.Policy{}, fault.New(fault.StaleProposal,
			"the policy is at version %d, not %d: read it again and repeat the change", saved.Version, expected)
	}
	return saved, addRevision(ctx, t, saved, r)
}

// DeletePolicy implements policy.Store.
func (db *DB) DeletePolicy(ctx context.Context, companyID, id string, at time.Time) (codes int, err error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (int, error) {
		t.check(holdCompany(ctx, t, companyID)) // as what makes codes, and who enrolls, does
		p, err := lockPolicy(ctx, t, companyID, id)
		switch {
		case err != nil:
			return 0, err
		case p.Deleted:
			return 0, fault.New(fault.NotFound, "no such policy")
		case p.DeviceCount > 0:
			return 0, fault.New(fault.Refused, "%d devices use the policy: move them to another first", p.DeviceCount)
		}
		if changing(ctx, t, id) {
			return 0, busy()
		}
		if err = free(ctx, t, p); err == nil {
			err = unmoved(ctx, t, companyID, id)
		}
		t.check(err)
		t.do(ctx, `UPDATE policies SET deleted = TRUE, updated_at = ? WHERE id = ?`, millis(at), id)
		deleted := activity.Event{Action: activity.PolicyDeleted, Target: policyTarget(p.ID, p.Name)}
		t.check(db.record(ctx, t, companyID, deleted))
		return endCodesOf(ctx, t, p)
	})
}

// free is fault.Refused while a device of the platform may get the policy by a move whose end
// is not known. An agent gets no policy that was deleted: see mayMove.
func free(ctx context.Context, t *tx, p policy.Policy) error {
	if p.Type != policy.Platform {
		return nil
	}
	moves, err := movesTo(ctx, t, p.ID)
	if err == nil && moves > 0 {
		err = fault.New(fault.Refused, "%d devices are being moved to the policy, or may have been: move them to another first", moves)
	}
	return err
}

// NotePushAsked implements platform.Policies.
func (db *DB) NotePushAsked(ctx context.Context, p policy.Policy) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		return db.record(ctx, t, p.CompanyID, activity.Event{Action: activity.PolicyPushAsked, Target: policyTarget(p.ID, p.Name)})
	})
}

// SetPushed notes that the platform holds our version of a policy, and calls it
// vendorVersion. A version older than the one noted already changes nothing but
// the translation of its number. Devices that reported vendorVersion before have applied version; also those
// for which it was an earlier version of ours, as after a save that means the same to the platform.
func (db *DB) SetPushed(ctx context.Context, policyID string, version int, vendorVersion int64, at time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error { return setPushed(ctx, t, policyID, version, vendorVersion, at) })
}

func setPushed(ctx context.Context, t *tx, policyID string, version int, vendorVersion int64, at time.Time) error {
	t.holds(ctx, `SELECT id FROM policies WHERE id = ?`+t.lock(), policyID) // see translate
	t.do(ctx, `UPDATE policies SET push_version = ?, push_error = '', pushed_at = ?, push_tried_at = ?
		WHERE id = ? AND push_version <= ?`, version, millis(at), millis(at), policyID, version)
	t.do(ctx, `UPDATE assets SET applied_version = ? WHERE company_id = (SELECT company_id FROM policies WHERE id = ?) AND policy_id = ?
		AND policy_id <> '' AND applied_policy_id = policy_id AND applied_push = 0 AND applied_version < ? AND applied_version =
		(SELECT CASE vendor_version WHEN ? THEN version END FROM policy_pushes WHERE policy_id = ? ORDER BY vendor_version DESC LIMIT 1)`,
		version, policyID, policyID, version, vendorVersion, policyID)
	t.do(ctx, `INSERT INTO policy_pushes (policy_id, vendor_version, version) VALUES (?, ?, ?)
		ON CONFLICT (policy_id, vendor_version) DO UPDATE SET version = excluded.version`, policyID, vendorVersion, version)
	return t.Exec(ctx, `UPDATE assets SET applied_version = ?, applied_push = 0
		WHERE applied_policy_id = ? AND applied_push = ? AND applied_push <> 0`, version, policyID, vendorVersion)
}

// forgetPush notes that it is not known what the platform holds: the saved
// version is pushed again, also if it was refused before.
func forgetPush(ctx context.Context, t *tx, policyID string) error {
	t.do(ctx, `DELETE FROM push_retries WHERE policy_id = ?`, policyID)
	return t.Exec(ctx, `UPDATE policies SET push_version = 0, push_tried_at = 0 WHERE id = ?`, policyID)
}

// translate finds our version of the policy that a device says it applied, as the platform calls it; what is not known yet
// becomes known with setPushed. It shares the policy then, so that the device is recorded before or after the push, as a whole;
// not for what the asset has already: setPushed finds that, and waits for the asset.
func (h lockedAsset) translate(ctx context.Context, t *tx, o enrollment.Observation) enrollment.Observation {
	if o.AppliedPush == 0 {
		return o
	}
	version := func() bool {
		v, known, err := maybe(value[int](ctx, t, `SELECT v.version FROM policies p JOIN policy_pushes v ON v.policy_id = p.id
			WHERE p.id = ? AND p.company_id = ? AND v.vendor_version = ?`, o.AppliedPolicy, o.CompanyID, o.AppliedPush))
		t.check(err)
		if known {
			o.AppliedVersion, o.AppliedPush = v, 0
		}
		return known
	}
	if !version() && (o.AppliedPolicy != h.appliedPolicy || o.AppliedPush != h.appliedPush) &&
		t.holds(ctx, `SELECT id FROM policies WHERE id = ? AND company_id = ?`+t.Dialect().Rows().Share, o.AppliedPolicy, o.CompanyID) {
		version()
	}
	return o
}

// PoliciesBehind counts the policies of connected companies whose saved version
// the platform does not hold: waiting are on their way, failing were refused
// or could not be sent.
func (db *DB) PoliciesBehind(ctx context.Context) (waiting, failing int, err error) {
	all, failing, err := pair[int, int](ctx, db.read(),
		`SELECT COUNT(*), COALESCE(CAST(SUM(CASE WHEN p.push_error <> '' THEN 1 ELSE 0 END) AS BIGINT), 0)`+policyTables+`
		WHERE p.type = 'PLATFORM' AND NOT p.deleted AND p.push_version <> p.version AND c.enterprise <> ''`)
	return all - failing, failing, err
}

// PolicyProgress counts the managed devices with a policy of a company, and those of them that
// have applied a version of it, or a later one.
func (db *DB) PolicyProgress(ctx context.Context, companyID, policyID string, version int) (applied, devices int, err error) {
	return pair[int, int](ctx, db.read(),
		`SELECT COALESCE(SUM(CASE WHEN a.applied_policy_id = a.policy_id AND a.applied_version >= ? THEN 1 ELSE 0 END), 0), COUNT(*)
		FROM assets a WHERE a.company_id = ? AND a.policy_id = ? AND a.policy_id <> '' AND a.status IN ('ACTIVE', 'INACTIVE', 'SYNCHRONIZING')`,
		version, companyID, policyID)
}
