package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/test/expect"
)

// declared is contract 4.2 and 5.2 with the tool names of 4.5, written
// down a second time.
func declared() map[string]struct {
	path  string
	needs access.Permission
	gate  access.Gate
} {
	type row = struct {
		path  string
		needs access.Permission
		gate  access.Gate
	}
	const (
		plain       = access.DevicesCommand | access.DevicesRead
		destructive = access.DevicesCommandDestructive | access.DevicesRead
	)
	return map[string]row{
		"lock_device":                 {"lock", plain, access.DeviceCommands},
		"start_lost_mode":             {"lost-mode", plain, access.DeviceCommands},
		"stop_lost_mode":              {"found", plain, access.DeviceCommands},
		"send_message":                {"message", plain, access.DeviceCommands},
		"request_status_report":       {"status-report", plain, access.DeviceCommands},
		"request_location_update":     {"location-update", plain, access.DeviceCommands},
		"sync_policy":                 {"sync-policy", plain, access.DeviceCommands},
		"reboot_device":               {"reboot", plain, access.DeviceCommands},
		"shutdown_device":             {"shutdown", plain, access.DeviceCommands},
		"launch_app":                  {"launch-app", plain, access.DeviceCommands},
		"clear_app_data":              {"clear-app-data", plain, access.DeviceCommands},
		"change_device_policy":        {"change-policy", plain | access.PoliciesRead, access.DeviceCommands},
		"wipe_device":                 {"wipe", destructive, access.DestructiveCommands},
		"reset_screen_lock":           {"reset-screen-lock", destructive, access.DestructiveCommands},
		"change_screen_lock_password": {"change-screen-lock-password", destructive, access.DestructiveCommands},
		"relinquish_ownership":        {"relinquish-ownership", destructive, access.DestructiveCommands},
		"upload_log":                  {"upload-log", plain, access.DeviceCommands},
	}
}

// Whatever takes the permission for destructive commands is a command that the
// company's limit counts, and nothing else is.
func TestDefine_Destructive(t *testing.T) {
	t.Parallel()
	r := &operation.Registry{}
	command.Define(r, &command.Service{})
	counted := map[string]bool{}
	for _, kind := range command.Types() {
		if kind.Destructive() {
			counted[string(kind)] = true
		}
	}
	for _, o := range r.All() {
		if (o.Gate == access.DestructiveCommands) != o.Needs.Has(access.DevicesCommandDestructive) {
			t.Errorf("%s: gate %q, needs %s", o.Name, o.Gate, o.Needs)
		}
		for _, sample := range o.Samples {
			if result, ok := sample.(command.Result); ok && counted[string(result.Type)] != (o.Gate == access.DestructiveCommands) {
				t.Errorf("%s sends %s: counted %t", o.Name, result.Type, counted[string(result.Type)])
			}
		}
	}
	if len(counted) != 4 {
		t.Errorf("%d types are counted: %v", len(counted), counted)
	}
}

// shape is what the surfaces make of a declaration.
type shape struct {
	Method, Path         string
	Needs                access.Permission
	Gate                 access.Gate
	Unconfirmed, Created bool
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	r := &operation.Registry{}
	command.Define(r, &command.Service{})
	older := map[string]bool{"lock": true, "lost-mode": true, "found": true, "message": true}
	want := declared()
	for _, o := range r.All() {
		if o.Name == "list_device_commands" {
			got := shape{o.Method, o.Path, o.Needs, o.Gate, o.Unconfirmed, o.Created}
			if diff := cmp.Diff(shape{Method: "GET", Path: "/assets/{assetId}/commands", Needs: access.DevicesRead}, got); diff != "" ||
				o.Budget != operation.Free {
				t.Errorf("the history spends %d and is declared as (-want +got):\n%s", o.Budget, diff)
			}
			continue
		}
		if o.Name == "list_logs" || o.Name == "get_log" {
			expect.Equal(t, o.Name, expect.Values{"method": {o.Method, "GET"}, "needs": {o.Needs, access.DevicesRead},
				"gate":   {o.Gate, access.NoGate},
				"budget": {o.Budget, operation.Free}, "effect": {o.Effect, operation.Reading}})
			continue
		}
		row, ok := want[o.Name]
		delete(want, o.Name)
		got := shape{o.Method, o.Path, o.Needs, o.Gate, o.Unconfirmed, o.Created}
		if diff := cmp.Diff(shape{"POST", "/assets/{assetId}/commands/" + row.path, row.needs, row.gate, true, false}, got); !ok ||
			diff != "" {
			t.Errorf("%s (-want +got):\n%s", o.Name, diff)
		}
		budget, dialect := operation.AfterValidation, operation.Commands
		if older[row.path] {
			budget, dialect = operation.BeforeValidation, operation.FirstFour
		}
		if o.Budget != budget || o.Dialect != dialect {
			t.Errorf("%s spends %d and speaks %d", o.Name, o.Budget, o.Dialect)
		}
		destroys := row.gate == access.DestructiveCommands || row.path == "clear-app-data"
		if (o.Effect == operation.Destroying) != destroys {
			t.Errorf("%s has effect %d", o.Name, o.Effect)
		}
		if len(o.Description) < 80 || !strings.HasSuffix(o.Description, ".") {
			t.Errorf("%s is described as %q", o.Name, o.Description)
		}
	}
	for name := range want {
		t.Errorf("%s is not declared", name)
	}
}
