package database

import (
	"context"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
)

// recordCompany records what a save changed about a company, and who switched
// which of its settings for AI agents.
func (db *DB) recordCompany(ctx context.Context, t *tx, action activity.Action, before, after company.Company) error {
	was, is := before.Settings, after.Settings
	changes := activity.Differences(append(controlChanges(was.Controls, is.Controls),
		activity.Change{Field: "name", Before: before.Name, After: after.Name},
		activity.Change{Field: "inactiveAfter", Before: span(before.InactiveAfter), After: span(after.InactiveAfter)},
		activity.Change{Field: "keepActivity", Before: span(before.Settings.KeepActivity), After: span(after.Settings.KeepActivity)},
		activity.Change{Field: "keepCommands", Before: span(before.KeepCommands), After: span(after.KeepCommands)},
		activity.Change{Field: "keepPlaces", Before: span(before.KeepPlaces), After: span(after.KeepPlaces)},
		activity.Change{Field: "keepEvents", Before: span(before.KeepEvents), After: span(after.KeepEvents)},
		activity.Change{Field: "lostMessage", Before: before.Lost.Message, After: after.Lost.Message},
		activity.Change{Field: "lostPhone", Before: before.Lost.PhoneNumber, After: after.Lost.PhoneNumber},
		activity.Change{Field: "lostOrganization", Before: before.Lost.Organization, After: after.Lost.Organization},
		activity.Change{Field: "enterprise", Before: before.Enterprise, After: after.Enterprise},
	)...)
	for _, gate := range access.Gates() {
		then, now := was.On(gate), is.On(gate)
		if then == now {
			continue
		}
		changes = append(changes, activity.Change{Field: string(gate), Before: access.OnOff(then), After: access.OnOff(now)})
		t.check(db.noteSwitch(ctx, t, after.ID, company.Switch{Gate: gate, Enabled: now}))
	}
	target := activity.Target{Kind: activity.Company, ID: after.ID, Name: after.Name}
	if err := db.recordStop(ctx, t, was.Stop, is.Stop, activity.Event{Target: target}); err != nil || len(changes) == 0 {
		return err
	}
	return db.record(ctx, t, after.ID, activity.Event{Action: action, Changes: changes, Target: target})
}

// recordOf records what happened to a company.
func (db *DB) recordOf(ctx context.Context, t *tx, c company.Company, action activity.Action, changes ...activity.Change) error {
	return db.record(ctx, t, c.ID, activity.Event{Action: action, Changes: changes,
		Target: activity.Target{Kind: activity.Company, ID: c.ID, Name: c.Name}})
}

// controlChanges are a company's controls before and after, in words.
func controlChanges(before, after access.Controls) []activity.Change {
	return []activity.Change{
		{Field: "applyApproval", Before: string(before.ApplyApproval), After: string(after.ApplyApproval)},
		{Field: "secondPerson", Before: access.OnOff(before.SecondPerson), After: access.OnOff(after.SecondPerson)},
		{Field: "approverAge", Before: before.ApproverAge.String(), After: after.ApproverAge.String()},
		{Field: "destructiveApproval", Before: access.OnOff(before.DestructiveApproval), After: access.OnOff(after.DestructiveApproval)},
		{Field: "destructiveLimit", Before: before.DestructiveLimit.String(), After: after.DestructiveLimit.String()},
		{Field: "requireReason", Before: string(before.RequireReason), After: string(after.RequireReason)},
	}
}

// span is a duration in words; nothing for none.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return ""
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + " days"
	}
	return d.String()
}

func (db *DB) noteSwitch(ctx context.Context, t *tx, companyID string, s company.Switch) error {
	by := access.OriginOf(ctx).Actor
	if by == (access.Actor{}) {
		by = access.ServiceActor()
	}
	return t.Exec(ctx, `INSERT INTO gate_switches (company_id, gate, enabled, at, actor_kind, actor_id, actor_name)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (company_id, gate) DO UPDATE SET enabled = excluded.enabled, at = excluded.at,
			actor_kind = excluded.actor_kind, actor_id = excluded.actor_id, actor_name = excluded.actor_name`,
		companyID, string(s.Gate), s.Enabled, millis(db.now()), string(by.Kind), by.ID, by.Name)
}

// Switches returns who last switched each of a company's settings for AI
// agents; one that was never switched is left out.
func (db *DB) Switches(ctx context.Context, companyID string) ([]company.Switch, error) {
	return list(ctx, db.read(), into(func(s *company.Switch) []any {
		return []any{&s.Gate, &s.Enabled, at(&s.At), &s.By.Kind, &s.By.ID, &s.By.Name}
	}),
		`SELECT g.gate, g.enabled, g.at, g.actor_kind, g.actor_id, g.actor_name FROM gate_switches g WHERE g.company_id = ? ORDER BY g.gate`, companyID)
}
