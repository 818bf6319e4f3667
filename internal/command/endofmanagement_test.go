package command_test

import (
	"testing"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/test/expect"
)

// How open commands end when their device stops being managed: only what ends the management succeeds, and a wipe by an agent
// only if the device was erased.
func TestType_EndOfManagement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of      command.Type
		by      asset.Management
		erased  bool
		want    command.State
		outcome string
	}{
		{command.WipeCompanyData, asset.Platform, false, command.Succeeded, "the device is no longer managed"},
		{command.WipeCompanyData, asset.Platform, true, command.Succeeded, "the device was erased and is no longer managed"},
		{command.WipeCompanyData, asset.Agent, false, command.Failed, command.ReleasedWithoutErasing},
		{command.WipeCompanyData, asset.Agent, true, command.Succeeded, "the device was erased and is no longer managed"},
		{command.RelinquishOwnership, asset.Agent, true, command.Succeeded, "the device is no longer managed"},
		{command.RelinquishOwnership, asset.Platform, false, command.Succeeded, "the device is no longer managed"},
		{command.Lock, asset.Agent, true, command.Failed, "the device is no longer managed; the command can no longer be carried out"},
	} {
		state, outcome := c.of.EndOfManagement(c.by, c.erased)
		expect.Equal(t, string(c.of)+" of "+string(c.by), expect.Values{"state": {state, c.want}, "outcome": {outcome, c.outcome}})
	}
}
