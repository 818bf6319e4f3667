package database

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/resource"
)

const authorizationColumns = `id, company_id, asset_id, epoch, command, digest, caller_kind, caller_id, caller_prefix, caller_name,
	caller_user, reason, ticket, from_policy, from_version, to_policy, to_version, state, created_at, decided_at, decided_by,
	decided_by_name, passkey_id, used_at, command_id, signed_id, decline_reason`

func authorizationFields(a *approval.Authorization) []any {
	c := &a.Caller
	return []any{&a.ID, &a.CompanyID, &a.AssetID, &a.Epoch, &a.Command, &a.Digest, &c.Kind, &c.ID, &c.Prefix, &c.Name,
		&c.UserID, &a.Note.Reason, &a.Note.Ticket, &a.Move.From.ID, &a.Move.From.Version, &a.Move.To.ID, &a.Move.To.Version,
		&a.State, at(&a.CreatedAt), at(&a.DecidedAt), &a.DecidedBy, &a.DecidedByName, &a.PasskeyID, at(&a.UsedAt), &a.CommandID,
		&a.SignedID, &a.Reason}
}

// readAuthorization is authorizationColumns with Caller.UserSince and Caller.EndsAt, which are not stored.
//
//nolint:gochecknoglobals // a text that is never written to
var readAuthorization = authorizationColumns + `, COALESCE((SELECT ` + sinceColumn + ` FROM users u WHERE u.id = caller_user), 0), ` +
	callerEnds(`caller_kind`, `caller_id`, `caller_user`)

func readAuthorizationFields(a *approval.Authorization) []any {
	return append(authorizationFields(a), at(&a.Caller.UserSince), at(&a.Caller.EndsAt))
}

// authorize returns the authorization that a command uses, or a refusal if it needs one
// and has none; both nil: it needs none. With locks the company is held, so that of all
// calls one uses an authorization, and so is what a move depends on: see holdMove.
func (db *DB) authorize(ctx context.Context, t conn, c command.Command, controls access.Controls, now time.Time,
	l locks) (use *approval.Authorization, refused *approval.Refusal, err error) {
	if l.later {
		return nil, nil, nil
	}
	difference, compared := approval.NoMove, false
	if c.Ask != nil {
		difference, compared = c.Ask.Difference, c.Ask.Move != approval.Move{} && controls.ApplyApproval.On()
	}
	needed := approval.Needed(c.Actor.Kind, controls, c.Type.Destructive(), difference)
	if !needed && !compared {
		return nil, nil, nil
	}
	if needed && (c.Ask == nil || c.Ask.Digest == "") {
		return nil, nil, errors.New("database: a command that needs an authorization does not say what for")
	}
	if known, err := isRepetition(ctx, t, c); known || err != nil {
		return nil, nil, err
	}
	if compared {
		err = compareMove(ctx, t, c)
	}
	if err != nil || !needed {
		return nil, nil, err
	}
	s, err := authorizationState(ctx, t, c.Ask.Call, now)
	if err != nil {
		return nil, nil, err
	}
	var void *approval.Authorization
	var why error
	if s.Last != nil && s.Last.State == approval.Approved {
		if why, err = db.whyUnauthorized(ctx, t, *s.Last, c.Ask.Verifier.Stands); err != nil {
			return nil, nil, err
		}
		if why != nil {
			void = s.Last
			waits := void.Asked()
			s.Last = &waits
		}
	}
	switch verdict := approval.Decide(s); verdict {
	case approval.Uses:
		return s.Last, nil, nil
	case approval.Asks, approval.TooMany:
		return nil, &approval.Refusal{Verdict: verdict, Void: void, Why: why}, nil
	default:
		return nil, &approval.Refusal{Verdict: verdict, ID: s.Last.ID, By: s.Last.DecidedByName, At: s.Last.DecidedAt,
			Reason: s.Last.Reason,
			Void:   void, Why: why}, nil
	}
}

// askFor makes the authorization that a refused command waits for, where there is none.
func (db *DB) askFor(ctx context.Context, t *tx, c command.Command, refused *approval.Refusal, now time.Time) (err error) {
	if refused.Void != nil {
		t.check(db.voidCall(ctx, t, *refused.Void, refused.Why))
	}
	if refused.Verdict == approval.Asks {
		refused.ID, err = db.askPerson(ctx, t, c.Ask.Call, now)
	}
	return err
}

// isRepetition reports whether a command is that of a request which began one already.
func isRepetition(ctx context.Context, t conn, c command.Command) (bool, error) {
	if c.IdempotencyRef == "" {
		return false, nil
	}
	return holds(ctx, t, `SELECT id FROM commands WHERE idempotency_ref = ? AND idempotency_ref <> '' AND company_id = ?`,
		c.IdempotencyRef, c.CompanyID)
}

// authorizationState is what the verdict about a call depends on. Of a call, one
// authorization at most still counts: none is made beside it.
func authorizationState(ctx context.Context, c conn, of approval.Call, now time.Time) (approval.Snapshot, error) {
	s := approval.Snapshot{Now: now}
	last, there, err := maybe(one(ctx, c, into(readAuthorizationFields), `SELECT `+readAuthorization+` FROM authorizations
		WHERE company_id = ? AND digest = ? AND asset_id = ? AND epoch = ? AND command = ? AND caller_kind = ? AND caller_id = ?
		AND (state = 'WAITING' AND created_at BETWEEN ? AND ? OR state = 'APPROVED' AND decided_at BETWEEN ? AND ?
			OR state = 'DECLINED' AND decided_at BETWEEN ? AND ?) LIMIT 1`,
		slices.Concat([]any{of.CompanyID, of.Digest, of.AssetID, of.Epoch, of.Command, string(of.Caller.Kind), of.Caller.ID},
			holding(approval.WaitFor, now), holding(approval.UseWithin, now), holding(approval.DeclineHolds, now))...))
	if err != nil {
		return s, err
	}
	if there && last.For(of) {
		s.Last = &last
	}
	s.Waiting, err = value[int](ctx, c, `SELECT COUNT(*) FROM authorizations WHERE company_id = ? AND caller_kind = ? AND caller_id = ?
		AND state = 'WAITING' AND created_at BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM assets v WHERE `+asksStill(`authorizations`)+`)`,
		append([]any{of.CompanyID, string(of.Caller.Kind), of.Caller.ID}, holding(approval.WaitFor, now)...)...)
	return s, err
}

