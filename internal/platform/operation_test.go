package platform_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/provisioning"
)

// What a command's own status does not say, its operation's error does; an app without a
// result is not one whose data was deleted.
func TestOutcome_EmptyStatus(t *testing.T) {
	const expired = `,"error":{"code":4,"message":"expired"}`
	lost := command.LostModeBody{Message: "Hi"}
	apps := command.ClearAppDataBody{PackageNames: []string{"com.a", "com.b", "com.c"}}
	params := `"clearAppsDataParams":{"packageNames":["com.a","com.b","com.c"]},`
	connected(t, func(b *bench) {
		for _, c := range []struct {
			send             command.Type
			body             any
			metadata, failed string
			state            command.State
			says             string
		}{
			{command.StartLostMode, lost, `"startLostModeStatus":{}`, expired, command.Failed, "expired"},
			{command.StartLostMode, lost, `"startLostModeStatus":{"status":"STATUS_UNSPECIFIED"},"errorCode":"API_LEVEL"`, "",
				command.Failed, "Android version"},
			{command.StartLostMode, lost, `"startLostModeStatus":{}`, "", command.Succeeded, "in lost mode"},
			{command.StopLostMode, nil, `"stopLostModeStatus":{}`, expired, command.Failed, "expired"},
			{command.ClearAppData, apps, `"clearAppsDataStatus":{}`, expired, command.Failed, "expired"},
			{command.ClearAppData, apps, params + `"clearAppsDataStatus":{}`, "", command.Failed,
				"did not say what became of the data of these apps: com.a, com.b, com.c"},
			{command.ClearAppData, apps, params + `"clearAppsDataStatus":{"results":{"com.a":{"clearingResult":"SUCCESS"}}}`, "",
				command.Failed, "these apps: com.b, com.c; the data of the other apps was deleted"},
		} {
			a := b.asset(b.enroll(provisioning.Disallowed, behaves("HOLD", ""))[0])
			_, err := b.command(a, c.send, c.body)
			b.ok(err)
			b.publish("COMMAND", fmt.Sprintf(`{"name":%q,"done":true,"metadata":{"type":%q,%s}%s}`, b.history(a)[0].Ref,
				c.send.Row().Vendor, c.metadata, c.failed))
			b.pass(time.Second)
			h := b.history(a)[0]
			b.equal(c.metadata+c.failed, h.State, c.state)
			b.says(c.metadata+c.failed, h.Outcome, c.says)
		}
	})
}
