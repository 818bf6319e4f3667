package database

import (
	"context"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/resource"
)

// visited is a row of a visit.
type visited struct {
	device               agentdevice.Device
	before               int // open deliveries of the device when the statement began
	offered, outstanding string
}

func visitedFields(v *visited) []any {
	return append(agentFields(&v.device), &v.before, &v.offered, &v.outstanding)
}

// outstandingColumns also say whether the log that the command asks for is kept.
const outstandingColumns = `v.device_id, v.type, v.accepted_at > 0, v.type = 'UPLOAD_LOG' AND EXISTS (SELECT 1 FROM device_logs l
		WHERE l.command_id = v.command_id AND l.company_id = c.company_id AND l.asset_id = c.asset_id), ` +
	`c.id, c.company_id, c.asset_id, c.epoch, c.type, c.state, c.created_at, c.feedback_at, c.outcome,
	c.actor_kind, c.actor_id, c.actor_prefix, c.actor_name, c.ref, c.deadline, c.policy_id, c.idempotency_ref, c.reason, c.ticket, c.request_id`

func outstandingFields(o *command.Outstanding) []any {
	return append([]any{&o.Device, &o.Type, &o.Accepted, &o.Logged}, commandFields(&o.Command)...)
}

// outstandingFrom ends a query for the commands about which a device says something.
func outstandingFrom(device string, words []string) part {
	return part{` FROM agent_deliveries v JOIN commands c ON c.id = v.command_id WHERE v.device_id = ` + device + ` AND v.command_id IN (` +
		marks(len(words)) + `)`, anys(words)}
}

// Visit takes the sequence number of a device that checks in, as Contact does, and in the
// same step leases to it what is due, as Offer does, and finds the commands about which the
// device says something. false: the sequence number was not taken, and nothing changed.
func (db *DB) Visit(ctx context.Context, v command.Visit) (command.Visited, bool, error) {
	var got command.Visited
	missed := false
	v.Words = padded(slices.DeleteFunc(slices.Clone(v.Words), func(id string) bool { return !resource.IsID(id) }))
	err := db.statementRelaxed(ctx, func(ctx context.Context, c conn) (err error) {
		if db.engine.OneWriter() {
			got, err = db.visitApart(ctx, c, v)
			return err
		}
		got, missed, err = db.visitAtOnce(ctx, c, v)
		return err
	})
	got, taken, err := maybe(got, err)
	if missed && taken {
		err = db.offerMore(ctx, &got, v)
	}
	return got, taken, err
}

// offerMore leases to a device what its visit missed. Where leases count, what the visit has
// leased is not found again.
func (db *DB) offerMore(ctx context.Context, got *command.Visited, v command.Visit) error {
	if got.Device.State != agentdevice.Active {
		got.Offered = nil
	}
	more, err := db.Offer(ctx, got.Device, v.Lease, v.Limit-len(got.Offered))
	got.Offered = append(got.Offered, more...)
	sortOffered(got.Offered)
	return err
}

// padded repeats a value until there are as many as a power of four, so that a statement with a
// mark for each has few forms.
func padded[T any](values []T) []T {
	if len(values) == 0 {
		return nil
	}
	many := 1
	for many < len(values) {
		many *= 4
	}
	return filled(values, many)
}

// filled repeats the last of some values until there are n.
func filled[T any](values []T, n int) []T {
	all := slices.Clip(values) // not the caller's
	for len(all) < n {
		all = append(all, values[len(values)-1])
	}
	return all
}

// visitApart is Visit in statements of their own, inside a transaction that is alone.
func (db *DB) visitApart(ctx context.Context, c conn, v command.Visit) (got command.Visited, err error) {
	if got.Device, err = one(ctx, c, into(agentFields), contactStatement, db.contactArgs(v.Device, v.Key, v.Sequence)...); err != nil {
		return got, err
	}
	if len(v.Words) > 0 {
		from := outstandingFrom("?", v.Words)
		all, err := list(ctx, c, into(outstandingFields), `SELECT `+outstandingColumns+from.text, append([]any{v.Device}, from.args...)...)
		if err != nil {
			return got, err
		}
		got.Outstanding = outstandingByID(all)
	}
	if got.Device.Open > 0 || got.Device.State != agentdevice.Active {
		got.Offered, err = db.offer(ctx, c, got.Device, v.Lease, v.Limit)
	}
	return got, err
}

