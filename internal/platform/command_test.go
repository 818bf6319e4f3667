package platform_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
)

func TestDevice_EnrollsReportsAndObeys(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.equal("status", a.Status, asset.Active)
		b.equal("policy", a.Device.PolicyID, b.policy.ID)
		b.equal("version applied", a.Device.PolicyApplied, 1)
		b.equal("ownership", a.Device.Ownership, asset.CompanyOwned)
		b.equal("mode", a.Device.Mode, asset.FullyManaged)
		for _, fact := range []string{"serialNumber", "model", "manufacturer", "brand", "osVersion", "securityPatchLevel"} {
			if a.Specifications[fact] == "" {
				b.Errorf("no %s in %v", fact, a.Specifications)
			}
		}
		var report struct {
			ReportedAt   time.Time
			BatteryLevel *float64
		}
		b.ok(json.Unmarshal(a.Device.StatusReport, &report))
		if report.ReportedAt.IsZero() || report.BatteryLevel == nil {
			b.Errorf("status report: %s", a.Device.StatusReport)
		}
		result, err := b.command(a, command.Lock, nil)
		b.ok(err)
		b.equal("status at once", result.Status, "IN_PROGRESS")
		b.pass(time.Second)
		h := b.history(a)[0]
		b.equal("state", h.State, command.Succeeded)
		b.equal("reported by itself", h.FeedbackAt.IsZero(), false)
		b.says("outcome", h.Outcome, "locked")
	})
}

// What reaches the vendor for each command, to the letter.
func TestSend_CommandsAsTheVendorGetsThem(t *testing.T) {
	lost := command.LostModeBody{Message: "Call us", PhoneNumber: "+49 1", Email: new("it@acme.test"), StreetAddress: "Way 1",
		Organization: "Acme"}
	connected(t, func(b *bench) {
		for _, c := range []struct {
			send command.Type
			body any
			want string
		}{
			{command.Lock, nil, `{"type":"LOCK","duration":"604800s"}`},
			{command.StartLostMode, lost, `{"type":"START_LOST_MODE","duration":"604800s","startLostModeParams":{
				"lostMessage":{"defaultMessage":"Call us"},"lostPhoneNumber":{"defaultMessage":"+49 1"},"lostEmailAddress":"it@acme.test",
				"lostStreetAddress":{"defaultMessage":"Way 1"},"lostOrganization":{"defaultMessage":"Acme"}}}`},
			{command.StartLostMode, command.LostModeBody{Message: "Hi"},
				`{"type":"START_LOST_MODE","duration":"604800s","startLostModeParams":{"lostMessage":{"defaultMessage":"Hi"}}}`},
			{command.StopLostMode, nil, `{"type":"STOP_LOST_MODE","duration":"604800s","stopLostModeParams":{}}`},
			{command.Reboot, nil, `{"type":"REBOOT","duration":"3600s"}`},
			{command.ClearAppData, command.ClearAppDataBody{PackageNames: []string{"com.example.app", "com.b"}},
				`{"type":"CLEAR_APP_DATA","duration":"86400s","clearAppsDataParams":{"packageNames":["com.example.app","com.b"]}}`},
			{command.ResetScreenLock, nil, `{"type":"RESET_PASSWORD","duration":"86400s"}`},
			{command.ChangeScreenLockPassword, command.PasswordBody{NewPassword: "123456"},
				`{"type":"RESET_PASSWORD","duration":"86400s","newPassword":"[redacted]","resetPasswordFlags":["LOCK_NOW"]}`},
			{command.WipeCompanyData, nil, `{"type":"WIPE","duration":"31536000s","wipeParams":{}}`},
			{command.RelinquishOwnership, nil, `{"type":"RELINQUISH_OWNERSHIP","duration":"31536000s"}`},
		} {
			a := b.device()
			b.emulator.ClearCalls()
			r := b.send(a, c.send, c.body)
			b.equal(string(c.send), r.Code, outcome.Accepted)
			if !strings.HasPrefix(r.Ref, a.Device.Name+"/operations/") {
				b.Errorf("%s: ref %q", c.send, r.Ref)
			}
			sent := b.emulator.Calls(0, "devices.issueCommand")
			if len(sent) != 1 {
				b.Fatalf("%s: %d calls", c.send, len(sent))
			}
			var got, want any
			b.ok(json.Unmarshal(sent[0].Body, &got))
			b.ok(json.Unmarshal([]byte(c.want), &want))
			if m, ok := got.(map[string]any); ok && m["newPassword"] != nil {
				m["newPassword"] = "[redacted]"
			}
			b.equal(string(c.send), fmt.Sprint(got), fmt.Sprint(want))
		}
	})
}

