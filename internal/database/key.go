package database

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/limit"
)

const keyColumns = `k.id, k.prefix, k.company_id, k.name, k.hash, k.permissions, k.created_by,
	k.created_at, k.expires_at, k.revoked_at, k.last_used_at, k.policies,
	k.networks, k.devices_per_day`

// keyFields receives a key's columns.
func keyFields(k *apikey.Key) []any {
	return []any{&k.ID, &k.Prefix, &k.CompanyID, &k.Name, digest(k.Hash[:]), &k.Permissions, &k.CreatedBy,
		at(&k.CreatedAt), at(&k.ExpiresAt), at(&k.RevokedAt), at(&k.LastUsedAt), encoded{&k.Policies}, encoded{&k.Networks},
		&k.DevicesPerDay}
}

// CreateKey adds an API key; of its secret only the hash is kept.
func (db *DB) CreateKey(ctx context.Context, k apikey.Key) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		t.check(t.Insert(ctx, "api_keys", keyColumns, keyFields(&k)))
		changes := []activity.Change{{Field: "permissions", After: k.Permissions.String()}, {Field: "prefix", After: k.Prefix}}
		if !k.ExpiresAt.IsZero() {
			changes = append(changes, activity.Change{Field: "expiresAt", After: k.ExpiresAt.UTC().Format(time.RFC3339)})
		}
		for _, network := range k.Networks {
			changes = append(changes, activity.Change{Field: "network", After: network.String()})
		}
		if k.DevicesPerDay > 0 {
			changes = append(changes, activity.Change{Field: "devicesPerDay", After: strconv.Itoa(k.DevicesPerDay)})
		}
		t.check(db.record(ctx, t, k.CompanyID, activity.Event{Action: activity.KeyCreated, Target: keyTarget(k),
			Changes: changes}))
		_, err := db.tellExpiring(ctx, t, k.ID)
		return err
	})
}

// Keys returns a company's API keys, revoked ones too, newest first.
func (db *DB) Keys(ctx context.Context, companyID string) ([]apikey.Key, error) {
	return list(ctx, db.read(), into(keyFields), `SELECT `+keyColumns+` FROM api_keys k
		WHERE k.company_id = ? ORDER BY k.created_at DESC, k.id DESC`, companyID)
}

// RevokeKey refuses a key from now on; fault.NotFound if the company has no
// such key. To revoke it again changes nothing.
func (db *DB) RevokeKey(ctx context.Context, companyID, id string, at time.Time) (apikey.Key, error) {
	k, err := written(ctx, db, func(ctx context.Context, t *tx) (apikey.Key, error) {
		was := valueIn[int64](ctx, t, `SELECT revoked_at FROM api_keys WHERE id = ? AND company_id = ?`+t.lock(), id, companyID)
		// SQLite does not know a table's alias in RETURNING.
		k, err := one(ctx, t, into(keyFields), `UPDATE api_keys
			SET revoked_at = CASE WHEN revoked_at = 0 THEN CAST(? AS BIGINT) ELSE revoked_at END
			WHERE id = ? AND company_id = ? RETURNING `+strings.ReplaceAll(keyColumns, "k.", ""), millis(at), id, companyID)
		if err != nil || was != 0 {
			return k, err
		}
		t.raises(companyID)
		t.changed(companyID, attentionHint, "") // what waits for a person because of the key does no more
		return k, db.record(ctx, t, companyID, activity.Event{Action: activity.KeyRevoked, Target: keyTarget(k),
			Changes: []activity.Change{{Field: "prefix", Before: k.Prefix}}})
	})
	return found(k, err, "API key")
}

func keyTarget(k apikey.Key) activity.Target {
	return activity.Target{Kind: activity.Key, ID: k.ID, Name: k.Name}
}

// KeyByPrefix implements apikey.KeyReader.
func (db *DB) KeyByPrefix(ctx context.Context, prefix string) (apikey.Key, access.Principal, error) {
	both, err := db.keyOwner(ctx, prefix)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		err = fmt.Errorf("cannot read the API key %s: %w", prefix, err)
	}
	if err != nil {
		return apikey.Key{}, access.Principal{}, err
	}
	k, p := both.key, both.principal
	p.Kind, p.ID, p.Name, p.Prefix = access.APIKey, k.ID, k.Name, k.Prefix
	p.CompanyID, p.Permissions, p.Policies, p.DevicesPerDay, p.Expires = k.CompanyID, k.Permissions, k.Policies,
		k.DevicesPerDay, k.ExpiresAt
	return k, p, nil
}

