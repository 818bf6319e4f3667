package access_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"pgregory.net/rapid"
)

var (
	kinds = []access.Kind{access.APIKey, access.Connection, access.User, access.System}
	gates = []access.Gate{access.NoGate, access.DeviceCommands, access.DestructiveCommands, access.PolicyChanges, access.ProvisioningGate}
)

func settings(t *rapid.T) access.Settings {
	flip := func(label string) bool { return rapid.Bool().Draw(t, label) }
	return access.Settings{DeviceCommands: flip("commands"), DestructiveCommands: flip("destructive"),
		PolicyChanges: flip("changes"), Provisioning: flip("provisioning"), OAuthConnections: flip("oauth")}
}

// expected spells contract 5.2 and 5.4 out, case by case.
func expected(p access.Principal, needs access.Permission, gate access.Gate) bool {
	for bit := access.Permission(1); bit <= access.All; bit <<= 1 {
		if needs&bit != 0 && p.Permissions&bit == 0 {
			return false
		}
	}
	agent := p.Kind == access.APIKey || p.Kind == access.Connection
	if p.Kind == access.Connection && !p.Settings.OAuthConnections {
		return false
	}
	if !agent {
		return true
	}
	switch gate {
	case access.DeviceCommands:
		return p.Settings.DeviceCommands
	case access.DestructiveCommands:
		return p.Settings.DestructiveCommands && p.Settings.DeviceCommands
	case access.PolicyChanges:
		return p.Settings.PolicyChanges
	case access.ProvisioningGate:
		return p.Kind == access.APIKey || p.Settings.Provisioning
	default:
		return true
	}
}

func TestGrant_AgreesWithContract(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := access.Principal{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Settings: settings(t),
			Permissions: access.Permission(rapid.Uint16Max(uint16(access.All)).Draw(t, "has"))}
		needs := access.Permission(rapid.Uint16Max(uint16(access.All)).Draw(t, "needs"))
		gate := rapid.SampledFrom(gates).Draw(t, "gate")
		err := access.Grant(p, needs, gate)
		if want := expected(p, needs, gate); (err == nil) != want {
			t.Fatalf("granted %v, want %v (%v)", err == nil, want, err)
		}
		if err != nil && fault.CodeOf(err) != fault.Forbidden {
			t.Fatalf("refused with %v", err)
		}
	})
}

func TestGrant_UnknownGateIsClosed(t *testing.T) {
	t.Parallel()
	on := access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true, OAuthConnections: true}
	if access.Grant(access.Principal{Kind: access.APIKey, Settings: on}, 0, "tomorrow") == nil {
		t.Error("an unknown gate let a key through")
	}
}

func TestPermission_NamesAndScopesReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := access.Permission(rapid.Uint16Max(uint16(access.All)).Draw(t, "p"))
		if back, err := access.ParsePermissions(p.Names()); err != nil || back != p {
			t.Fatalf("names of %v read back as %v, %v", p, back, err)
		}
		if back, err := access.ParseScopes(p.Scopes()); err != nil || back != p.WithImplied() {
			t.Fatalf("scopes of %v read back as %v, %v", p, back, err)
		}
	})
	if _, err := access.ParsePermissions([]string{"devices_read"}); err == nil {
		t.Error("a permission in small letters was read")
	}
	if _, err := access.ParseScopes([]string{"mcp:everything"}); err == nil {
		t.Error("an unknown scope was read")
	}
}
