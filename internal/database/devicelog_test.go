package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
)

// openCommand makes a command of a type that a device has not answered yet.
func (f *fixture) openCommand(d agentdevice.Device, kind command.Type) string {
	f.Helper()
	c := f.intent(f.asset(d.AssetID), kind)
	f.ok(f.db.Deliver(f.Context(), agentdevice.Delivery{CommandID: c.ID, DeviceID: d.ID, Type: string(kind), Args: []byte("{}"),
		CreatedAt: f.clock.Now()}))
	return c.ID
}

// keeps keeps a log of a device.
func (f *fixture) keeps(d agentdevice.Device, text string) string {
	f.Helper()
	id := f.openCommand(d, command.UploadLog)
	f.ok(f.db.KeepLog(f.Context(), d, agentdevice.Log{ID: id, At: f.clock.Now(), Bytes: len(text), Text: text}))
	return id
}

// A device has its 20 newest logs, its company alone sees them, and after 30 days they are
// gone, first from what is read and then from the table.
func TestLogs_AreBounded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		d := f.agents(1)[0]
		long := strings.Repeat("é", 128<<10)
		first := f.keeps(d, long)
		l, err := f.db.Log(f.Context(), f.company.ID, d.AssetID, first)
		f.ok(err)
		if l.Text != long || l.Bytes != 256<<10 {
			f.Errorf("the text has %d bytes", len(l.Text))
		}
		f.ok(f.db.KeepLog(f.Context(), d, agentdevice.Log{ID: first, At: f.clock.Now(), Bytes: 1, Text: "x"}))
		if l, err = f.db.Log(f.Context(), f.company.ID, d.AssetID, first); err != nil || l.Bytes == 1 {
			f.Errorf("the repetition changed the log: %v", err)
		}
		for range agentdevice.LogsPerDevice {
			f.clock.Advance(time.Second)
			f.keeps(d, "next")
		}
		logs, err := f.db.Logs(f.Context(), f.company.ID, d.AssetID)
		f.ok(err)
		if len(logs) != agentdevice.LogsPerDevice || logs[0].At.Before(logs[1].At) || logs[len(logs)-1].ID == first {
			f.Errorf("%d logs, the first %v", len(logs), logs[0])
		}
		_, err = f.db.Log(f.Context(), f.company.ID, d.AssetID, first)
		f.code(fault.NotFound, err)
		foreign := f.newCompany("beta")
		_, err = f.db.Log(f.Context(), foreign.ID, d.AssetID, logs[0].ID)
		f.code(fault.NotFound, err)
		if found, err := f.db.Logs(f.Context(), foreign.ID, d.AssetID); err != nil || len(found) != 0 {
			f.Errorf("another company sees %v, %v", found, err)
		}
		f.code(fault.NotFound, f.db.KeepLog(f.Context(), d, agentdevice.Log{ID: f.openCommand(d, command.SyncPolicy), At: f.clock.Now()}))
		f.clock.Advance(agentdevice.LogLifetime + time.Minute)
		if logs, err = f.db.Logs(f.Context(), f.company.ID, d.AssetID); err != nil || len(logs) != 0 {
			f.Errorf("after 30 days: %v, %v", logs, err)
		}
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		if left, err := f.db.Text(f.Context(), `SELECT command_id FROM device_logs`); err != nil || len(left) != 0 {
			f.Errorf("after a sweep: %v, %v", left, err)
		}
	})
}
