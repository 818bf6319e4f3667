package database

import (
	"cmp"
	"context"
	"slices"
	"time"

	agentdevice "github.com/musterhq/muster/internal/agent/device"
)

const deliveryColumns = `command_id, device_id, type, args, created_at, deadline, final, accepted_at, number`

func deliveryFields(v *agentdevice.Delivery) []any {
	return []any{&v.CommandID, &v.DeviceID, &v.Type, asText(&v.Args), at(&v.CreatedAt), at(&v.Deadline), &v.Final, at(&v.Accepted), &v.Number}
}

// Deliver makes a delivery. One that exists already stays as it is.
func (db *DB) Deliver(ctx context.Context, v agentdevice.Delivery) error {
	return db.statement(ctx, func(ctx context.Context, c conn) error {
		_, err := db.chain(ctx, c, insertDelivery(v), openDelivery(v))
		return err
	})
}

// insertDelivery makes the row of a delivery, once.
func insertDelivery(v agentdevice.Delivery) part {
	return part{`INSERT INTO agent_deliveries (command_id, device_id, type, args, created_at, deadline, final, lease_until, accepted_at, held_until, number)
		SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BOOLEAN),
			CAST(? AS BIGINT), 0, CAST(? AS BIGINT), COALESCE((SELECT MAX(v.number) FROM agent_deliveries v WHERE v.device_id = ?), 0) + 1 ` + fromFirst + ` WHERE TRUE
		ON CONFLICT (command_id) DO NOTHING RETURNING command_id`,
		[]any{v.CommandID, v.DeviceID, v.Type, string(v.Args), millis(v.CreatedAt), millis(v.Deadline), v.Final, millis(firstLease(v)), millis(v.HeldUntil), v.DeviceID}}
}

// firstLease is until when a new delivery is not offered: a delivery that goes out on the
// device's stream counts as offered from the start.
func firstLease(v agentdevice.Delivery) time.Time {
	if v.LeaseUntil.After(v.CreatedAt) {
		return v.LeaseUntil
	}
	return v.CreatedAt
}

// openDelivery notes with the device that there is one more for it. Nothing
// comes before a wipe, and nothing brings back a device that ended.
func openDelivery(v agentdevice.Delivery) part {
	return part{`UPDATE agent_devices SET open_deliveries = open_deliveries + 1,
		state = CASE WHEN CAST(? AS TEXT) = '' OR state IN ('DELETED', 'WIPE_PENDING') THEN state ELSE CAST(? AS TEXT) END ` + fromFirst + ` WHERE agent_devices.id = ?`,
		[]any{string(v.Brings), string(v.Brings), v.DeviceID}}
}

// endings are the commands that end the relation: a device that is to run one
// is offered nothing else.
const endings = `('WIPE_COMPANY_DATA', 'RELINQUISH_OWNERSHIP')`

// Offer leases what a device is to carry out now. Deliveries whose deadline has
// passed are dropped: their commands expire by themselves.
func (db *DB) Offer(ctx context.Context, d agentdevice.Device, until time.Time, limit int) ([]agentdevice.Delivery, error) {
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
	var offered []agentdevice.Delivery
	// A lease that is lost with the machine's power means one more offer.
	err := db.statementRelaxed(ctx, func(ctx context.Context, c conn) (err error) {
		offered, err = list(ctx, c, into(deliveryFields), `UPDATE agent_deliveries SET lease_until = ? WHERE command_id IN
			(SELECT command_id FROM agent_deliveries WHERE device_id = ? AND `+due+` ORDER BY created_at, number, command_id LIMIT ?)`+free+`
			RETURNING `+deliveryColumns, args...)
		return err
	})
	if err == nil && d.Open > len(offered) {
		err = db.dropExpired(ctx, d.ID, now)
	}
	slices.SortFunc(offered, func(a, b agentdevice.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Number, b.Number), cmp.Compare(a.CommandID, b.CommandID))
	})
	return offered, err
}

// dropExpired ends a device's deliveries whose deadline has passed.
func (db *DB) dropExpired(ctx context.Context, deviceID string, now int64) error {
	return db.writeRelaxed(ctx, func(ctx context.Context, t *tx) error {
		dropped, err := t.execCount(ctx, `DELETE FROM agent_deliveries WHERE device_id = ? AND deadline <> 0 AND deadline <= ?`, deviceID, now)
		if err != nil || dropped == 0 {
			return err
		}
		return t.exec(ctx, `UPDATE agent_devices SET open_deliveries = open_deliveries - ? WHERE id = ?`, dropped, deviceID)
	})
}