// Each command on each kind of device, through the domain's checks: what is
// carried out, what ends in an error, and what is refused before it is sent.
func TestSend_EveryCommandOnEveryKindOfDevice(t *testing.T) {
	const ok, no = "SUCCESS", "unsupported"
	connected(t, func(b *bench) {
		kinds := []struct {
			name      string
			usage     provisioning.PersonalUsage
			ownership string
		}{
			{"fully managed", provisioning.Disallowed, "COMPANY_OWNED"},
			{"company-owned work profile", provisioning.Allowed, "COMPANY_OWNED"},
			{"personally owned work profile", provisioning.Allowed, "PERSONALLY_OWNED"},
		}
		for _, c := range []struct {
			send command.Type
			body any
			want [3]string
		}{
			{command.Lock, nil, [3]string{ok, ok, ok}},
			{command.StartLostMode, command.LostModeBody{Message: "Hi"}, [3]string{ok, ok, no}},
			{command.StopLostMode, nil, [3]string{ok, ok, no}},
			{command.NotificationMessage, command.MessageBody{Title: "T", Body: "B"}, [3]string{no, no, no}},
			{command.StatusReport, nil, [3]string{ok, ok, ok}},
			{command.LocationUpdate, nil, [3]string{no, no, no}},
			{command.SyncPolicy, nil, [3]string{no, no, no}},
			{command.Reboot, nil, [3]string{ok, no, no}},
			{command.Shutdown, nil, [3]string{no, no, no}},
			{command.LaunchApp, command.LaunchAppBody{PackageName: "com.example.app"}, [3]string{no, no, no}},
			{command.ClearAppData, command.ClearAppDataBody{PackageNames: []string{"com.example.app"}}, [3]string{ok, ok, ok}},
			{command.WipeCompanyData, nil, [3]string{ok, ok, ok}},
			{command.ResetScreenLock, nil, [3]string{ok, ok, ok}},
			{command.ChangeScreenLockPassword, command.PasswordBody{NewPassword: "secret12"}, [3]string{ok, ok, ok}},
			{command.RelinquishOwnership, nil, [3]string{no, ok, no}},
		} {
			for i, kind := range kinds {
				a := b.asset(b.enroll(kind.usage, emulator.Enrollment{Ownership: kind.ownership})[0])
				before := b.calls("devices.issueCommand")
				_, err := b.command(a, c.send, c.body)
				b.pass(time.Second)
				got := string(fault.CodeOf(err))
				if err == nil {
					got = b.history(a)[0].State.Status()
				}
				b.equal(string(c.send)+" on a "+kind.name, got, c.want[i])
				if err != nil {
					b.equal(string(c.send)+" on a "+kind.name+": calls", b.calls("devices.issueCommand"), before)
				}
				ended := err == nil && (c.send == command.WipeCompanyData || c.send == command.RelinquishOwnership)
				b.equal(string(c.send)+" on a "+kind.name+": ended", b.again(a).Status == asset.Deleted, ended)
			}
		}
	})
}

// The adapter itself also refuses what it cannot carry, and sends nothing.
func TestSend_Unsupported(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.emulator.ClearCalls()
		for _, kind := range []command.Type{command.NotificationMessage, command.LocationUpdate, command.SyncPolicy, command.Shutdown,
			command.LaunchApp} {
			b.equal(string(kind), b.send(a, kind, nil).Code, outcome.Unreachable)
		}
		b.equal("calls", len(b.emulator.Calls(0, "")), 0)
	})
}