// owned is a key with its company.
type owned struct {
	key       apikey.Key
	principal access.Principal
}

func ownedFields(o *owned) []any { return append(keyFields(&o.key), callersFields(&o.principal)...) }

//nolint:gochecknoglobals // texts that are never written to
var (
	ownedColumns = keyColumns + `, ` + callersColumns
	ownedTables  = ` FROM api_keys k JOIN companies c ON c.id = k.company_id`
	shownColumns = strings.Replace(assetColumns, slugColumn, "c.slug", 1)
)

// keyOwner reads a key with its company and, where the request shows an asset of the
// company, with that.
func (db *DB) keyOwner(ctx context.Context, prefix string) (owned, error) {
	ahead := access.AheadOf(ctx)
	if ahead.Asset == "" || ahead.CompanyID != "" {
		return find(ctx, db.read(), "API key", into(ownedFields), `SELECT `+ownedColumns+ownedTables+` WHERE k.prefix = ?`, prefix)
	}
	return find(ctx, db.read(), "API key", func(r row) (o owned, err error) {
		var a assetRow
		key, shown := &group{fields: ownedFields(&o)}, &group{fields: a.targets()}
		if err := scanGroups(r, key, shown); err != nil {
			return o, err
		}
		if !shown.there {
			return o, nil
		}
		if found, damaged := a.result(); damaged == nil { // else the handler meets it
			ahead.Found(found)
		}
		return o, nil
	}, `SELECT `+ownedColumns+`, `+shownColumns+ownedTables+
		` LEFT JOIN assets a ON a.id = ? AND a.company_id = k.company_id WHERE k.prefix = ?`,
		ahead.Asset, prefix)
}

// TouchKey notes that a key was used now. The note is written with others, at
// most ten seconds later.
func (db *DB) TouchKey(_ context.Context, id string) error {
	db.keyUse.Note(id, millis(db.now()))
	return nil
}

// keyWindow is the window of a key's number of devices.
const keyWindow = 24 * time.Hour

// keyState reads what the number of devices of a command's key depends on. With a
// lock it holds the key, so that of all its calls one waits for the other.
func (db *DB) keyState(ctx context.Context, t conn, c command.Command, lock string) (s limit.KeyState, err error) {
	if s.PerDay = c.DevicesPerDay; s.PerDay == 0 {
		return s, nil
	}
	if lock != "" {
		if _, err := value[string](ctx, t, `SELECT id FROM api_keys WHERE id = ?`+lock, c.Actor.ID); err != nil {
			return s, err
		}
	}
	now := db.now()
	since := millis(now.Add(-keyWindow))
	others, err := value[int64](ctx, t,
		`SELECT COUNT(*) FROM key_devices d WHERE d.key_id = ? AND NOT (d.asset_id = ? AND d.epoch = ?) AND d.at > ?`,
		c.Actor.ID, c.AssetID, c.Epoch, since)
	if s.Others = int(others); err != nil || s.Allows() {
		return s, err
	}
	if s.Counts, err = holds(ctx, t,
		`SELECT d.asset_id FROM key_devices d WHERE d.key_id = ? AND d.asset_id = ? AND d.epoch = ? AND d.at > ?`,
		c.Actor.ID, c.AssetID, c.Epoch, since); err != nil || s.Allows() {
		return s, err
	}
	if writes, ok := t.(*tx); ok { // what was noted while the clock was ahead: see companyState
		if err := writes.Exec(ctx, `UPDATE key_devices SET at = ? WHERE key_id = ? AND at > ?`, millis(now), c.Actor.ID,
			latest(now)); err != nil {
			return s, err
		}
	}
	leaves, err := value[int64](ctx, t,
		`SELECT d.at FROM key_devices d WHERE d.key_id = ? AND d.at > ? ORDER BY d.at, d.asset_id, d.epoch LIMIT 1 OFFSET ?`,
		c.Actor.ID, since, others-int64(c.DevicesPerDay))
	s.Frees = instant(min(leaves, latest(now))).Add(keyWindow).Sub(now)
	return s, err
}
