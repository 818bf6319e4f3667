package database

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/webhook"
)

// attentionHint marks, for pages that are open, that what waits for a person changed and
// no other hint says so: a command ended badly, a device asks to be enrolled again, or a job
// is paused or goes on.
const attentionHint = "attention"

// Attention implements attention.MailStore. It reads what waits with one query, whatever the
// number of devices: each part is found by an index of what waits, and has a limit. Where
// the company has people approve changes, a second query finds these, so that the rule
// stays in one place.
func (db *DB) Attention(ctx context.Context, q attention.Query) ([]attention.Item, error) {
	query, args := db.attentionQuery(q)
	items, err := list(ctx, db.read(), scanAttention, query, args...)
	if err == nil && q.Rule.On() {
		var changes []attention.Item
		changes, err = db.approvalsWaiting(ctx, q)
		items = append(items, changes...)
	}
	attention.Sort(items)
	return items, err
}

func scanAttention(r row) (i attention.Item, err error) {
	var policies [3]string
	m := &i.Matter
	err = r.Scan(&i.Kind, &i.ID, &i.AssetID, &i.Name, &i.Detail, &i.Before, &i.After, &i.Caller, &m.AskedBy, at(&m.AskedSince),
		&policies[0], &policies[1], &policies[2], at(&i.At), at(&i.Until))
	for _, id := range policies {
		if id != "" {
			m.Policies = append(m.Policies, id)
		}
	}
	switch i.Kind {
	case attention.Authorization:
		m.Needs = approval.Authorization{Call: approval.Call{Move: approval.Move{To: approval.Policy{ID: policies[2]}}}}.Matter("").Needs
	case attention.Loosening:
		m.Administers = true
	case attention.StoppedWebhook:
		m.Administers, i.Name = true, webhook.Webhook{URL: i.Name}.Host()
	case attention.Enrollment:
		m.Needs = access.DevicesRead | access.Provisioning
	case attention.UnconfirmedChange:
		m.Needs = access.PoliciesRead | access.PoliciesWrite
		i.Name, i.Detail = policy.ShownName(i.Name), policy.ShownName(i.Detail)
	case attention.FailedWipe:
		m.Needs = access.DevicesRead | access.DevicesCommandDestructive
	default:
		m.Needs = access.DevicesRead | access.DevicesCommand
	}
	return i, err
}

