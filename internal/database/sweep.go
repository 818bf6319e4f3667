package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/provisioning"
)

const (
	// messageLife is how long the id of a message of the platform is kept, so that the message is applied once. It is
	// longer than the seven days for which a subscription keeps a message.
	messageLife = 8 * 24 * time.Hour
	// mailedLifetime is how long a row of mail_told lasts: a user got mail about an item that waits.
	mailedLifetime = 30 * 24 * time.Hour
	// pollLife is how long a row of command_polls is kept after its next_at, and one of command_cancels after its
	// tried_at. A row only delays the next try, and each try of a command that is still open writes a new time.
	pollLife = 7 * 24 * time.Hour
	// signupLife is how long after its beginning a sign-up with the platform is kept.
	signupLife = 90 * 24 * time.Hour
	// codeLife is how long an OAuth code is kept after it expired, so that a replay is told apart from an unknown code.
	codeLife = 24 * time.Hour
	// connectionLife is how long a connection without grants stays in the portal's lists after it was made, last used and
	// revoked, and how long the registration of a client is kept that has no connection. The last connection of a user with a
	// client stays while it is frozen, so that the next one is frozen as well.
	connectionLife = 90 * 24 * time.Hour
	// sweepRows bounds the rows that one statement removes, and sweepLarge those that may have 1 MiB each.
	sweepRows  = 1000
	sweepLarge = 50
)

// noTokens is the condition that the grant g has no token left, so that no client can use it any more.
const noTokens = `NOT EXISTS (SELECT 1 FROM oauth_tokens t WHERE t.grant_id = g.id)`

// expiring is a statement that removes expired rows, and the instant before which they have expired. The statement has two
// parameters: that instant, and how many rows it removes at most.
type expiring struct {
	statement string
	before    time.Time
}

// oldest is the statement of a table whose rows, by their key, expire by the time in a column.
func oldest(table, key, column string) string {
	return `DELETE FROM ` + table + ` WHERE (` + key + `) IN (SELECT ` + key + ` FROM ` + table + ` WHERE ` + column + ` < ?
		ORDER BY ` + column + ` LIMIT ?)`
}

// sweeps are the statements of all tables.
func sweeps(now time.Time) []expiring {
	return []expiring{
		{oldest("device_logs", "command_id", "at"), now.Add(-agentdevice.LogLifetime)},
		{oldest("authorizations", "id", "created_at"), now.Add(-approval.KeepFor)},
		{oldest("enrollment_requests", "id", "expires_at"), now},
		{`DELETE FROM agent_tokens WHERE hash IN (SELECT k.hash FROM agent_tokens k WHERE k.expires_at < ?
			AND NOT EXISTS (SELECT 1 FROM enrollment_requests r WHERE r.token_hash = k.hash AND r.confirmed_at >= 0)
			ORDER BY k.expires_at LIMIT ?)`, now.Add(-24 * time.Hour)},
		{oldest("companion_tokens", "hash", "expires_at"), now.Add(-24 * time.Hour)},
		{oldest("signin_steps", "hash", "expires_at"), now},
		{oldest("mail_told", "user_id, item_id", "at"), now.Add(-mailedLifetime)},
		{oldest("mail_letters", "id", "created_at"), now.Add(-account.InvitationLife)},
		{oldest("messages", "company_id, id", "seen_at"), now.Add(-messageLife)},
		{oldest("budgets", "key", "closes_at"), now.Add(-time.Hour)},
		{oldest("command_polls", "command_id", "next_at"), now.Add(-pollLife)},
		{oldest("command_cancels", "command_id", "tried_at"), now.Add(-pollLife)},
		{oldest("signups", "state", "created_at"), now.Add(-signupLife)},
		{oldest("sessions", "id", "created_at"), now.Add(-account.SessionLimit)},
		{oldest("oauth_codes", "hash", "expires_at"), now.Add(-codeLife)},
		{oldest("oauth_tokens", "hash", "expires_at"), now},
		{`DELETE FROM oauth_grants WHERE id IN (SELECT g.id FROM oauth_grants g WHERE g.created_at < ? AND ` + noTokens +
			` ORDER BY g.created_at LIMIT ?)`, now},
		{`DELETE FROM oauth_connections WHERE id IN (SELECT o.id FROM (SELECT CAST(? AS BIGINT) AS time) b, oauth_connections o
			WHERE o.created_at < b.time AND o.last_used_at < b.time AND o.revoked_at < b.time
			AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.connection_id = o.id)
			AND (NOT o.frozen OR EXISTS (SELECT 1 FROM oauth_connections n WHERE n.user_id = o.user_id
				AND n.client_id = o.client_id AND n.created_at > o.created_at)) ORDER BY o.created_at LIMIT ?)`,
			now.Add(-connectionLife)},
		{
			`DELETE FROM oauth_clients WHERE id IN (SELECT id FROM oauth_clients WHERE expires_at <> 0 AND expires_at < ? ORDER BY expires_at LIMIT ?)`, now},
		{`DELETE FROM oauth_clients WHERE id IN (SELECT a.id FROM oauth_clients a WHERE a.expires_at = 0 AND a.created_at < ?
			AND NOT EXISTS (SELECT 1 FROM oauth_connections o WHERE o.client_id = a.id) ORDER BY a.created_at LIMIT ?)`,
			now.Add(-connectionLife)},
		{`DELETE FROM enrollment_uses WHERE (code_id, asset_id, epoch) IN (SELECT u.code_id, u.asset_id, u.epoch FROM enrollment_codes c
			JOIN enrollment_uses u ON u.code_id = c.id WHERE c.expires_at < ? LIMIT ?)`, now.Add(-provisioning.KeepCodes)},
		{`DELETE FROM enrollment_codes WHERE id IN (SELECT c.id FROM enrollment_codes c WHERE c.expires_at < ?
			AND NOT EXISTS (SELECT 1 FROM enrollment_uses u WHERE u.code_id = c.id) ORDER BY c.expires_at LIMIT ?)`,
			now.Add(-provisioning.KeepCodes)},
		{oldest("asset_edits", "asset_id", "at"), now.Add(-editLife)},
		{`DELETE FROM job_devices WHERE (job_id, n) IN (SELECT d.job_id, d.n FROM jobs j JOIN job_devices d ON d.job_id = j.id
			WHERE j.ended_at > 0 AND j.ended_at < ? LIMIT ?)`, now.Add(-job.KeepFor)},
		{`DELETE FROM jobs WHERE id IN (SELECT j.id FROM jobs j WHERE j.ended_at > 0 AND j.ended_at < ?
			AND NOT EXISTS (SELECT 1 FROM job_devices d WHERE d.job_id = j.id) ORDER BY j.ended_at LIMIT ?)`, now.Add(-job.KeepFor)},
		{oldest("claims", "id", "expires_at"), now},
		{`DELETE FROM leases WHERE name IN (SELECT name FROM leases WHERE expires_at < ? LIMIT ?)`, now.Add(-time.Hour)},
	}
}

