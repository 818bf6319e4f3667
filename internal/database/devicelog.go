package database

import (
	"context"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
)

const logColumns = `command_id, at, bytes`

func logFields(l *agentdevice.Log) []any { return []any{&l.ID, at(&l.At), &l.Bytes} }

// KeepLog implements agentdevice.LogStore.
func (db *DB) KeepLog(ctx context.Context, d agentdevice.Device, l agentdevice.Log) error {
	return db.write(ctx, func(ctx context.Context, t *tx) error {
		if t.holds(ctx, hasLog, l.ID, d.CompanyID, d.AssetID) {
			return nil
		}
		v, err := findDelivery(ctx, t, d.ID, l.ID, t.lock())
		if err == nil && (v.Type != "UPLOAD_LOG" || d.AssetID == "") {
			err = fault.New(fault.NotFound, "the command asks for no log")
		}
		if err != nil {
			return err
		}
		t.do(ctx, `INSERT INTO device_logs (command_id, company_id, asset_id, at, bytes, text) VALUES (`+marks(6)+
			`) ON CONFLICT (command_id) DO NOTHING`,
			l.ID, d.CompanyID, d.AssetID, millis(l.At), int64(l.Bytes), l.Text)
		forgetLogs(ctx, t, d)
		return nil
	})
}

const hasLog = `SELECT command_id FROM device_logs WHERE command_id = ? AND company_id = ? AND asset_id = ?`

// forgetLogs removes the oldest logs of a device, and of its company, that are too many.
func forgetLogs(ctx context.Context, t *tx, d agentdevice.Device) {
	for _, bound := range []struct {
		column, id string
		keep       int
	}{{"asset_id", d.AssetID, agentdevice.LogsPerDevice}, {"company_id", d.CompanyID, agentdevice.LogsPerCompany}} {
		t.do(ctx, `DELETE FROM device_logs WHERE command_id IN (SELECT command_id FROM device_logs WHERE `+bound.column+` = ?
			ORDER BY at DESC, command_id DESC LIMIT 1000 OFFSET ?)`, bound.id, bound.keep)
	}
}

// Logs implements agentdevice.LogStore.
func (db *DB) Logs(ctx context.Context, companyID, assetID string) ([]agentdevice.Log, error) {
	return list(ctx, db.read(), into(logFields), `SELECT `+logColumns+` FROM device_logs WHERE company_id = ? AND asset_id = ? AND at >= ?
		ORDER BY at DESC, command_id DESC LIMIT ?`, companyID, assetID, millis(db.now().Add(-agentdevice.LogLifetime)),
		agentdevice.LogsPerDevice)
}

// Log implements agentdevice.LogStore.
func (db *DB) Log(ctx context.Context, companyID, assetID, id string) (agentdevice.Log, error) {
	return find(ctx, db.read(), "log", into(func(l *agentdevice.Log) []any { return append(logFields(l), &l.Text) }),
		`SELECT `+logColumns+`, text FROM device_logs WHERE command_id = ? AND company_id = ? AND asset_id = ? AND at >= ?`,
		id, companyID, assetID, millis(db.now().Add(-agentdevice.LogLifetime)))
}