// agentNames are the names of agentColumns where a statement selects them again.
const agentNames = `id, company_id, asset_id, epoch, role, key_alg, key_spki, command_alg, last_sequence, state, wiped, superseded,
	capabilities, agent_version, agent_package, agent_code, push_token, open_deliveries, enrolled_at, seen_at, silent, policy_id,
	policy_version, has_it`

// visitStatement is a visit in one statement, up to the commands about which the device says
// something. A lease is compared once more at its row: of two that ask at once, one gets it.
const visitStatement = `WITH first (` + agentNames + `) AS (` + contactStatement +
	`), offered AS (UPDATE agent_deliveries SET lease_until = ?
	FROM (SELECT v.command_id AS delivery, first.state AS standing FROM first JOIN agent_deliveries v ON v.device_id = first.id
		WHERE (first.open_deliveries > 0 OR first.state <> 'ACTIVE') AND (v.deadline = 0 OR v.deadline > ?) AND CASE first.state
			WHEN 'ACTIVE' THEN v.lease_until <= ? AND v.held_until <= ?
			WHEN 'WIPE_PENDING' THEN v.type = 'WIPE_COMPANY_DATA'
			ELSE v.type IN ` + endings + ` END
		ORDER BY v.created_at, v.number, v.command_id LIMIT ?) due
	WHERE command_id = due.delivery AND (due.standing <> 'ACTIVE' OR lease_until <= ?) RETURNING ` + deliveryColumns + `)
	SELECT first.*, CASE WHEN open_deliveries > 0 THEN (SELECT s.open_deliveries FROM agent_devices s WHERE s.id = first.id) ELSE 0 END,
		COALESCE((SELECT CAST(json_agg(json_build_array(` + deliveryColumns + `)) AS TEXT) FROM offered), ''), `

// silentVisit is a visit of a device that says nothing about commands.
const silentVisit = visitStatement + `'' FROM first`

// visitAtOnce is Visit in one statement, which sees the deliveries as they were when it
// began. If it then waited for the row of the device while another delivery was made, it
// missed that one.
func (db *DB) visitAtOnce(ctx context.Context, c conn, v command.Visit) (got command.Visited, missed bool, err error) {
	now := any(millis(db.now()))
	query, args := silentVisit, append(db.contactArgs(v.Device, v.Key, v.Sequence), millis(v.Lease), now, now, now, v.Limit, now)
	if len(v.Words) > 0 {
		from := outstandingFrom("first.id", v.Words)
		query = visitStatement + `COALESCE((SELECT CAST(json_agg(json_build_array(` + outstandingColumns + `)) AS TEXT)` +
			from.text + `), '') FROM first`
		args = append(args, from.args...)
	}
	row, err := one(ctx, c, into(visitedFields), query, args...)
	if err != nil {
		return got, false, err
	}
	got.Device = row.device
	if got.Offered, err = rowsOf(row.offered, into(deliveryFields)); err != nil {
		return got, false, err
	}
	sortOffered(got.Offered)
	all, err := rowsOf(row.outstanding, into(outstandingFields))
	got.Outstanding = outstandingByID(all)
	return got, row.before != row.device.Open, err
}

func outstandingByID(all []command.Outstanding) map[string]command.Outstanding {
	if len(all) == 0 {
		return nil
	}
	known := make(map[string]command.Outstanding, len(all))
	for _, o := range all {
		known[o.Command.ID] = o
	}
	return known
}

// firstOf has a statement that follows others read from another than the first.
func firstOf(text, name string) string {
	return strings.NewReplacer(fromFirst, "FROM "+name, ifFirst, " AND EXISTS (SELECT 1 FROM "+name+")").Replace(text)
}
