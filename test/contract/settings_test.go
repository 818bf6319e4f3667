package contract_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// Destructive commands need device commands (contract 5.4): who turns off the
// one turns off the other, and every command is refused at once.
func TestSettings_DeviceCommandsOff(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme"), env.Start()
		client := tenant.Client(replica, access.All)
		client.Post("/assets/none/commands/wipe", nil).Want(t, 404)
		var saved struct {
			Settings struct{ DeviceCommands, DestructiveCommands, PolicyChanges bool }
		}
		env.CLI(&saved, "company", "set", "--company", "acme", "--disable", "device-commands")
		if saved.Settings.DeviceCommands || saved.Settings.DestructiveCommands || !saved.Settings.PolicyChanges {
			t.Errorf("the settings are %+v", saved.Settings)
		}
		client.Post("/assets/none/commands/wipe", nil).Want(t, 403)
		client.Post("/assets/none/commands/reboot", nil).Want(t, 403)
	})
}
