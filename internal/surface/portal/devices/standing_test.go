package devices

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

// What the newest commands say, the newest first.
func TestStandingOf(t *testing.T) {
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	sent := func(kind command.Type, s command.State) command.Command {
		return command.Command{ID: string(kind) + string(s), Type: kind, State: s, CreatedAt: now.Add(-time.Hour)}
	}
	start := func(s command.State) command.Command { return sent(command.StartLostMode, s) }
	stop := func(s command.State) command.Command { return sent(command.StopLostMode, s) }
	for name, c := range map[string]struct {
		commands    []command.Command
		on, deleted bool
		epoch       int           // of the device; the commands are of 0
		lost        command.State // of the start that counts
		ended       command.Type
		unknown     int
	}{
		"nothing":               {},
		"on":                    {commands: []command.Command{start(command.Succeeded)}, on: true, lost: command.Succeeded},
		"on without a command":  {on: true},
		"asked for":             {commands: []command.Command{start(command.Sent)}, lost: command.Sent},
		"asked for, then left":  {commands: []command.Command{start(command.Unconfirmed)}, deleted: true, unknown: 1},
		"asked, enrolled again": {commands: []command.Command{start(command.Unconfirmed)}, epoch: 1, unknown: 1},
		"refused":               {commands: []command.Command{start(command.Failed)}},
		"ended":                 {commands: []command.Command{stop(command.Succeeded), start(command.Succeeded)}},
		"the user ended it":     {commands: []command.Command{start(command.Succeeded)}},
		"its end is under way": {commands: []command.Command{stop(command.Sent), start(command.Succeeded)}, on: true,
			lost: command.Succeeded},
		"asked for, then ended": {commands: []command.Command{stop(command.Succeeded), start(command.Unconfirmed)}, unknown: 1},
		"wiped": {commands: []command.Command{sent(command.WipeCompanyData, command.Succeeded)}, deleted: true,
			ended: command.WipeCompanyData},
		"wipe refused, then left": {commands: []command.Command{sent(command.WipeCompanyData, command.Failed)}, deleted: true},
		"wipe under way":          {commands: []command.Command{sent(command.WipeCompanyData, command.Sent)}},
		"many of unknown outcomes": {commands: []command.Command{start(command.Unconfirmed), start(command.Unconfirmed),
			start(command.Unconfirmed), start(command.Unconfirmed)}, lost: command.Unconfirmed, unknown: maxUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			a := asset.Asset{Status: asset.Active, Device: &asset.Device{LostMode: c.on, Epoch: c.epoch}}
			if c.deleted {
				a.Status, a.Device = asset.Deleted, nil
			}
			got := standingOf(c.commands, a, now)
			if (got.Lost == nil) != (c.lost == "") || got.Lost != nil && got.Lost.State != c.lost {
				t.Errorf("lost: %+v, want %q", got.Lost, c.lost)
			}
			if (got.Ended == nil) != (c.ended == "") || got.Ended != nil && got.Ended.Type != c.ended {
				t.Errorf("ended: %+v, want %q", got.Ended, c.ended)
			}
			if len(got.Unknown) != c.unknown || got.Latest != nil {
				t.Errorf("unknown %d, latest %v", len(got.Unknown), got.Latest)
			}
		})
	}
}