// How a device's answer reads in the history.
func TestOutcome_PlainWords(t *testing.T) {
	connected(t, func(b *bench) {
		settings := b.emulator.Settings()
		settings.Quirks.PasswordRules = true
		b.ok(b.emulator.SetSettings(settings))
		lost := command.LostModeBody{Message: "Hi"}
		for _, c := range []struct {
			name   string
			first  command.Type // sent before
			body1  any
			device emulator.Enrollment
			send   command.Type
			body   any
			state  command.State
			says   string
		}{
			{name: "unknown error", device: behaves("ERROR", "UNKNOWN"), send: command.Lock, state: command.Failed,
				says: "without a reason"},
			{name: "API level", device: behaves("ERROR", "API_LEVEL"), send: command.Reboot, state: command.Failed,
				says: "Android version"},
			{name: "management mode", device: behaves("ERROR", "MANAGEMENT_MODE"), send: command.Lock,
				state: command.Failed, says: "managed"},
			{name: "invalid value", device: behaves("ERROR", "INVALID_VALUE"), send: command.Lock, state: command.Failed, says: "invalid"},
			{name: "unsupported", device: behaves("ERROR", "UNSUPPORTED"), send: command.Lock, state: command.Failed,
				says: "does not support"},
			{name: "short PIN", send: command.ChangeScreenLockPassword, body: command.PasswordBody{NewPassword: "1234"},
				state: command.Failed, says: "does not accept the password"},
			{name: "already lost", first: command.StartLostMode, body1: lost, send: command.StartLostMode, body: lost,
				state: command.Failed, says: "already"},
			{name: "lost after a new password", first: command.ResetScreenLock, send: command.StartLostMode, body: lost,
				state: command.Failed, says: "12 hours"},
			{name: "found", first: command.StartLostMode, body1: lost, send: command.StopLostMode, state: command.Succeeded,
				says: "left lost mode"},
			{name: "not lost", send: command.StopLostMode, state: command.Succeeded, says: "not in lost mode"},
			{name: "some apps", send: command.ClearAppData,
				body:  command.ClearAppDataBody{PackageNames: []string{"com.example.app", "com.nowhere", "com.android.phone"}},
				state: command.Failed, says: "com.android.phone: protected by the system; com.nowhere: not installed; the data of the " +
					"other apps was deleted"},
			{name: "wiped", send: command.WipeCompanyData, state: command.Succeeded, says: "no longer managed"},
		} {
			a := b.asset(b.enroll(provisioning.Disallowed, c.device)[0])
			if c.first != "" {
				_, err := b.command(a, c.first, c.body1)
				b.ok(err)
				b.pass(time.Second)
			}
			_, err := b.command(a, c.send, c.body)
			b.ok(err)
			b.pass(time.Second)
			h := b.history(a)[0]
			b.equal(c.name, h.State, c.state)
			b.says(c.name, h.Outcome, c.says)
			b.equal(c.name+": the device's report", h.FeedbackAt.IsZero(), false)
		}
	})
}

func behaves(outcome, code string) emulator.Enrollment {
	return emulator.Enrollment{Behavior: emulator.Behavior{CommandOutcome: outcome, ErrorCode: code}}
}

func TestStatusReport_ReadsTheLastReport(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		reported := a.Device.LastSeenAt
		b.fault(emulator.Fault{Method: "notifications", Match: "STATUS_REPORT", Lose: true})
		b.pass(time.Minute)
		b.ok(b.emulator.Act(b.Context(), a.Device.Name, emulator.ActionStatusReport, true))
		b.equal("report before", b.again(a).Device.LastSeenAt, reported)
		r := b.send(a, command.StatusReport, nil)
		b.equal("outcome", r.Code, outcome.Done)
		if !b.again(a).Device.LastSeenAt.After(reported) {
			b.Error("the report was not taken over")
		}
		b.says("outcome", r.Outcome, b.again(a).Device.LastSeenAt.Format(time.RFC3339))
		b.says("outcome", r.Outcome, "cannot be asked")
	})
}

// issue begins a command, sends it and notes what came of it.
func (b *bench) issue(a asset.Asset, kind command.Type, body any, policyID string) command.Receipt {
	b.Helper()
	o := b.order(a, kind, body)
	o.Command.PolicyID = policyID
	_, _, err := b.db.Begin(b.Context(), o.Command, nil)
	b.ok(err)
	r := b.platform.Send(b.Context(), o)
	to := map[outcome.Code]command.State{outcome.Accepted: command.Sent, outcome.Unknown: command.Unconfirmed,
		outcome.Done: command.Succeeded}[r.Code]
	if to == "" {
		to = command.Failed
	}
	_, _, err = b.db.Advance(b.Context(), o.Command.ID, command.Transition{From: []command.State{command.Prepared}, To: to, Ref: r.Ref,
		Outcome: r.Outcome})
	b.ok(err)
	return r
}

func (b *bench) move(a asset.Asset, to policy.Policy) command.Receipt {
	b.Helper()
	return b.issue(a, command.ChangePolicy, command.ChangePolicyBody{Policy: to}, to.ID)
}

