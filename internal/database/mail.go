package database

import (
	"cmp"
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/resource"
)

var _ attention.MailStore = (*DB)(nil)

// MailChoice implements attention.ChoiceStore.
func (db *DB) MailChoice(ctx context.Context, companyID, userID string) (attention.Choice, error) {
	return findChoice(ctx, db.read(), companyID, userID)
}

func findChoice(ctx context.Context, c conn, companyID, userID string) (attention.Choice, error) {
	found, _, err := maybe(one(ctx, c, into(func(c *attention.Choice) []any { return []any{&c.Muted, asTypes{&c.Events}} }),
		`SELECT c.muted, c.events FROM mail_users c WHERE c.user_id = ? AND c.company_id = ?`, userID, companyID))
	return found, err
}

// SetMailChoice implements attention.ChoiceStore.
func (db *DB) SetMailChoice(ctx context.Context, companyID, userID string, c attention.Choice) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		u, err := holdUser(ctx, t, companyID, userID)
		t.check(err)
		t.check(followMail(ctx, t, companyID, userID))
		before, err := findChoice(ctx, t, companyID, userID)
		t.check(err)
		changes := activity.Differences(activity.Change{Field: "mail", Before: choiceText(before), After: choiceText(c)})
		if len(changes) == 0 {
			return nil
		}
		t.check(db.record(ctx, t, companyID, activity.Event{Action: activity.UserChanged, Target: userTarget(u),
			Changes: changes}))
		return t.Exec(ctx, `UPDATE mail_users SET muted = ?, events = ? WHERE user_id = ?`, c.Muted,
			strings.Join(event.Names(c.Events), " "), userID)
	})
}

// choiceText names what a user gets mail about, for the log.
func choiceText(c attention.Choice) string {
	if c.Muted {
		return "none"
	}
	return cmp.Or(strings.Join(event.Names(c.Events), " "), "default")
}

// MailCompanies implements attention.MailStore.
func (db *DB) MailCompanies(ctx context.Context, after string, limit int) ([]attention.Query, error) {
	now := db.now()
	since := now.Add(-attention.MailedFor)
	return list(ctx, db.read(), into(func(q *attention.Query) []any { return []any{&q.CompanyID, &q.Rule} }),
		`SELECT c.id, c.apply_approval FROM companies c WHERE c.id > ? AND c.id IN (
			SELECT z.company_id FROM authorizations z WHERE z.created_at > ? AND z.state = 'WAITING'
			UNION SELECT l.company_id FROM loosenings l WHERE l.effective_at > ?
			UNION SELECT v.company_id FROM proposals v WHERE v.status = 'PENDING' AND v.expires_at > ?
			UNION SELECT r.company_id FROM enrollment_requests r WHERE r.confirmed_at = 0 AND r.expires_at > ?
			UNION SELECT j.company_id FROM jobs j WHERE `+pausedByService+` AND `+jobPausedAt+` > ?
			UNION SELECT w.company_id FROM webhooks w WHERE w.state = 'DISABLED' AND w.disabled_at > ?
			UNION SELECT h.company_id FROM event_heads h WHERE h.last > (SELECT MIN(m.position) FROM mail_users m WHERE m.company_id = h.company_id)) ORDER BY c.id LIMIT ?`,
		after, millis(now.Add(-approval.WaitFor)), millis(now), millis(now), millis(now), millis(since), millis(since), limit)
}

// MailControls implements attention.MailStore.
func (db *DB) MailControls(ctx context.Context, companyID string) (string, access.Controls, error) {
	c, err := db.CompanyByID(ctx, companyID)
	return c.Name, c.Settings.Controls, err
}

// Recipients implements attention.MailStore.
func (db *DB) Recipients(ctx context.Context, companyID string) ([]attention.Recipient, error) {
	people, err := db.Approvers(ctx, companyID)
	if err != nil {
		return nil, err
	}
	found := map[string]*attention.Recipient{}
	all := make([]attention.Recipient, len(people))
	for i, p := range people {
		all[i].Approver = p
		found[p.UserID] = &all[i]
	}
	_, err = list(ctx, db.read(), func(r row) (_ struct{}, err error) {
		var id string
		var invited bool
		var m attention.Recipient
		err = r.Scan(&id, &m.Email, &invited, &m.Choice.Muted, asTypes{&m.Choice.Events}, at(&m.NextAt), &m.Failures, &m.Position)
		if to := found[id]; err == nil && to != nil {
			m.Approver = to.Approver
			m.Disabled = m.Disabled || invited
			*to = m
		}
		return struct{}{}, err
	},
		`SELECT u.id, u.email, u.password_hash = '' AND u.last_sign_in_at = 0, COALESCE(m.muted, FALSE), COALESCE(m.events, ''), COALESCE(m.next_at, 0),
			COALESCE(m.failures, 0), COALESCE(m.position, h.last, 0)
		FROM users u LEFT JOIN mail_users m ON m.user_id = u.id LEFT JOIN event_heads h ON h.company_id = u.company_id WHERE u.company_id = ?`, companyID)
	if err != nil {
		return nil, err
	}
	_, err = list(ctx, db.read(), func(r row) (_ struct{}, err error) {
		var id, item string
		if err = r.Scan(&id, &item); err == nil && found[id] != nil {
			found[id].Mailed = append(found[id].Mailed, item)
		}
		return struct{}{}, err
	}, `SELECT m.user_id, m.item_id FROM mail_told m WHERE m.company_id = ?`, companyID)
	return all, err
}

