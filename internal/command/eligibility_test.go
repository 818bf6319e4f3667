package command_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/test/spec"
)

// sorts are devices of each management, ownership and mode, and one of unknown ownership.
func sorts() []kind {
	return []kind{fullyManaged, companyWork, personalWork, {asset.Platform, "", "", true}, agentManaged}
}

// spec is the device as the contract's table speaks of it.
func (k kind) spec() spec.Device {
	return spec.Device{Agent: k.management == asset.Agent, CompanyOwned: k.ownership == asset.CompanyOwned,
		FullyManaged: k.mode == asset.FullyManaged, Push: k.push}
}

func managedAsset(k kind) asset.Asset {
	return asset.Asset{Status: asset.Active, Device: &asset.Device{Management: k.management, Ownership: k.ownership, Mode: k.mode,
		PushReachable: k.push}}
}

func TestEligible(t *testing.T) {
	t.Parallel()
	for _, c := range spec.Commands {
		for _, k := range sorts() {
			err, want := command.Eligible(command.Type(c.Type), managedAsset(k), true), c.Takes(k.spec())
			if (err == nil) != want || err != nil && fault.CodeOf(err) != fault.Unsupported {
				t.Errorf("%s on %s: %v, want allowed %v", c.Type, k, err, want)
			}
		}
	}
}

func TestEligible_ByStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[asset.Status]bool{asset.Active: true, asset.Inactive: true, asset.Synchronizing: true,
		asset.Pending: false, asset.Deleted: false} {
		t.Run(string(status), func(t *testing.T) {
			a := managedAsset(fullyManaged)
			a.Status = status
			if err := command.Eligible(command.Lock, a, true); (err == nil) != want {
				t.Errorf("%s: %v", status, err)
			}
		})
	}
	if err := command.Eligible(command.Lock, asset.Asset{Status: asset.Active}, true); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("without a device: %v", err)
	}
}

// TestEligible_UnknownOwnershipIsRefused takes away one fact at a time.
func TestEligible_UnknownOwnershipIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t command.Type
		k kind
	}{
		{command.Reboot, kind{asset.Platform, "", asset.FullyManaged, true}},
		{command.Reboot, kind{asset.Platform, asset.CompanyOwned, "", true}},
		{command.Reboot, kind{asset.Platform, asset.PersonallyOwned, asset.FullyManaged, true}},
		{command.StartLostMode, kind{asset.Platform, "", asset.FullyManaged, true}},
		{command.StopLostMode, kind{asset.Platform, "", asset.FullyManaged, true}},
		{command.RelinquishOwnership, kind{asset.Platform, "", asset.WorkProfile, true}},
		{command.RelinquishOwnership, kind{asset.Platform, asset.CompanyOwned, "", true}},
	} {
		if err := command.Eligible(c.t, managedAsset(c.k), true); fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("%s on %s: %v", c.t, c.k, err)
		}
	}
}

func TestEligible_PushWherePlatformHasNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		t         command.Type
		k         kind
		companion bool
		want      bool
	}{
		{"message, no token", command.NotificationMessage, kind{asset.Platform, asset.CompanyOwned, asset.FullyManaged, false}, true,
			false},
		{"message, no push service", command.NotificationMessage, fullyManaged, false, false},
		{"message to an agent without token", command.NotificationMessage, kind{asset.Agent, asset.CompanyOwned, asset.FullyManaged, false},
			true, false},
		{"message to an agent, no push service", command.NotificationMessage, agentManaged, false, true},
		{"location, no token", command.LocationUpdate, kind{asset.Platform, asset.CompanyOwned, asset.FullyManaged, false}, true, false},
		{"location of an agent without token", command.LocationUpdate, kind{asset.Agent, asset.CompanyOwned, asset.FullyManaged, false},
			false, true},
		{"status report, no token", command.StatusReport, kind{asset.Platform, asset.CompanyOwned, asset.FullyManaged, false}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := command.Eligible(c.t, managedAsset(c.k), c.companion); (err == nil) != c.want {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

// Who cannot lock a lost device of an agent is told what is left.
func TestEligible_SaysWhatALostAgentCanDo(t *testing.T) {
	t.Parallel()
	lost := asset.Asset{Status: asset.Active, Device: &asset.Device{Management: asset.Agent}}
	for _, kind := range []command.Type{command.Lock, command.StartLostMode, command.StopLostMode} {
		err := command.Eligible(kind, lost, false)
		if err == nil || !strings.Contains(err.Error(), "does not work on devices with Muster's own agent, and this is one: ") ||
			!strings.Contains(err.Error(), "or wipe it") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := command.Eligible(command.ResetScreenLock, lost, false); err == nil || strings.Contains(err.Error(), "wipe") {
		t.Errorf("removing the lock: %v", err)
	}
}

// What no device of a kind can do is said in words that people know, for both kinds.
func TestEligible_NamesTheKindOfDevice(t *testing.T) {
	t.Parallel()
	for kind, of := range map[command.Type]asset.Management{command.ClearAppData: asset.Agent, command.Shutdown: asset.Platform} {
		err := command.Eligible(kind, asset.Asset{Status: asset.Active, Device: &asset.Device{Management: of}}, false)
		if err == nil || strings.Contains(err.Error(), "-managed") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	moved := command.Situation{Type: command.ChangePolicy, Moves: true, Policy: &policy.Policy{Type: policy.Agent},
		Asset: &asset.Asset{Status: asset.Active, Device: &asset.Device{Management: asset.Platform}}}
	if err := moved.Decide(); err == nil || !strings.Contains(err.Error(), "the policy is for devices with Muster's own agent") {
		t.Errorf("another kind of policy: %v", err)
	}
}