// askPerson keeps a new authorization, which waits for a person.
func (db *DB) askPerson(ctx context.Context, t *tx, c approval.Call, now time.Time) (string, error) {
	id := resource.NewID()
	if c.Caller.Kind == access.APIKey {
		maker, _, err := maybe(value[string](ctx, t,
			`SELECT k.created_by FROM api_keys k WHERE k.id = ? AND EXISTS (SELECT 1 FROM users u WHERE u.id = k.created_by)`, c.Caller.ID))
		t.check(err)
		c.Caller.UserID = maker
	}
	asked := approval.Authorization{ID: id, Call: c, State: approval.Waiting, CreatedAt: now}
	t.check(t.Insert(ctx, "authorizations", authorizationColumns, authorizationFields(&asked)))
	return id, db.recordAuthorization(ctx, t, activity.AuthorizationAsked, activity.OK, asked)
}

func (db *DB) recordAuthorization(ctx context.Context, t *tx, action activity.Action, outcome activity.Outcome, a approval.Authorization,
	more ...activity.Change) error {
	t.changed(a.CompanyID, "authorization", a.ID)
	asked := []activity.Change{{Field: "command", After: a.Command}}
	if a.Caller.Name != "" {
		asked = append(asked, activity.Change{Field: "caller", After: a.Caller.Name})
	}
	return db.record(ctx, t, a.CompanyID, activity.Event{Action: action, Outcome: outcome, Reference: a.ID, Note: a.Note,
		Target: activity.Target{Kind: activity.Asset, ID: a.AssetID}, Changes: append(asked, more...)})
}

// useAuthorization takes an authorization for the command that was just inserted.
func useAuthorization(ctx context.Context, t *tx, a *approval.Authorization, c command.Command, now time.Time) error {
	t.changed(a.CompanyID, "authorization", a.ID)
	if t.count(ctx, `UPDATE authorizations SET state = 'USED', used_at = ?, command_id = ?
		WHERE id = ? AND state = 'APPROVED' AND decided_at BETWEEN ? AND ?`,
		append([]any{millis(now), c.ID, a.ID}, holding(approval.UseWithin, now)...)...) != 1 {
		return errors.New("database: an authorization was used although its company is locked")
	}
	return nil
}

// findAuthorization finds an authorization of a company; fault.NotFound.
func findAuthorization(ctx context.Context, c conn, companyID, id string) (approval.Authorization, error) {
	return find(ctx, c, "authorization", into(readAuthorizationFields),
		`SELECT `+readAuthorization+` FROM authorizations WHERE id = ? AND company_id = ?`, id, companyID)
}

// Authorizations lists those of a company that were asked for last, the newest first;
// policies nil: for any device, else for devices with these.
func (db *DB) Authorizations(ctx context.Context, companyID string, policies []string, limit int) ([]approval.Authorization, error) {
	where, args := `company_id = ?`, []any{companyID}
	if policies != nil {
		var of string
		of, args = within(`v.id = authorizations.asset_id AND v.company_id = authorizations.company_id`, args, policies)
		where += ` AND EXISTS (SELECT 1 FROM assets v WHERE ` + of + `)`
	}
	return list(ctx, db.read(), into(readAuthorizationFields), `SELECT `+readAuthorization+` FROM authorizations WHERE `+where+`
		ORDER BY created_at DESC, id DESC LIMIT ?`, append(args, limit)...)
}

// waitingCalls is the condition on authorizations z that a person can decide now. Its parameters are waitingOf.
//
//nolint:gochecknoglobals // a text that is never written to
var waitingCalls = `z.company_id = ? AND z.state = 'WAITING' AND z.created_at BETWEEN ? AND ? AND ` +
	callerEnds(`z.caller_kind`, `z.caller_id`, `z.caller_user`) + ` NOT BETWEEN 1 AND ?`

func waitingOf(companyID string, now time.Time) []any {
	return append(append([]any{companyID}, holding(approval.WaitFor, now)...), millis(now))
}

// WaitingAuthorizations counts those that a person can decide now; policies nil: for any
// device, else for devices with these.
func (db *DB) WaitingAuthorizations(ctx context.Context, companyID string, policies []string) (int, error) {
	where, args := within(waitingCalls, waitingOf(companyID, db.now()), policies)
	return value[int](ctx, db.read(),
		`SELECT COUNT(*) FROM authorizations z JOIN assets v ON `+asksStill(`z`)+` WHERE `+where, args...)
}

// asksStill is the condition that v is the asset of authorization z, and that the authorization can be used: see
// approval.Authorization.Gone.
func asksStill(z string) string {
	return strings.ReplaceAll(`v.id = z.asset_id AND v.company_id = z.company_id AND v.epoch = z.epoch AND (z.to_policy = ''
		OR v.policy_id = z.from_policy AND COALESCE((SELECT f.version FROM policies f WHERE f.id = z.from_policy), 0) = z.from_version
			AND EXISTS (SELECT 1 FROM policies n WHERE n.id = z.to_policy AND n.version = z.to_version AND NOT n.deleted))`, `z.`, z+`.`)
}