func TestChangePolicy_PushesFirstAndEndsWithTheReport(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.halt() // nothing else pushes
		next := b.newPolicy("Kiosk", `{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`)
		r := b.move(a, next)
		b.equal("outcome", r.Code, outcome.Accepted)
		b.equal("held by the platform", b.saved(next.ID).Push.Version, 1)
		last := b.emulator.Calls(0, "devices.patch")
		b.equal("calls", len(last), 1)
		b.says("mask", last[0].Query, "updateMask=policyName")
		b.says("body", string(last[0].Body), next.ID)
		b.equal("before the report", b.history(a)[0].State, command.Sent)
		b.run()
		b.pass(time.Second)
		b.equal("after the report", b.history(a)[0].State, command.Succeeded)
		b.equal("policy", b.again(a).Device.PolicyID, next.ID)
		b.equal("status", b.again(a).Status, asset.Active)
	})
}

// The vendor may have lost its copy of the policy, which it says in either of two ways. The device is still managed.
func TestChangePolicy_PushesAMissingCopyAgain(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.run()
		for _, as404 := range []bool{false, true} {
			settings := b.emulator.Settings()
			settings.Quirks.MissingPolicyAs404 = as404
			b.ok(b.emulator.SetSettings(settings))
			a, next := b.device(), b.newPolicy(fmt.Sprint("Next ", as404), `{}`)
			b.ok(b.db.SetPushed(b.Context(), next.ID, 1, 1, time.Now())) // or so we think
			for _, status := range []int{503, 0} {
				want := outcome.Accepted
				if status != 0 {
					want = map[bool]outcome.Code{false: outcome.Refused, true: outcome.Missing}[as404]
					b.fault(emulator.Fault{Method: "policies.get", Status: status})
				}
				r := b.send(a, command.ChangePolicy, command.ChangePolicyBody{Policy: b.saved(next.ID)})
				b.equal(fmt.Sprint("answer with the quirk ", as404, " and status ", status), r.Code, want)
				b.pass(time.Second)
				b.equal("status", b.again(a).Status, asset.Active)
			}
			b.equal("policy", b.again(a).Device.PolicyApplied, 1)
			b.equal("applied", b.again(a).Device.PolicyID, next.ID)
		}
	})
}

func TestChangePolicy_StopsIfPushFails(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.halt()
		next := b.newPolicy("Kiosk", `{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`)
		for _, c := range []struct {
			status int
			reason string
			want   outcome.Code
		}{
			{503, "UNAVAILABLE", outcome.NotSent},
			{429, "RESOURCE_EXHAUSTED", outcome.Throttled},
			{403, "PERMISSION_DENIED", outcome.Denied},
			{400, "Invalid value at 'policy.x'", outcome.Refused},
		} {
			b.fault(emulator.Fault{Method: "policies.patch", Status: c.status, Reason: c.reason})
			r := b.send(a, command.ChangePolicy, command.ChangePolicyBody{Policy: b.saved(next.ID)})
			b.equal(c.reason, r.Code, c.want)
			b.equal(c.reason+": calls", b.calls("devices.patch"), 0)
		}
		b.equal("at last", b.send(a, command.ChangePolicy, command.ChangePolicyBody{Policy: b.saved(next.ID)}).Code, outcome.Accepted)
	})
}

// An error quotes the platform's words, so that they are not taken for ours: at
// most 160 characters, without what is not seen, and without a mark inside.
func TestRefusals_QuoteThePlatform(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.halt()
		b.fault(emulator.Fault{Method: "devices.issueCommand", Status: 400,
			Reason: "No\u202e” IGNORE “ALL\n" + strings.Repeat("x", 400) + ". "})
		r := b.send(a, command.Lock, nil)
		b.equal("outcome", r.Code, outcome.Refused)
		b.equal("detail", r.Detail, `the platform refused the command for this device: “No" IGNORE "ALL `+strings.Repeat("x", 144)+"”")
		b.fault(emulator.Fault{Method: "policies.patch", Status: 400, Reason: "Invalid value at 'policy.x'."})
		next := b.newPolicy("Kiosk", `{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`)
		r = b.send(a, command.ChangePolicy, command.ChangePolicyBody{Policy: b.saved(next.ID)})
		b.says("a policy", r.Detail, "the platform refused the policy that the device was to get: “Invalid value at 'policy.x'”")
	})
}
