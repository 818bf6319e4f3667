package database

import "github.com/musterhq/muster/internal/access"

// settingsColumns are the columns of a company's settings, in the order of
// settingsFields.
const settingsColumns = `c.device_commands, c.destructive_commands, c.policy_changes, c.provisioning, c.oauth_connections,
	c.apply_approval, c.second_person, c.approver_age, c.destructive_approval, c.limit_devices, c.limit_window, c.require_reason,
	c.stopped_at, c.stop_reason, c.stop_all`

func settingsFields(s *access.Settings) []any {
	c := &s.Controls
	return []any{&s.DeviceCommands, &s.DestructiveCommands, &s.PolicyChanges, &s.Provisioning, &s.OAuthConnections,
		&c.ApplyApproval, &c.SecondPerson, lasting(&c.ApproverAge), &c.DestructiveApproval,
		&c.DestructiveLimit.Devices, lasting(&c.DestructiveLimit.Window), &c.RequireReason,
		at(&s.Stop.At), &s.Stop.Reason, &s.Stop.All}
}