// Accept notes that the device has a command; with a zero time it only finds
// it. A device that sets out to erase itself is remembered, so that its silence
// can be understood.
func (db *DB) Accept(ctx context.Context, deviceID, commandID string, at time.Time) (agentdevice.Delivery, error) {
	if at.IsZero() {
		return findDelivery(ctx, db.read(), deviceID, commandID, "")
	}
	var v agentdevice.Delivery
	err := db.write(ctx, func(ctx context.Context, t *tx) (err error) {
		if v, err = findDelivery(ctx, t, deviceID, commandID, t.lock()); err != nil || !v.Accepted.IsZero() {
			return err
		}
		if err := t.exec(ctx, `UPDATE agent_deliveries SET accepted_at = ? WHERE command_id = ?`, millis(at), commandID); err != nil {
			return err
		}
		if v.Type != "WIPE_COMPANY_DATA" {
			return nil
		}
		return t.exec(ctx, `UPDATE agent_devices SET erasing_at = ? WHERE id = ?`, millis(at), deviceID)
	})
	return v, err
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
		if _, err := holds(ctx, t, `SELECT id FROM agent_devices WHERE id = ?`+t.lock(), deviceID); err != nil {
			return err
		}
		return endDelivery(ctx, db, t, deviceID, commandID, s)
	})
}

func endDelivery(ctx context.Context, db *DB, c conn, deviceID, commandID string, s agentdevice.State) error {
	_, err := db.chain(ctx, c,
		part{`DELETE FROM agent_deliveries WHERE command_id = ? AND device_id = ? RETURNING command_id`, []any{commandID, deviceID}},
		part{`UPDATE agent_devices SET open_deliveries = open_deliveries - 1,
			erasing_at = CASE WHEN EXISTS (` + openWipe + ` AND v.command_id <> ?) THEN erasing_at ELSE 0 END,
			state = CASE WHEN CAST(? AS TEXT) = '' OR state = 'DELETED' THEN state
				WHEN EXISTS (` + openWipe + ` AND v.command_id <> ?) THEN 'WIPE_PENDING'
				WHEN EXISTS (` + openRelease + ` AND v.command_id <> ?) THEN 'RELINQUISH_PENDING'
				ELSE CAST(? AS TEXT) END ` + fromFirst + ` WHERE agent_devices.id = ?`,
			[]any{commandID, string(s), commandID, commandID, string(s), deviceID}})
	return err
}

// ExpireDeliveryLeases offers everything again at the next check-ins. A replica
// that is alone with its database calls it at its start: what it had offered
// before may not have been received.
func (db *DB) ExpireDeliveryLeases(ctx context.Context) error {
	now := millis(db.now())
	return db.exec(ctx, `UPDATE agent_deliveries SET lease_until = CASE WHEN created_at = ? THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END
		WHERE lease_until > ?`, now, now-1, now, now) // never created_at: see unoffered
}

// Waiting returns devices for which something became due between two times: a
// delivery was made or its lease ran out, another policy was assigned, or the
// policy was saved.
func (db *DB) Waiting(ctx context.Context, after, until time.Time, limit int) ([]string, error) {
	from, to := millis(after), millis(until)
	return list(ctx, db.read(), scanValue[string], `SELECT device_id FROM agent_deliveries WHERE lease_until > ? AND lease_until <= ?
		UNION SELECT d.id FROM commands c JOIN agent_devices d ON d.asset_id = c.asset_id AND d.epoch = c.epoch
			WHERE c.state = 'SENT' AND c.created_at > ? AND c.created_at <= ? AND c.type = 'CHANGE_POLICY'
		UNION SELECT d.id FROM policies p JOIN assets a ON a.company_id = p.company_id AND a.policy_id = p.id AND a.policy_id <> ''
			JOIN agent_devices d ON d.asset_id = a.id AND d.epoch = a.epoch
			WHERE p.type = 'AGENT' AND p.updated_at > ? AND p.updated_at <= ? AND NOT p.deleted
			AND (a.applied_policy_id <> p.id OR a.applied_version <> p.version)
		LIMIT ?`, from, to, from, to, from, to, limit)
}

func findDelivery(ctx context.Context, c conn, deviceID, commandID, lock string) (agentdevice.Delivery, error) {
	return find(ctx, c, "delivery", into(deliveryFields),
		`SELECT `+deliveryColumns+` FROM agent_deliveries WHERE command_id = ? AND device_id = ?`+lock, commandID, deviceID)
}
