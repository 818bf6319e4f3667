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

// A command's status may be in the response; what the metadata says comes first.
func TestOutcome_StatusInTheResponse(t *testing.T) {
	lost := command.LostModeBody{Message: "Hi"}
	apps := command.ClearAppDataBody{PackageNames: []string{"com.a"}}
	connected(t, func(b *bench) {
		for _, c := range []struct {
			send               command.Type
			body               any
			metadata, response string
			state              command.State
			says               string
		}{
			{command.StartLostMode, lost, ``, `StartLostModeStatus","status":"ALREADY_IN_LOST_MODE"`, command.Failed,
				"in lost mode already"},
			{command.StartLostMode, lost, `,"startLostModeStatus":{"status":"SUCCESS"}`,
				`StartLostModeStatus","status":"ALREADY_IN_LOST_MODE"`, command.Succeeded, "in lost mode"},
			{command.StartLostMode, lost, ``, `Unknown","status":"ALREADY_IN_LOST_MODE"`, command.Succeeded, "in lost mode"},
			{command.StopLostMode, nil, ``, `StopLostModeStatus","status":"NOT_IN_LOST_MODE"`, command.Succeeded, "was not in lost mode"},
			{command.ClearAppData, apps, ``, `ClearAppsDataStatus","results":{"com.a":{"clearingResult":"APP_PROTECTED"}}`, command.Failed,
				"protected by the system"},
		} {
			a := b.asset(b.enroll(provisioning.Disallowed, behaves("HOLD", ""))[0])
			_, err := b.command(a, c.send, c.body)
			b.ok(err)
			b.publish("COMMAND", fmt.Sprintf(`{"name":%q,"done":true,"metadata":{"type":%q%s},"response":{"@type":`+
				`"type.googleapis.com/google.android.devicemanagement.v1.%s}}`, b.history(a)[0].Ref, c.send.Row().Vendor, c.metadata,
				c.response))
			b.pass(time.Second)
			h := b.history(a)[0]
			b.equal(c.metadata+c.response, h.State, c.state)
			b.says(c.metadata+c.response, h.Outcome, c.says)
		}
	})
}
