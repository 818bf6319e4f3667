package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

const (
	// NumberEvery is how often a replica looks for events that have no position yet, beside
	// being woken by its own.
	NumberEvery = time.Second
	// numberRows bounds the events that one transaction numbers.
	numberRows = 1000
)

// NumberEvents gives events their positions until the context ends. Any number of replicas
// may: one at a time does. An event whose transaction ended first may have any place before
// the others, but those of one asset have the order in which its row was locked: who locked
// it later drew a higher number, and could lock it only when the earlier one was visible.
func (db *DB) NumberEvents(ctx context.Context) error {
	woken := make(chan struct{}, 1)
	wake := func() { wait.Wake(woken) }
	db.numbering.Store(&wake)
	ticker := time.NewTicker(NumberEvery)
	defer ticker.Stop()
	return wait.Rounds{Name: "events", Ticks: ticker.C, Woken: woken, Now: db.now, Log: db.logger, Work: func(ctx context.Context) error {
		for {
			if n, err := db.NumberRound(ctx); err != nil || n < numberRows {
				return err
			}
		}
	}}.Run(ctx)
}

// NumberRound numbers what is visible, up to a bound, and says how many it were. It is
// durable: what has a position was not lost with the machine's power.
func (db *DB) NumberRound(ctx context.Context) (int, error) {
	waits, err := holds(ctx, db.read(), `SELECT id FROM events WHERE pos = 0 AND n > 0 ORDER BY n LIMIT 1`)
	if err != nil || !waits {
		return 0, err
	}
	return written(ctx, db, func(ctx context.Context, t *tx) (int, error) {
		_, err := beginHistory(ctx, t)
		t.check(err)
		type placed struct {
			company string
			pos     int64
		}
		done := listed(ctx, t, into(func(p *placed) []any { return []any{&p.company, &p.pos} }), `UPDATE events SET pos = s.place FROM (
				SELECT w.id AS event, COALESCE(h.last, 0) + ROW_NUMBER() OVER (PARTITION BY w.company_id ORDER BY w.n, w.id) AS place
				FROM (SELECT id, n, company_id FROM events WHERE pos = 0 AND n > 0 ORDER BY n, id LIMIT ?) w LEFT
					JOIN event_heads h ON h.company_id = w.company_id) s
			WHERE events.id = s.event RETURNING company_id, pos`, numberRows)
		last := map[string]int64{}
		for _, p := range done {
			last[p.company] = max(last[p.company], p.pos)
		}
		for company, pos := range last {
			t.do(ctx, `INSERT INTO event_heads (company_id, last) VALUES (?, ?)
				ON CONFLICT (company_id) DO UPDATE SET last = excluded.last`, company, pos)
			t.hint(event.Topic, company)
		}
		return len(done), nil
	})
}

// beginHistory returns the id of the history that positions are of, and holds it: one
// transaction at a time gives positions. A database that was restored or copied has none.
func beginHistory(ctx context.Context, t *tx) (string, error) {
	if t.count(ctx, `INSERT INTO event_history (one, id) VALUES (1, ?) ON CONFLICT (one) DO NOTHING`, resource.NewID()) > 0 {
		t.check(t.db.holdUp(ctx, t))
	}
	return value[string](ctx, t, `SELECT id FROM event_history WHERE one = 1`+t.lock())
}

// EventHead implements event.Store.
func (db *DB) EventHead(ctx context.Context, companyID string) (event.Head, error) {
	head, begun, err := maybe(one(ctx, db.read(), into(func(h *event.Head) []any { return []any{&h.History, &h.Last, &h.First} }),
		`SELECT h.id, COALESCE((SELECT e.last FROM event_heads e WHERE e.company_id = ?), 0),
			COALESCE((SELECT MIN(e.pos) FROM events e WHERE e.company_id = ? AND e.pos > 0), 0) FROM event_history h WHERE h.one = 1`,
		companyID, companyID))
	if err != nil || begun {
		return head, err
	}
	head.History, err = written(ctx, db, beginHistory)
	return head, err
}

// Events implements event.Store.
func (db *DB) Events(ctx context.Context, q event.Query) ([]event.Event, error) {
	sees, args := sight(q.See)
	args = append([]any{q.CompanyID, q.After, q.Upto}, args...)
	sees = `(` + sees + `)`
	only := func(condition string, values ...any) { sees, args = sees+` AND `+condition, append(args, values...) }
	if q.Types != nil {
		only(`type IN (`+marks(len(q.Types))+`)`, anys(event.Names(q.Types))...)
	}
	if q.Asset != "" {
		only(`asset_id = ?`, q.Asset)
	}
	if len(q.Except) > 0 {
		only(`asset_id NOT IN (`+marks(len(q.Except))+`)`, anys(q.Except)...)
	}
	return list(ctx, db.read(), into(func(e *event.Event) []any {
		return []any{&e.ID, &e.CompanyID, &e.Type, at(&e.At), &e.AssetID, &e.PolicyID, &e.ProposalID, &e.Command, &e.Status, &e.RequestID,
			&e.Owner, &e.Position}
	}), `SELECT id, company_id, type, at, asset_id, policy_id, proposal_id, command, status, request_id, owner, pos FROM events
		WHERE company_id = ? AND pos > 0 AND pos > ? AND pos <= ? AND `+sees+` ORDER BY pos LIMIT ?`, append(args, q.Limit)...)
}

// wholeCompany is the condition of events that are about the company as a whole. One that names a device has its policy.
const wholeCompany = `area NOT IN ('device', 'command', 'policy', 'proposal')`

// sight is the condition of what a caller sees.
func sight(s event.Sight) (string, []any) {
	if s.All {
		return `TRUE`, nil
	}
	condition, args := `FALSE`, []any{}
	see := func(areas string, owned ...any) {
		condition += ` OR ` + areas
		args = append(args, owned...)
		if s.Only != nil {
			condition += ` AND (policy_id <> '' OR ` + wholeCompany + `) AND policy_id IN (` + marks(1+len(s.Only)) + `)`
			args = append(append(args, ""), anys(s.Only)...)
		}
	}
	if s.Devices {
		see(`area IN ('device', 'command')`)
	}
	if s.Policies {
		see(`area = 'policy'`)
		if s.Proposals {
			see(`area = 'proposal'`)
		} else {
			see(`area = 'proposal' AND owner = ?`, s.Owner)
		}
	}
	if s.Company {
		see(wholeCompany)
	}
	return condition, args
}

// ControlVersions implements event.Store. That of a company that was deleted is -1.
func (db *DB) ControlVersions(ctx context.Context, companies []string) (map[string]int64, error) {
	found, err := mapped[string, int64](ctx, db.read(),
		`SELECT c.id, `+controlVersion("c.id")+` FROM companies c WHERE c.id IN (`+marks(len(companies))+`)`, anys(companies)...)
	for _, id := range companies {
		if _, there := found[id]; !there {
			found[id] = -1
		}
	}
	return found, err
}
