package database

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
)

const deliveryColumns = `command_id, device_id, type, args, created_at, deadline, final, accepted_at, number`

func deliveryFields(v *agentdevice.Delivery) []any {
	return []any{&v.CommandID, &v.DeviceID, &v.Type, asText(&v.Args), at(&v.CreatedAt), at(&v.Deadline), &v.Final,
		at(&v.Accepted), &v.Number}
}

// Deliver makes a delivery. One that exists already stays as it is.
func (db *DB) Deliver(ctx context.Context, v agentdevice.Delivery) error {
	return db.doubted(db.statement(ctx, func(ctx context.Context, c conn) error {
		_, err := db.chain(ctx, c, insertDelivery(v), openDelivery(v))
		return err
	}))
}

// insertDelivery makes the row of a delivery, once. One that goes out on the device's stream
// counts as offered from the start.
func insertDelivery(v agentdevice.Delivery) part {
	return part{
		`INSERT INTO agent_deliveries (command_id, device_id, type, args, created_at, deadline, final, lease_until, accepted_at, held_until, number)
		SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BOOLEAN),
			CAST(? AS BIGINT), 0, CAST(? AS BIGINT), ` +
			`COALESCE((SELECT MAX(v.number) FROM agent_deliveries v WHERE v.device_id = ?), 0) + 1 ` + fromFirst + ` WHERE TRUE
		ON CONFLICT (command_id) DO NOTHING RETURNING command_id`,
		[]any{v.CommandID, v.DeviceID, v.Type, string(v.Args), millis(v.CreatedAt), millis(v.Deadline), v.Final,
			max(millis(v.LeaseUntil), millis(v.CreatedAt)), millis(v.HeldUntil), v.DeviceID}}
}

// openDelivery notes with the device that there is one more for it. Nothing
// comes before a wipe, and nothing brings back a device that ended: what was kept for it at
// that moment is left to EndOrphans.
func openDelivery(v agentdevice.Delivery) part {
	return part{`UPDATE agent_devices SET open_deliveries = open_deliveries + 1,
		orphaned = orphaned OR state = 'DELETED',
		state = CASE WHEN CAST(? AS TEXT) = '' OR state IN ('DELETED', 'WIPE_PENDING') THEN state ELSE CAST(? AS TEXT) END ` + fromFirst +
		` WHERE agent_devices.id = ?`,
		[]any{string(v.Brings), string(v.Brings), v.DeviceID}}
}

// endings are the commands that end the relation: a device that is to run one
// is offered nothing else.
const endings = `('WIPE_COMPANY_DATA', 'RELINQUISH_OWNERSHIP')`

// Offer leases what a device is to carry out now, oldest first. Deliveries whose deadline has
// passed are left to DropExpired.
func (db *DB) Offer(ctx context.Context, d agentdevice.Device, until time.Time, limit int) (offered []agentdevice.Delivery, err error) {
	// A lease that is lost with the machine's power means one more offer.
	err = db.statementRelaxed(ctx, func(ctx context.Context, c conn) (err error) {
		offered, err = db.offer(ctx, c, d, until, limit)
		return err
	})
	return offered, err
}

func (db *DB) offer(ctx context.Context, c conn, d agentdevice.Device, until time.Time, limit int) ([]agentdevice.Delivery, error) {
	now := millis(db.now())
	due, free, args := `(deadline = 0 OR deadline > ?)`, ``, []any{millis(until), d.ID, now}
	if d.State == agentdevice.Active {
		// Once more at the row itself: of two that ask at once, one gets it.
		due, free, args = due+` AND lease_until <= ? AND held_until <= ?`, ` AND lease_until <= ?`, append(args, now, now, limit, now)
	} else {
		// Nothing but the ending is offered; and if it is to be erased, nothing but that.
		kinds := endings
		if d.State == agentdevice.WipePending {
			kinds = `('WIPE_COMPANY_DATA')`
		}
		due, args = due+` AND type IN `+kinds, append(args, limit)
	}
	offered, err := list(ctx, c, into(deliveryFields), `UPDATE agent_deliveries SET lease_until = ? WHERE command_id IN
		(SELECT command_id FROM agent_deliveries WHERE device_id = ? AND `+due+` ORDER BY created_at, number, command_id LIMIT ?)`+free+`
		RETURNING `+deliveryColumns, args...)
	sortOffered(offered)
	return offered, err
}

func sortOffered(all []agentdevice.Delivery) {
	slices.SortFunc(all, func(a, b agentdevice.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Number, b.Number), cmp.Compare(a.CommandID, b.CommandID))
	})
}

// expired is a delivery whose deadline has passed.
type expired struct{ device, command string }

// DropExpired ends deliveries whose deadline has passed, up to limit: their commands expire
// by themselves. One that was offered, and whose command waits for the device's word, is kept for
// command.ExpiryGrace more. What another transaction works on now is left to the next call. It
// reports how many it ended.
func (db *DB) DropExpired(ctx context.Context, limit int) (dropped int, err error) {
	now := db.now()
	err = db.writeRelaxed(ctx, func(ctx context.Context, t *tx) error {
		dropped = 0
		// The device before its deliveries, as all that change both do.
		all := listed(ctx, t, into(func(e *expired) []any { return []any{&e.device, &e.command} }), `SELECT d.id, v.command_id
			FROM agent_deliveries v JOIN agent_devices d ON d.id = v.device_id
			WHERE v.deadline <> 0 AND v.deadline <= ? AND (v.deadline <= ? OR v.final OR `+unoffered+`)
			ORDER BY v.deadline, v.command_id LIMIT ?`+t.skipLocked(), millis(now), millis(now.Add(-command.ExpiryGrace)), limit)
		if len(all) == 0 {
			return nil
		}
		commands, of := make([]string, len(all)), map[string]int{}
		for i, e := range all {
			commands[i] = e.command
			of[e.device]++
		}
		dropped = len(all)
		commands = padded(commands)
		t.do(ctx, `DELETE FROM agent_deliveries WHERE command_id IN (`+marks(len(commands))+`)`,
			anys(commands)...)
		t.fewerOpen(ctx, of)
		return nil
	})
	return dropped, err
}

