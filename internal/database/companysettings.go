package database

import (
	"time"

	"github.com/musterhq/muster/internal/access"
)

// settingNames are the columns of a company's settings, in the order of
// settingValues and of settingsRow.
const settingNames = `device_commands, destructive_commands, policy_changes, provisioning, oauth_connections,
	apply_approval, second_person, approver_age, destructive_approval, limit_devices, limit_window, require_reason,
	stopped_at, stop_reason, stop_all`

const settingsColumns = `c.device_commands, c.destructive_commands, c.policy_changes, c.provisioning, c.oauth_connections,
	c.apply_approval, c.second_person, c.approver_age, c.destructive_approval, c.limit_devices, c.limit_window, c.require_reason,
	c.stopped_at, c.stop_reason, c.stop_all`

const settingCount = 15

// settingsRow receives settingsColumns.
type settingsRow struct {
	settings             access.Settings
	age, window, stopped int64
}

func (r *settingsRow) targets() []any {
	s, c := &r.settings, &r.settings.Controls
	return []any{&s.DeviceCommands, &s.DestructiveCommands, &s.PolicyChanges, &s.Provisioning, &s.OAuthConnections,
		&c.ApplyApproval, &c.SecondPerson, &r.age, &c.DestructiveApproval, &c.DestructiveLimit.Devices, &r.window, &c.RequireReason,
		&r.stopped, &s.Stop.Reason, &s.Stop.All}
}

func (r *settingsRow) result() access.Settings {
	c := &r.settings.Controls
	c.ApproverAge = time.Duration(r.age) * time.Millisecond
	c.DestructiveLimit.Window = time.Duration(r.window) * time.Millisecond
	r.settings.Stop.At = instant(r.stopped)
	return r.settings
}

// settingValues are the values of settingNames.
func settingValues(s access.Settings) []any {
	c := s.Controls
	return []any{s.DeviceCommands, s.DestructiveCommands, s.PolicyChanges, s.Provisioning, s.OAuthConnections,
		string(c.ApplyApproval), c.SecondPerson, c.ApproverAge.Milliseconds(), c.DestructiveApproval,
		c.DestructiveLimit.Devices, c.DestructiveLimit.Window.Milliseconds(), string(c.RequireReason),
		millis(s.Stop.At), s.Stop.Reason, s.Stop.All}
}
