package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// quotaFilled is a project's quota with what has flowed back since. Its
// parameters: now, now, limit, capacity, capacity, now, now, limit.
const quotaFilled = `CASE
	WHEN q.units + (CASE WHEN ? > q.filled_at THEN ? - q.filled_at ELSE 0 END) * ? > ? THEN ?
	ELSE q.units + (CASE WHEN ? > q.filled_at THEN ? - q.filled_at ELSE 0 END) * ? END`

// SpendQuery takes one of the limit queries that the vendor allows a project in
// a window, and that flow back evenly; false if fewer than reserve would be
// left, or, for background work, while PauseQueries lasts.
func (db *DB) SpendQuery(ctx context.Context, project string, limit, reserve int, window time.Duration, background bool,
	now time.Time) (bool, error) {
	cost, at := window.Milliseconds(), millis(now)
	rate, capacity := int64(limit), int64(limit)*cost
	filled := []any{at, at, rate, capacity, capacity, at, at, rate}
	args := []any{project, capacity - cost, at}
	args = append(append(args, filled...), cost, at, at)
	args = append(append(args, filled...), cost, int64(reserve)*cost, background, at)
	n, err := db.engine.ExecRelaxed(ctx, `INSERT INTO platform_quotas AS q (project, units, filled_at, paused_until) VALUES (?, ?, ?, 0)
		ON CONFLICT (project) DO UPDATE SET units = `+quotaFilled+` - ?,
			filled_at = CASE WHEN ? > q.filled_at THEN ? ELSE q.filled_at END
		WHERE `+quotaFilled+` - ? >= ? AND (NOT ? OR q.paused_until <= ?)`, args...)
	return n == 1, err
}

// PauseQueries holds a project's background queries back until a time.
func (db *DB) PauseQueries(ctx context.Context, project string, until time.Time) error {
	return db.execRelaxed(ctx, `UPDATE platform_quotas SET paused_until = ? WHERE project = ?`, millis(until), project)
}

// PoliciesToPush returns up to limit policies of connected companies, or of one
// of them, that are behind and whose next try is due. Those whose last try is
// longest ago come first.
func (db *DB) PoliciesToPush(ctx context.Context, companyID string, now time.Time, limit int) ([]policy.Policy, error) {
	return list(ctx, db.read(), into(policyFields), `SELECT `+policyListed+policyTables+`
		LEFT JOIN push_retries r ON r.policy_id = p.id AND r.version = p.version
		WHERE p.type = 'PLATFORM' AND NOT p.deleted AND p.push_version <> p.version AND c.enterprise <> ''
			AND (? = '' OR p.company_id = ?)
			AND (r.policy_id IS NULL OR (NOT r.refused AND r.next_at <= ?))
		ORDER BY p.push_tried_at, p.id LIMIT ?`, companyID, companyID, millis(now), limit)
}

// SetPushFailed notes why a version of a policy could not be pushed. backoff
// says when to try again, by how long this version has failed; nil: not before
// it is saved, or pushed by request.
func (db *DB) SetPushFailed(ctx context.Context, policyID string, version int, text string, at time.Time,
	backoff func(failing time.Duration) time.Duration) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		company := valueIn[string](ctx, t, `UPDATE policies SET push_error = ?, push_tried_at = ? WHERE id = ? RETURNING company_id`,
			text, millis(at), policyID)
		if backoff == nil { // it is not tried again
			t.check(db.tell(ctx, t, event.Event{CompanyID: company, Type: event.PolicyFailed, PolicyID: policyID}))
		}
		since := valueIn[int64](ctx, t, `INSERT INTO push_retries AS r (policy_id, version, failing_since, next_at, refused)
			VALUES (?, ?, ?, 0, ?) ON CONFLICT (policy_id) DO UPDATE SET version = excluded.version, refused = excluded.refused,
				failing_since = CASE WHEN r.version = excluded.version THEN r.failing_since ELSE excluded.failing_since END
			RETURNING failing_since`, policyID, version, millis(at), backoff == nil)
		if backoff == nil {
			return nil
		}
		next := at.Add(backoff(at.Sub(instant(since))))
		return t.Exec(ctx, `UPDATE push_retries SET next_at = ? WHERE policy_id = ?`, millis(next), policyID)
	})
}

const (
	// atPlatform says that the platform can tell what became of a command: it is not one that the push service has.
	atPlatform = `((ref = '' OR ref LIKE 'enterprises/%')
		AND EXISTS (SELECT 1 FROM assets a WHERE a.id = commands.asset_id AND a.management = 'PLATFORM'))`
	// askedOf says that the platform was asked, and is not to be asked again by a time.
	askedOf = `EXISTS (SELECT 1 FROM command_polls p WHERE p.command_id = commands.id AND p.next_at > ?)`
)

// CommandsToPoll returns up to limit commands of platform-managed devices in a
// state that is not final, created before a time, whose outcome is to be asked
// for by now; oldest first.
func (db *DB) CommandsToPoll(ctx context.Context, state command.State, created, now time.Time, limit int) ([]command.Command, error) {
	return list(ctx, db.read(), into(commandFields), `SELECT `+commandColumns+` FROM commands
		WHERE `+isOpen+` AND state = ? AND created_at < ? AND `+atPlatform+` AND NOT `+askedOf+`
		ORDER BY created_at, id LIMIT ?`, string(state), millis(created), millis(now), limit)
}