// attentionQuery has one part for each kind but approvals.
func (db *DB) attentionQuery(q attention.Query) (string, []any) {
	now := db.now()
	var parts []string
	var args []any
	part := func(text, where, order string, values ...any) {
		if strings.Contains(text, "v.policy_id") {
			where, values = within(where, values, q.Policies)
		}
		parts = append(parts, `SELECT * FROM (`+text+` WHERE `+where+` ORDER BY `+order+` LIMIT ?) AS p`)
		args = append(append(args, values...), cmp.Or(q.Most, attention.Limit))
	}
	ended := now.Add(-attention.ShownFor)
	part(`SELECT 'AUTHORIZATION' AS kind, z.id, z.asset_id, v.identification, z.command, '' AS b, '' AS a, z.caller_name, z.caller_user,
			COALESCE((SELECT `+sinceColumn+` FROM users u WHERE u.id = z.caller_user), 0) AS since, v.policy_id, z.from_policy, z.to_policy,
			z.created_at, z.created_at + `+strconv.FormatInt(approval.WaitFor.Milliseconds(), 10)+` AS until
		FROM authorizations z JOIN assets v ON `+asksStill(`z`),
		waitingCalls, `z.created_at, z.id`, waitingOf(q.CompanyID, now)...)
	part(`SELECT 'LOOSENING', l.id, '', '', l.control, l.value_before, l.value_after, l.asked_by_name, l.asked_by,
			COALESCE((SELECT `+sinceColumn+` FROM users u WHERE u.id = l.asked_by), CAST(? AS BIGINT)), '', '', '',
			l.asked_at, l.effective_at
		FROM loosenings l`, `l.company_id = ?`, `l.asked_at, l.id`, millis(now), q.CompanyID)
	part(`SELECT 'ENROLLMENT', r.id, r.asset_id, v.identification, '', '', '', '', '', 0, v.policy_id, '', '', r.asked_at, r.expires_at
		FROM enrollment_requests r JOIN assets v ON v.id = r.asset_id AND v.company_id = r.company_id`,
		`r.company_id = ? AND r.confirmed_at = 0 AND r.expires_at > ?`, `r.asked_at, r.id`, q.CompanyID, millis(now))
	part(commandAttention("FAILED_WIPE"), `c.company_id = ? AND c.state = 'ERROR' AND c.type = 'WIPE_COMPANY_DATA'
			AND `+badSince+` AND c.epoch = v.epoch AND (c.outcome NOT LIKE 'cancelled:%' OR c.outcome = ?)
			AND NOT EXISTS `+repeated, `c.created_at, c.id`, q.CompanyID, millis(ended), millis(ended), withdrawn)
	part(commandAttention("UNCONFIRMED"), `c.company_id = ? AND c.state = 'UNCONFIRMED' AND `+badSince+` AND NOT EXISTS `+repeated,
		`c.created_at, c.id`, q.CompanyID, millis(ended), millis(ended))
	part(`SELECT 'UNCONFIRMED_CHANGE', v.id, '', v.target_name, v.title, '', '', v.owner_name, '', 0, v.policy_id, '', '', v.created_at, 0
		FROM proposals v`, `v.company_id = ? AND v.status = 'UNCONFIRMED' AND v.created_at > ? AND v.version = 0
			AND NOT EXISTS (SELECT 1 FROM policies n WHERE n.id = v.next_policy_id AND (n.deleted OR n.version > v.base_version))`,
		`v.created_at, v.id`, q.CompanyID, millis(ended))
	part(`SELECT 'PAUSED_JOB', j.id, '', j.command, j.why, '', '', j.maker_name, j.maker_id, 0, '', '', '', `+jobPausedAt+`, 0 FROM jobs j`,
		`j.company_id = ? AND `+pausedByService, `j.created_at, j.id`, q.CompanyID)
	part(`SELECT 'WEBHOOK', w.id, '', w.url, w.why, '', '', '', '', 0, '', '', '', w.disabled_at, 0 FROM webhooks w`,
		`w.company_id = ? AND w.state = 'DISABLED'`, `w.disabled_at, w.id`, q.CompanyID)
	return strings.Join(parts, ` UNION ALL `), args
}

// jobPausedAt is when a paused job, j, was paused, and pausedByService that the service paused it.
const (
	jobPausedAt = `COALESCE((SELECT n.at FROM activity n WHERE n.company_id = j.company_id AND n.target_id = j.id AND n.action = '` +
		string(activity.JobPaused) + `' ORDER BY n.at DESC, n.id DESC LIMIT 1), j.created_at)`
	pausedByService = `j.status IN ('RUNNING', 'PAUSED') AND j.status = 'PAUSED' AND j.why NOT LIKE '` + job.ByPerson + `%'`
)

func commandAttention(kind string) string {
	return `SELECT '` + kind +
		`', c.id, c.asset_id, v.identification, c.type, '', '', c.actor_name, '', 0, v.policy_id, '', '', c.created_at, 0
		FROM commands c JOIN assets v ON v.id = c.asset_id AND v.company_id = c.company_id`
}

// badSince is the condition that command c was sent, or ended badly, after a time, given twice: the log has when it did.
const badSince = `(c.created_at > ? OR EXISTS (SELECT 1 FROM activity n WHERE n.company_id = c.company_id AND n.target_id = c.asset_id
	AND n.at > ? AND n.reference = c.id AND n.outcome IN ('FAILED', 'UNCONFIRMED')))`

// repeated is a later command of the type to the device of c.
const repeated = `(SELECT 1 FROM commands m WHERE m.asset_id = c.asset_id AND m.type = c.type AND m.created_at > c.created_at)`
