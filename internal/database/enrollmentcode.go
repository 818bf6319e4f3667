package database

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
)

const enrollColumns = `c.id, c.company_id, c.policy_id, c.management, c.personal_usage, c.maker_kind, c.maker_id, c.maker_name, c.tags, c.max_devices, c.devices,
	c.created_at, c.expires_at, c.revoked_at, c.ref`

func enrollFields(c *provisioning.Code) []any {
	return []any{&c.ID, &c.CompanyID, &c.PolicyID, &c.Management, &c.Usage, &c.Maker.Kind, &c.Maker.ID, &c.Maker.Name, encoded{&c.Tags},
		&c.MaxDevices, &c.Devices,
		at(&c.CreatedAt), at(&c.ExpiresAt), at(&c.RevokedAt), &c.Ref}
}

// CreateCode implements provisioning.Codes.
func (db *DB) CreateCode(ctx context.Context, c provisioning.Code) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		t.check(holdCompany(ctx, t, c.CompanyID)) // as the deletion of a policy does
		if t.holds(ctx, `SELECT id FROM policies WHERE id = ? AND company_id = ? AND deleted`, c.PolicyID, c.CompanyID) {
			return provisioning.PolicyDeleted()
		}
		t.changed(c.CompanyID, "code", c.ID)
		return t.Insert(ctx, "enrollment_codes", strings.ReplaceAll(enrollColumns, "c.", "")+`, drop_at`,
			[]any{c.ID, c.CompanyID, c.PolicyID, string(c.Management), string(c.Usage), string(c.Maker.Kind), c.Maker.ID,
				c.Maker.Name, encodeSome(c.Tags),
				c.MaxDevices, c.Devices, millis(c.CreatedAt), millis(c.ExpiresAt), int64(0), c.Ref, int64(0)})
	})
}

// IssueCode implements provisioning.Codes. If the code was revoked in the meantime, the platform
// is to delete its token.
func (db *DB) IssueCode(ctx context.Context, companyID, id, ref string, expires time.Time) error {
	return db.exec(ctx, `UPDATE enrollment_codes SET ref = ?, expires_at = ?, drop_at = CASE WHEN ? <> '' THEN revoked_at ELSE 0 END
		WHERE id = ? AND company_id = ?`, ref, millis(expires), ref, id, companyID)
}

// DropCode implements provisioning.Codes.
func (db *DB) DropCode(ctx context.Context, companyID, id string) error {
	return db.changeCode(ctx, `DELETE FROM enrollment_codes WHERE id = ? AND company_id = ?`, companyID, id)
}

// Dropped implements provisioning.Codes.
func (db *DB) Dropped(ctx context.Context, companyID, id string) error {
	return db.changeCode(ctx, `UPDATE enrollment_codes SET drop_at = 0 WHERE id = ? AND company_id = ?`, companyID, id)
}

// changeCode changes a code by a statement of its id and its company, and has open pages refresh.
func (db *DB) changeCode(ctx context.Context, statement, companyID, id string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		t.changed(companyID, "code", id)
		return t.Exec(ctx, statement, id, companyID)
	})
}

// Codes implements provisioning.Codes.
func (db *DB) Codes(ctx context.Context, companyID string, policies []string, limit int) ([]provisioning.Code, error) {
	now := millis(db.now())
	of, args := ofPolicies("c.policy_id", policies)
	args = append(append([]any{now, now, companyID}, args...), now, limit)
	return list(ctx, db.read(), into(func(c *provisioning.Code) []any {
		return append(enrollFields(c), &c.PolicyName, &c.WaitedFor, &c.Dropping)
	}),
		`SELECT * FROM (SELECT `+enrollColumns+`, COALESCE(p.name, ''), EXISTS (SELECT 1 FROM agent_tokens
				WHERE code_id = c.id AND code_id <> '' AND company_id = c.company_id AND device_id = '' AND `+requested+`) AS waited,
				c.drop_at > 0 AND c.expires_at > ?
			FROM enrollment_codes c LEFT JOIN policies p ON p.id = c.policy_id AND p.company_id = c.company_id
			WHERE c.company_id = ?`+of+`) c
		ORDER BY revoked_at = 0 AND (max_devices = 0 OR devices < max_devices) AND (waited OR expires_at > ?) DESC,
			created_at DESC, id DESC LIMIT ?`, args...)
}