// SetPolled notes when to ask after a command again.
func (db *DB) SetPolled(ctx context.Context, commandID string, next time.Time) error {
	return db.execRelaxed(ctx, `INSERT INTO command_polls (command_id, next_at) VALUES (?, ?)
		ON CONFLICT (command_id) DO UPDATE SET next_at = excluded.next_at`, commandID, millis(next))
}

// AssetOfDevice returns the id of the asset that is, or last was, the device of
// that name; fault.NotFound if no asset ever was.
func (db *DB) AssetOfDevice(ctx context.Context, companyID, device string) (string, error) {
	return find(ctx, db.read(), "device", scanValue[string],
		`SELECT asset_id FROM device_names WHERE company_id = ? AND name = ? AND asset_id <> ''`,
		companyID, device)
}

// SaveSignup keeps a sign-up that was begun; fault.Refused for a company that is being
// deleted.
func (db *DB) SaveSignup(ctx context.Context, s company.Signup) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := holdToConnect(ctx, t, s.CompanyID)
		t.check(err)
		return t.Exec(ctx, `INSERT INTO signups (state, company_id, session_id, name, address, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			s.State, s.CompanyID, s.Session, s.Name, s.Address, millis(s.Begun))
	})
}

// holdToConnect locks a company, as holdCompany does, that is to get an enterprise;
// fault.Refused for one that is being deleted.
func holdToConnect(ctx context.Context, t *tx, id string) (company.Company, error) {
	c, err := findCompany(ctx, t, `c.id = ?`+t.hold(), id)
	if err == nil {
		err = beingDeleted(ctx, t, id)
	}
	return c, err
}

// KeepSignupToken notes what the vendor brought back, until the sign-up is
// finished; fault.NotFound if there is no such sign-up, fault.Refused if its company
// is being deleted.
func (db *DB) KeepSignupToken(ctx context.Context, state, token string) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		companyID, err := find(ctx, t, "sign-up", scanValue[string],
			`UPDATE signups SET token = ? WHERE state = ? AND enterprise = '' RETURNING company_id`, token, state)
		t.check(err)
		return beingDeleted(ctx, t, companyID)
	})
}

// SetSignupNonce stores or removes the nonce of a sign-up; fault.NotFound if
// there is no such sign-up.
func (db *DB) SetSignupNonce(ctx context.Context, state, nonce string) error {
	n, err := db.execCount(ctx, `UPDATE signups SET nonce = ? WHERE state = ?`, nonce, state)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "there is no such sign-up")
	}
	return err
}

const signupColumns = `state, company_id, session_id, name, address, token, nonce, enterprise, created_at`

func signupFields(s *company.Signup) []any {
	return []any{&s.State, &s.CompanyID, &s.Session, &s.Name, &s.Address, &s.Token, &s.Nonce, &s.Enterprise, at(&s.Begun)}
}

// OpenSignup returns the company's newest sign-up of those begun since and not
// finished; fault.NotFound if there is none.
func (db *DB) OpenSignup(ctx context.Context, companyID string, since time.Time) (company.Signup, error) {
	return find(ctx, db.read(), "sign-up", into(signupFields), `SELECT `+signupColumns+` FROM signups
		WHERE company_id = ? AND created_at >= ? AND enterprise = '' AND address <> '' ORDER BY created_at DESC LIMIT 1`,
		companyID, millis(since))
}

// Signup returns a sign-up by its state.
func (db *DB) Signup(ctx context.Context, state string) (company.Signup, error) {
	return find(ctx, db.read(), "sign-up", into(signupFields), `SELECT `+signupColumns+` FROM signups WHERE state = ?`, state)
}

// MarkedSignups returns a company's finished sign-ups whose enterprise still has
// the nonce in its name.
func (db *DB) MarkedSignups(ctx context.Context, companyID string) ([]company.Signup, error) {
	return list(ctx, db.read(), into(signupFields), `SELECT `+signupColumns+` FROM signups
		WHERE company_id = ? AND nonce <> '' AND enterprise <> '' ORDER BY created_at LIMIT 10`, companyID)
}

// FinishSignup binds the sign-up's company to an enterprise, in one step with
// the sign-up itself; fault.Refused if the company is bound to another or being
// deleted, or another company bound to this one.
func (db *DB) FinishSignup(ctx context.Context, state, enterprise string) error {
	err := db.write(ctx, func(ctx context.Context, t *tx) error {
		companyID, err := find(ctx, t, "sign-up", scanValue[string],
			`UPDATE signups SET enterprise = ?, token = '' WHERE state = ? RETURNING company_id`, enterprise, state)
		t.check(err)
		before, err := holdToConnect(ctx, t, companyID)
		t.check(err)
		if t.count(ctx, `UPDATE companies SET enterprise = ? WHERE id = ? AND enterprise IN ('', ?)`, enterprise,
			companyID, enterprise) == 0 {
			return fault.New(fault.Refused, "the company is connected to another enterprise already")
		}
		if before.Enterprise == enterprise {
			return nil
		}
		return db.recordOf(ctx, t, before, activity.CompanyConnected, activity.Change{Field: "enterprise", After: enterprise})
	})
	return taken(err, "the enterprise %s belongs to another company", enterprise)
}
