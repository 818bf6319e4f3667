package access_test

import (
	"fmt"

	"github.com/musterhq/muster/internal/access"
)

// An API key needs the permission, and its company must have turned on the switch.
func ExampleGrant() {
	key := access.Principal{Kind: access.APIKey, Permissions: access.DevicesRead | access.DevicesCommand}
	fmt.Println(access.Grant(key, access.DevicesRead, access.NoGate))
	fmt.Println(access.Grant(key, access.DevicesCommand, access.DeviceCommands))
	key.Settings.DeviceCommands = true
	fmt.Println(access.Grant(key, access.DevicesCommand, access.DeviceCommands))
	// Output:
	// <nil>
	// forbidden: the company setting deviceCommands is off: an administrator can turn it on under AI agent access
	// <nil>
}