// RevokeCode implements provisioning.Codes.
func (db *DB) RevokeCode(ctx context.Context, companyID string, policies []string, id string) (provisioning.Code, error) {
	return written(ctx, db, func(ctx context.Context, t *tx) (provisioning.Code, error) {
		// The company and the tokens first, as a device that enrolls does.
		t.check(holdCompany(ctx, t, companyID))
		return revokeCode(ctx, t, companyID, policies, id)
	})
}

// revokeCode is RevokeCode. The company is locked.
func revokeCode(ctx context.Context, t *tx, companyID string, policies []string, id string) (provisioning.Code, error) {
	now := t.db.now()
	tokens := listed(ctx, t, scanValue[bool], `SELECT device_id = '' AND (expires_at > ? OR `+requested+`) FROM agent_tokens
		WHERE code_id = ? AND code_id <> '' AND company_id = ? ORDER BY hash`+t.lock(), millis(now), millis(now), id, companyID)
	c, err := lockCode(ctx, t, companyID, id)
	if err == nil && policies != nil && !slices.Contains(policies, c.PolicyID) {
		err = fault.New(fault.NotFound, "no such enrollment code")
	}
	if err != nil {
		return c, err
	}
	// A device that asks to be enrolled again may use its token for longer than the code lives.
	if c.WaitedFor = slices.Contains(tokens, true); !c.Revocable(now) {
		return c, fault.New(fault.Unsupported, "the code is %s already",
			strings.ToLower(string(c.Status(now))))
	}
	c.RevokedAt = now
	t.check(endCode(ctx, t, c))
	c.PolicyName, _, err = maybe(value[string](ctx, t, `SELECT name FROM policies WHERE id = ? AND company_id = ?`, c.PolicyID, companyID))
	t.check(err)
	t.changed(companyID, "code", id)
	return c, t.db.record(ctx, t, companyID, activity.Event{Action: activity.ProvisioningRevoked, Reference: id,
		Target: policyTarget(c.PolicyID, c.PolicyName)})
}

// endCodesOf revokes what devices can still enroll with under a policy that is deleted, and
// returns how many codes that were. The policy and its company are locked.
func endCodesOf(ctx context.Context, t *tx, p policy.Policy) (codes int, err error) {
	// A device that a person confirmed for an asset gets the policy of that: the token has it.
	ids := listed(ctx, t, scanValue[string], `SELECT c.id FROM enrollment_codes c WHERE c.company_id = ? AND c.revoked_at = 0
		AND (c.max_devices = 0 OR c.devices < c.max_devices) AND (c.policy_id = ? OR EXISTS (SELECT 1 FROM agent_tokens k
			WHERE k.code_id = c.id AND k.code_id <> '' AND k.company_id = c.company_id AND k.policy_id = ? AND k.device_id = ''))
		ORDER BY c.id`, p.CompanyID, p.ID, p.ID)
	for _, id := range ids {
		switch _, err := revokeCode(ctx, t, p.CompanyID, nil, id); fault.CodeOf(err) {
		case "":
			codes++
		case fault.Unsupported: // the code had expired
		default:
			return 0, err
		}
	}
	// Tokens that are left are for one asset each, and have no code.
	n := t.count(ctx, `DELETE FROM agent_tokens WHERE company_id = ? AND policy_id = ? AND device_id = '' AND expires_at > ?`,
		p.CompanyID, p.ID, millis(t.db.now()))
	return codes + int(n), nil
}

func lockCode(ctx context.Context, t *tx, companyID, id string) (provisioning.Code, error) {
	return find(ctx, t, "enrollment code", into(enrollFields),
		`SELECT `+enrollColumns+` FROM enrollment_codes c WHERE c.id = ? AND c.company_id = ?`+t.lock(), id, companyID)
}