// MailSent implements attention.MailStore.
func (db *DB) MailSent(ctx context.Context, companyID, userID string, items []string, position int64, next time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := holdUser(ctx, t, companyID, userID)
		t.check(err)
		for _, item := range items {
			t.do(ctx,
				`INSERT INTO mail_told (user_id, item_id, company_id, at) VALUES (?, ?, ?, ?) ON CONFLICT (user_id, item_id) DO NOTHING`,
				userID, item, companyID, millis(db.now()))
		}
		return setMailAt(ctx, t, companyID, userID, position, next, 0)
	})
}

// MailFailed implements attention.MailStore.
func (db *DB) MailFailed(ctx context.Context, companyID, userID string, next time.Time) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := holdUser(ctx, t, companyID, userID)
		t.check(err)
		return setMailAt(ctx, t, companyID, userID, 0, next, 1)
	})
}

// setMailAt sets when a user's next mail may go, and their position unless it is further.
// failed is 1 after a failure, which is counted, and 0 after a mail.
func setMailAt(ctx context.Context, t *tx, companyID, userID string, position int64, next time.Time, failed int) error {
	t.check(followMail(ctx, t, companyID, userID))
	return t.Exec(ctx, `UPDATE mail_users SET next_at = ?, failures = CASE WHEN ? = 0 THEN 0 ELSE failures + 1 END,
		position = CASE WHEN position < ? THEN ? ELSE position END WHERE user_id = ?`, millis(next), failed, position, position, userID)
}

// followMail makes a user follow the company's history from now on, unless they do.
func followMail(ctx context.Context, t *tx, companyID, userID string) error {
	return t.Exec(ctx, `INSERT INTO mail_users (user_id, company_id, position)
		VALUES (?, ?, COALESCE((SELECT h.last FROM event_heads h WHERE h.company_id = ?), 0)) ON CONFLICT (user_id) DO NOTHING`, userID,
		companyID, companyID)
}

// addLetter keeps an invitation that is to be sent, in the place of earlier ones of the user.
func addLetter(ctx context.Context, t *tx, s account.PendingSignIn, now time.Time) error {
	if err := t.Exec(ctx, `DELETE FROM mail_letters WHERE user_id = ?`, s.UserID); err != nil || len(s.Letter) == 0 {
		return err
	}
	return t.Exec(ctx, `INSERT INTO mail_letters (id, user_id, company_id, sealed, created_at, next_at) VALUES (?, ?, ?, ?, ?, ?)`,
		resource.NewID(), s.UserID, s.CompanyID, base64.StdEncoding.EncodeToString(s.Letter), millis(now), millis(now))
}

// Letters implements attention.MailStore. The letter of a user who can sign in, or whose link has ended, stays until the sweep
// takes it: after weeks without the service, that is hours later.
func (db *DB) Letters(ctx context.Context, limit int) ([]attention.Letter, error) {
	now := db.now()
	return list(ctx, db.read(), into(func(l *attention.Letter) []any {
		return []any{&l.ID, &l.UserID, &l.CompanyID, &l.Company, &l.Name, &l.Email, asBase64{&l.Sealed}, &l.Failures}
	}), `SELECT m.id, m.user_id, m.company_id, c.name, u.name, u.email, m.sealed, m.failures FROM mail_letters m
		JOIN users u ON u.id = m.user_id JOIN companies c ON c.id = m.company_id WHERE m.next_at <= ? AND m.created_at > ?
			AND NOT u.disabled AND u.password_hash = '' AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.id)
		ORDER BY m.next_at, m.id LIMIT ?`, millis(now), millis(now.Add(-account.InvitationLife)), limit)
}

// LetterDone implements attention.MailStore.
func (db *DB) LetterDone(ctx context.Context, l attention.Letter, refused bool) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		there := t.count(ctx, `DELETE FROM mail_letters WHERE id = ? AND company_id = ?`, l.ID, l.CompanyID) > 0
		if !there || !refused { // without one, the invitation was made once more, or the user deleted
			return nil
		}
		return db.record(ctx, t, l.CompanyID, activity.Event{Action: activity.UserInvited, Outcome: activity.Failed,
			Target:  userTarget(account.User{ID: l.UserID, Email: l.Email}),
			Changes: []activity.Change{{Field: "mail", After: "refused by the server"}}})
	})
}

// LetterFailed implements attention.MailStore.
func (db *DB) LetterFailed(ctx context.Context, id string, next time.Time) error {
	return db.exec(ctx, `UPDATE mail_letters SET next_at = ?, failures = failures + 1 WHERE id = ?`, millis(next), id)
}

// mailAgain forgets who got mail of what waits for a decision: it waits again.
func mailAgain(ctx context.Context, t *tx, companyID, itemID string) error {
	return t.Exec(ctx, `DELETE FROM mail_told WHERE company_id = ? AND item_id = ?`, companyID, itemID)
}