// Sweep removes rows that have expired at a time, see AgedBy, events that are older than their company keeps them, and proposals
// that no person decided about. It also
// sets the clock by that of the server again, ends pauses and rights from a clock that was ahead, has told again what that told to
// expire, and gives unused room of a SQLite file back. Run it every few minutes; several replicas may run it at the same time.
func (db *DB) Sweep(ctx context.Context, asOf time.Time) error {
	if err := db.engine.SetClock(ctx); err != nil {
		return err
	}
	if err := db.endPauses(ctx); err != nil {
		return err
	}
	if err := db.endRights(ctx); err != nil {
		return err
	}
	for _, s := range sweeps(asOf) {
		if err := db.sweep(ctx, sweepRows, s.statement, millis(s.before)); err != nil {
			return err
		}
	}
	companies, err := db.Companies(ctx)
	for _, c := range companies {
		if err == nil {
			err = db.tellAgain(ctx, c.ID)
		}
		if err == nil {
			err = db.sweepEvents(ctx, c.ID, asOf.Add(-c.KeepEvents))
		}
		if err == nil {
			err = db.sweepProposals(ctx, c.ID, asOf.Add(-approval.KeepFor))
		}
	}
	if err != nil {
		return err
	}
	return db.engine.Shrink(ctx)
}

// sweepEvents removes the events of a company from before a time. One from a clock that was ahead counts as told
// now: if it stayed when later ones go, a reader would miss those without a word. If the newest is from the future as well, or
// the time of AgedBy is, it may be this clock that is behind.
func (db *DB) sweepEvents(ctx context.Context, companyID string, before time.Time) error {
	now := db.now()
	if err := db.execRelaxed(ctx, `UPDATE events SET at = ? WHERE company_id = ? AND at > ?
			AND (SELECT n.at FROM events n WHERE n.company_id = ? AND n.pos > 0 ORDER BY n.pos DESC LIMIT 1) <= ? AND `+notBehind,
		millis(now), companyID, latest(now), companyID, latest(now), agedMost(now)); err != nil {
		return err
	}
	return db.sweep(ctx, sweepRows,
		`DELETE FROM events WHERE id IN (SELECT id FROM events WHERE company_id = ? AND pos > 0 AND at < ? ORDER BY at LIMIT ?)`,
		companyID, millis(before))
}

// sweepProposals removes the proposals of a company that expired before a time, if that was told and no person ever decided
// about them: with their documents they are large, and a key may make thousands a day. All others prove who decided. Those that an
// earlier version told, without a time (1), stay.
func (db *DB) sweepProposals(ctx context.Context, companyID string, before time.Time) error {
	return db.sweep(ctx, sweepLarge, `DELETE FROM proposals WHERE id IN (SELECT v.id FROM proposals v
			WHERE v.company_id = ? AND v.status = 'PENDING' AND v.expires_at < ? AND v.expiry_told > 1 AND v.approval = ''
			AND v.signed_id = '' AND NOT EXISTS (SELECT 1 FROM signed_documents s WHERE s.company_id = v.company_id AND s.subject = v.id)
			ORDER BY v.expires_at LIMIT ?)`, companyID, millis(before))
}

// sweep runs a statement again and again until it removes fewer than so many rows. That limit is its last parameter.
func (db *DB) sweep(ctx context.Context, rows int64, statement string, args ...any) error {
	args = append(args, rows)
	for {
		if removed, err := db.engine.ExecRelaxed(ctx, statement, args...); err != nil || removed < rows {
			return err
		}
	}
}