// endCode makes a locked code one with which no device enrolls: our own token is gone at
// once, the platform's is to be deleted there. The company of an agent's code is locked.
func endCode(ctx context.Context, t *tx, c provisioning.Code) error {
	dropAt := int64(0)
	oneTime := c.MaxDevices == 1 && c.RevokedAt.IsZero() // the platform ended its token itself
	if c.Ref != "" && c.Management == policy.Platform && !oneTime {
		dropAt = millis(t.db.now())
	}
	t.do(ctx, `UPDATE enrollment_codes SET revoked_at = ?, devices = ?, drop_at = ? WHERE id = ?`, millis(c.RevokedAt),
		c.Devices, dropAt, c.ID)
	endRequests(ctx, t, c)
	if c.RevokedAt.IsZero() { // the last device may ask again with its token
		return nil
	}
	return t.Exec(ctx, `DELETE FROM agent_tokens WHERE code_id = ? AND code_id <> ''`, c.ID)
}

// endRequests deletes what devices asked with an agent's code that has ended: none of them enrolls
// with it. What waited would take the places of other requests.
func endRequests(ctx context.Context, t *tx, c provisioning.Code) {
	type asked struct {
		assetID   string
		confirmed int64
	}
	for _, a := range listed(ctx, t, into(func(a *asked) []any { return []any{&a.assetID, &a.confirmed} }),
		`DELETE FROM enrollment_requests WHERE company_id = ? AND token_hash IN (SELECT k.hash FROM agent_tokens k
			WHERE k.code_id = ? AND k.code_id <> '' AND k.company_id = ?) RETURNING asset_id, confirmed_at`, c.CompanyID, c.ID, c.CompanyID) {
		if a.confirmed == 0 {
			t.changed(c.CompanyID, attentionHint, "")
			t.changed(c.CompanyID, "asset", a.assetID)
		}
	}
}

// use counts a device that enrolled with a code, and gives it the code's tags. It reports
// whether other devices may enroll with it.
func (h *lockedAsset) use(ctx context.Context, t *tx, code, device string) (goesOn bool, err error) {
	c, err := lockCode(ctx, t, h.companyID, code)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil // it was made before codes were kept, or its id is another's
	}
	t.check(err)
	first := t.count(ctx, `INSERT INTO enrollment_uses (code_id, asset_id, epoch, device, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (code_id, asset_id, epoch) DO NOTHING`, c.ID, h.id, h.epoch, device, millis(t.db.now()))
	if first == 0 {
		return c.GoesOn(), nil
	}
	tags := []string{}
	t.check(decode(h.tags, &tags))
	more := c.Tags
	if !c.GoesOn() {
		more = append(slices.Clone(more), provisioning.OverLimit)
	}
	for _, tag := range more {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	h.tags = encodeSome(tags)
	c.Devices++
	t.changed(c.CompanyID, "code", c.ID)
	if c.Full() {
		return false, endCode(ctx, t, c)
	}
	return c.GoesOn(), t.Exec(ctx, `UPDATE enrollment_codes SET devices = ? WHERE id = ?`, c.Devices, c.ID)
}

// DueDrops implements provisioning.Codes.
func (db *DB) DueDrops(ctx context.Context, now, next time.Time, limit int) ([]provisioning.Code, error) {
	due, err := list(ctx, db.read(), into(enrollFields),
		`SELECT `+enrollColumns+` FROM enrollment_codes c WHERE c.drop_at > 0 AND c.drop_at <= ? ORDER BY c.drop_at, c.id LIMIT ?`,
		millis(now), limit)
	mine := []provisioning.Code{}
	for _, c := range due {
		n, err := db.execCount(ctx, `UPDATE enrollment_codes SET drop_at = ? WHERE id = ? AND drop_at > 0 AND drop_at <= ?`,
			millis(next), c.ID, millis(now))
		if err != nil {
			return mine, err
		}
		if n == 1 {
			mine = append(mine, c)
		}
	}
	return mine, err
}