// fewerOpen notes with devices how many of their deliveries ended.
func (t *tx) fewerOpen(ctx context.Context, of map[string]int) {
	devices := map[int][]string{} // by that number, which is nearly always 1
	for device, n := range of {
		devices[n] = append(devices[n], device)
	}
	for n, ids := range devices {
		ids = padded(ids)
		t.do(ctx, `UPDATE agent_devices SET open_deliveries = open_deliveries - ? WHERE id IN (`+marks(len(ids))+`)`,
			append([]any{n}, anys(ids)...)...)
	}
}

// Accept notes that the device has a command, once. A device that sets out to erase itself is
// remembered, so that its silence can be understood.
func (db *DB) Accept(ctx context.Context, deviceID, commandID, kind string, at time.Time) error {
	accepted := part{
		`UPDATE agent_deliveries SET accepted_at = ? WHERE command_id = ? AND device_id = ? AND accepted_at = 0 RETURNING command_id`,
		[]any{millis(at), commandID, deviceID}}
	if kind != "WIPE_COMPANY_DATA" {
		return db.exec(ctx, accepted.text, accepted.args...)
	}
	return db.statement(ctx, func(ctx context.Context, c conn) error {
		_, err := db.chain(ctx, c, accepted, part{`UPDATE agent_devices SET erasing_at = ? ` + fromFirst + ` WHERE agent_devices.id = ?`,
			[]any{millis(at), deviceID}})
		return err
	})
}

// EndDelivery ends a delivery. If that is lost with the machine's power, the
// device is offered the command again and repeats what it said of it.
func (db *DB) EndDelivery(ctx context.Context, deviceID, commandID string, s agentdevice.State) error {
	if s == "" {
		return db.statementRelaxed(ctx, func(ctx context.Context, c conn) error {
			return endDelivery(ctx, db, c, deviceID, commandID, s)
		})
	}
	return db.writeRelaxed(ctx, func(ctx context.Context, t *tx) error {
		// Which state the device is left in depends on its other deliveries.
		t.holds(ctx, `SELECT id FROM agent_devices WHERE id = ?`+t.lock(), deviceID)
		return endDelivery(ctx, db, t, deviceID, commandID, s)
	})
}

func endDelivery(ctx context.Context, db *DB, c conn, deviceID, commandID string, s agentdevice.State) error {
	_, err := db.chain(ctx, c, part{`DELETE FROM agent_deliveries WHERE command_id = ? AND device_id = ? RETURNING command_id`,
		[]any{commandID, deviceID}}, closeDelivery(deviceID, commandID, s))
	return err
}

// ExpireDeliveryLeases offers everything again at the next check-ins. A replica
// that is alone with its database calls it at its start: what it had offered
// before may not have been received.
func (db *DB) ExpireDeliveryLeases(ctx context.Context) error {
	now := millis(db.now())
	return db.exec(ctx,
		`UPDATE agent_deliveries SET lease_until = CASE WHEN created_at = ? THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END
		WHERE lease_until > ? AND lease_until <> created_at`, now, now-1, now, now) // never created_at: see unoffered
}

// expireAhead ends leases that were given while the clock was ahead. A delivery that was made then, and not offered, stays
// unoffered.
func (db *DB) expireAhead(ctx context.Context, until, longest int64) error {
	return db.execRelaxed(ctx, `UPDATE agent_deliveries SET lease_until = ?, held_until = 0,
		created_at = CASE WHEN lease_until = created_at THEN CAST(? AS BIGINT) ELSE created_at END WHERE lease_until > ?`,
		until, until, longest)
}

// Waiting returns devices for which something became due between two times: a
// delivery was made or its lease ran out, another policy was assigned, or the
// policy was saved. SQLite reads the tables in this order: what is open, and each company's newest policies.
func (db *DB) Waiting(ctx context.Context, after, until time.Time, limit int) ([]string, error) {
	from, to := millis(after), millis(until)
	return list(ctx, db.read(), scanValue[string], `SELECT device_id FROM agent_deliveries WHERE lease_until > ? AND lease_until <= ?
			AND (deadline = 0 OR deadline > ?)
		UNION SELECT d.id FROM commands c CROSS JOIN agent_devices d WHERE c.`+isOpen+` AND c.state = 'SENT'
			AND c.created_at > ? AND c.created_at <= ? AND c.type = 'CHANGE_POLICY' AND d.asset_id = c.asset_id AND d.epoch = c.epoch
		UNION SELECT d.id FROM companies o CROSS JOIN policies p CROSS JOIN assets a CROSS JOIN agent_devices d
			WHERE p.company_id = o.id AND p.updated_at > ? AND p.updated_at <= ? AND NOT p.deleted AND p.type = 'AGENT'
			AND a.company_id = p.company_id AND a.policy_id = p.id AND a.policy_id <> ''
			AND (a.applied_policy_id <> p.id OR a.applied_version <> p.version) AND d.asset_id = a.id AND d.epoch = a.epoch
		LIMIT ?`, from, to, to, from, to, from, to, limit)
}

func findDelivery(ctx context.Context, c conn, deviceID, commandID, lock string) (agentdevice.Delivery, error) {
	return find(ctx, c, "delivery", into(deliveryFields),
		`SELECT `+deliveryColumns+` FROM agent_deliveries WHERE command_id = ? AND device_id = ?`+lock, commandID, deviceID)
}
