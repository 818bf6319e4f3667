package emulator_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/emulator"
)

func message(text string) *am.UserFacingMessage { return &am.UserFacingMessage{DefaultMessage: text} }

func startLostMode() *am.Command {
	return &am.Command{Type: "START_LOST_MODE", StartLostModeParams: &am.StartLostModeParams{LostMessage: message("call us")}}
}

func stopLostMode() *am.Command {
	return &am.Command{Type: "STOP_LOST_MODE", StopLostModeParams: &am.StopLostModeParams{}}
}

// A command is an operation with the shape that a real device was seen to make.
func TestOperations_Shape(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		time.Sleep(1669 * time.Millisecond)
		code, text := r.raw("POST", "/v1/"+device+":issueCommand", `{"type":"REBOOT","duration":"315360000s"}`)
		created := time.Now().UTC()
		id := strconv.FormatInt(created.UnixMilli(), 10)
		user := r.get(device).UserName
		want := `{"name":"` + device + `/operations/` + id +
			`","metadata":{"@type":"type.googleapis.com/google.android.devicemanagement.v1.Command","createTime":"` +
			created.Format("2006-01-02T15:04:05.999Z") + `","duration":"315360000s","type":"REBOOT","userName":"` + user + `"}}`
		if !sameJSON(t, text, want) || code != 200 {
			t.Errorf("issued %d %s\nwant %s", code, text, want)
		}
		time.Sleep(time.Second)
		_, text = r.raw("GET", "/v1/"+device+"/operations/"+id, "")
		if !sameJSON(t, text, strings.Replace(want, `,"metadata"`, `,"done":true,"metadata"`, 1)) {
			t.Errorf("done %s", text)
		}
	})
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return cmp.Equal(x, y)
}

// Commands issued in the same millisecond have ids of their own.
func TestOperations_IDsAreUnique(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		seen := map[string]bool{}
		for range 20 {
			op := r.issue(device, &am.Command{Type: "LOCK"})
			if seen[op.Name] || op.Done {
				t.Errorf("issued %s, done %v", op.Name, op.Done)
			}
			seen[op.Name] = true
			ms, err := strconv.ParseInt(op.Name[strings.LastIndex(op.Name, "/")+1:], 10, 64)
			if got := metadata(t, op).CreateTime; err != nil || got != time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z") {
				t.Errorf("%s was created at %s", op.Name, got)
			}
		}
		list, err := r.management.Enterprises.Devices.Operations.List(device + "/operations").Do()
		if err != nil || len(list.Operations) != 20 {
			t.Errorf("listed %d, %v", len(list.Operations), err)
		}
		time.Sleep(time.Second)
		r.wantKinds(strings.TrimSpace(strings.Repeat("COMMAND ", 20)))
	})
}

// What a command comes to on each kind of device.
func TestCommands_Support(t *testing.T) {
	t.Parallel()
	const full, cope, byo = "", personalUse, "byo"
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		policy := r.policy("p", &am.Policy{})
		for _, test := range []struct {
			command *am.Command
			kind    string
			level   int
			want    string // errorCode, or "" for success
		}{
			{&am.Command{Type: "LOCK"}, full, 23, ""}, {&am.Command{Type: "LOCK"}, byo, 34, ""},
			{&am.Command{Type: "REBOOT"}, full, 24, ""}, {&am.Command{Type: "REBOOT"}, full, 23, "API_LEVEL"},
			{&am.Command{Type: "REBOOT"}, cope, 34, "MANAGEMENT_MODE"}, {&am.Command{Type: "REBOOT"}, byo, 34, ""},
			{startLostMode(), full, 30, ""}, {startLostMode(), full, 29, "API_LEVEL"},
			{startLostMode(), cope, 33, ""}, {startLostMode(), cope, 32, "API_LEVEL"}, {startLostMode(), byo, 34, ""},
			{stopLostMode(), full, 34, ""}, {stopLostMode(), byo, 34, ""},
			{&am.Command{Type: "RELINQUISH_OWNERSHIP"}, full, 34, "MANAGEMENT_MODE"},
			{&am.Command{Type: "RELINQUISH_OWNERSHIP"}, cope, 25, "API_LEVEL"},
			{&am.Command{Type: "RELINQUISH_OWNERSHIP"}, byo, 34, ""},
			{&am.Command{Type: "RESET_PASSWORD", NewPassword: "12345"}, full, 34, "INVALID_VALUE"},
			{&am.Command{Type: "RESET_PASSWORD", NewPassword: "12345"}, full, 33, ""},
			{&am.Command{Type: "RESET_PASSWORD", NewPassword: "123456"}, full, 34, ""},
			{&am.Command{Type: "RESET_PASSWORD", NewPassword: "abcd"}, full, 34, ""},
			{&am.Command{Type: "RESET_PASSWORD"}, full, 34, ""},
		} {
			want := emulator.Enrollment{APILevel: test.level}
			usage := test.kind
			if test.kind == byo {
				usage, want.Ownership = personalUse, "PERSONALLY_OWNED"
			}
			device := r.enroll(policy, usage, want)
			command := *test.command
			op := r.complete(device, &command)
			if got := metadata(t, op).ErrorCode; got != test.want || !op.Done || (op.Error != nil) != (test.want != "") {
				t.Errorf("%s on %q with level %d: %q, %+v", test.command.Type, test.kind, test.level, got, op.Error)
			}
			if d := r.get(device); test.kind == byo && d.AppliedState != "ACTIVE" {
				t.Errorf("%s did something to a personal device: %s", test.command.Type, d.AppliedState)
			}
		}
	}, func(o *emulator.Options) { o.Settings.Quirks.PasswordRules = true })
}

func TestCommands_Refused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		long := strings.Repeat("x", 4097)
		for _, test := range []struct {
			body string
			code int
			want string
		}{
			{`{}`, 400, "Command type must be specified"},
			{`{"type":"COMMAND_TYPE_UNSPECIFIED"}`, 400, "Command type must be specified"},
			{`{"type":"SHUTDOWN"}`, 400, "Invalid value at 'command.type'"},
			{`{"type":"LOCK","x":1}`, 400, `Unknown name \"x\" at 'command'`},
			{`{"type":"LOCK","wipeParams":{}}`, 400, "must not have the parameters of WIPE"},
			{`{"type":"LOCK","duration":"10m"}`, 400, "duration must end with 's'"},
			{`{"type":"LOCK","duration":"0s"}`, 400, "must be positive"},
			{`{"type":"WIPE"}`, 400, "wipeParams"},
			{`{"wipeParams":{"wipeReason":{"defaultMessage":"` + long[:201] + `"}}}`, 400, "200 characters"},
			{`{"type":"CLEAR_APP_DATA"}`, 400, "package name"},
			{`{"clearAppsDataParams":{"packageNames":[]}}`, 400, "package name"},
			{`{"type":"START_LOST_MODE"}`, 400, "startLostModeParams"},
			{`{"startLostModeParams":{"lostOrganization":{"defaultMessage":"Acme"}}}`, 400, "other than the organization"},
			{`{"startLostModeParams":{"lostMessage":{"defaultMessage":"` + long + `"}}}`, 400, "4096 characters"},
			{`{"type":"ADD_ESIM","addEsimParams":{}}`, 501, "ADD_ESIM"},
		} {
			if code, text := r.raw("POST", "/v1/"+device+":issueCommand", test.body); code != test.code ||
				!strings.Contains(text, test.want) {
				t.Errorf("%s: %d %s", test.body[:min(len(test.body), 60)], code, text)
			}
		}
		list, err := r.management.Enterprises.Devices.Operations.List(device + "/operations").Do()
		if err != nil || len(list.Operations) != 0 {
			t.Errorf("refused commands left %d operations, %v", len(list.Operations), err)
		}
	})
}

// The server infers a type from the parameters and ignores what only it sets.
func TestCommands_TypeIsInferred(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		op := r.issue(device, &am.Command{StopLostModeParams: &am.StopLostModeParams{}, ErrorCode: "UNKNOWN",
			CreateTime: "2001-01-01T00:00:00Z", UserName: "me"})
		if m := metadata(t, op); m.Type != "STOP_LOST_MODE" || m.ErrorCode != "" || m.CreateTime == "2001-01-01T00:00:00Z" ||
			m.UserName == "me" {
			t.Errorf("issued %+v", m)
		}
	})
}

func TestCommands_ClearAppData(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		old := r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{APILevel: 27})
		clear := func(device string) map[string]am.PerAppResult {
			op := r.complete(device, &am.Command{Type: "CLEAR_APP_DATA",
				ClearAppsDataParams: &am.ClearAppsDataParams{PackageNames: []string{"com.example.app", "com.none",
					"com.android.settings"}}})
			return metadata(t, op).ClearAppsDataStatus.Results
		}
		got := clear(device)
		if got["com.example.app"].ClearingResult != "SUCCESS" || got["com.none"].ClearingResult != "APP_NOT_FOUND" ||
			got["com.android.settings"].ClearingResult != "APP_PROTECTED" {
			t.Errorf("cleared %+v", got)
		}
		if got := clear(old); got["com.example.app"].ClearingResult != "API_LEVEL" {
			t.Errorf("cleared %+v", got)
		}
	})
}

func TestCommands_LostMode(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{Latitude: new(1.5), Longitude: new(-2.5), Battery: new(42)}})
		start := func() string { return metadata(t, r.complete(device, startLostMode())).StartLostModeStatus.Status }
		stop := func() string { return metadata(t, r.complete(device, stopLostMode())).StopLostModeStatus.Status }
		check := func(got, want, notified string) {
			t.Helper()
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			r.wantKinds(notified)
		}
		check(stop(), "NOT_IN_LOST_MODE", "COMMAND")
		check(start(), "SUCCESS", "COMMAND STATUS_REPORT")
		for quirk, want := range map[bool]string{false: "ACTIVE", true: "LOST"} {
			settings := r.emulator.Settings()
			settings.Quirks.LostInState = quirk
			if err := r.emulator.SetSettings(settings); err != nil {
				t.Fatal(err)
			}
			if d := r.get(device); d.State != want || d.AppliedState != "LOST" {
				t.Errorf("with the quirk %t the states are %s, %s", quirk, d.State, d.AppliedState)
			}
		}
		check(start(), "ALREADY_IN_LOST_MODE", "COMMAND")
		time.Sleep(7*time.Minute + 30*time.Second)
		notes := r.wantKinds("USAGE_LOGS USAGE_LOGS USAGE_LOGS")
		var logs am.BatchUsageLogEvents
		if err := json.Unmarshal(notes[0].data, &logs); err != nil || logs.Device != device ||
			logs.UsageLogEvents[0].LostModeLocationEvent.Location.Latitude != 1.5 ||
			logs.UsageLogEvents[0].LostModeLocationEvent.BatteryLevel != 42 {
			t.Errorf("notified %s", notes[0].data)
		}
		check(stop(), "SUCCESS", "COMMAND STATUS_REPORT")
		time.Sleep(time.Hour)
		r.wantKinds("")
		check(start(), "SUCCESS", "COMMAND STATUS_REPORT")
		if err := r.emulator.Act(t.Context(), device, emulator.ActionReportLocation, true); err != nil {
			t.Error(err)
		}
		if err := r.emulator.Act(t.Context(), device, emulator.ActionExitLostMode, true); err != nil {
			t.Error(err)
		}
		logged := r.wantKinds("USAGE_LOGS USAGE_LOGS STATUS_REPORT")[1]
		if err := json.Unmarshal(logged.data, &logs); err != nil || logs.UsageLogEvents[0].EventType != "STOP_LOST_MODE_USER_ATTEMPT" ||
			logs.UsageLogEvents[0].StopLostModeUserAttemptEvent.Status != "ATTEMPT_SUCCEEDED" {
			t.Errorf("notified %s", logged.data)
		}
		check(start(), "USER_EXIT_LOST_MODE_RECENTLY", "COMMAND")
		time.Sleep(12 * time.Hour)
		check(start(), "SUCCESS", "COMMAND STATUS_REPORT")
	})
}

func TestCommands_PasswordResetDelaysLostMode(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		r.complete(device, &am.Command{Type: "RESET_PASSWORD", NewPassword: "correct horse"})
		if got := metadata(t, r.complete(device, startLostMode())).StartLostModeStatus.Status; got != "RESET_PASSWORD_RECENTLY" {
			t.Errorf("got %s", got)
		}
		time.Sleep(12 * time.Hour)
		if got := metadata(t, r.complete(device, startLostMode())).StartLostModeStatus.Status; got != "SUCCESS" {
			t.Errorf("got %s", got)
		}
	}, func(o *emulator.Options) { o.Settings.Quirks.PasswordRules = true })
}

// Unless asked to, no device refuses a command for its password's sake.
func TestCommands_PasswordsAreNotChanged(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		if got := metadata(t, r.complete(device, &am.Command{Type: "RESET_PASSWORD", NewPassword: "1234"})).ErrorCode; got != "" {
			t.Errorf("the password is %s", got)
		}
		if got := metadata(t, r.complete(device, startLostMode())).StartLostModeStatus.Status; got != "SUCCESS" {
			t.Errorf("lost mode is %s", got)
		}
	})
}

// A policy that demands a password refuses to remove it.
func TestCommands_PasswordDemanded(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		device := r.enroll(r.policy("p", &am.Policy{PasswordPolicies: []*am.PasswordRequirements{{PasswordMinimumLength: 6}}}), "",
			emulator.Enrollment{})
		if got := metadata(t, r.complete(device, &am.Command{Type: "RESET_PASSWORD"})).ErrorCode; got != "INVALID_VALUE" {
			t.Errorf("got %q", got)
		}
	})
}

// A new password appears nowhere, unless a quirk echoes it in the metadata.
func TestCommands_PasswordIsNotKept(t *testing.T) {
	t.Parallel()
	for _, echo := range []bool{false, true} {
		t.Run(fmt.Sprint(echo), func(t *testing.T) {
			t.Parallel()
			const secret = "marker-8f3a"
			virtual(t, func(t *testing.T, r *fixture) {
				device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{Online: new(false)}})
				op := r.issue(device, &am.Command{Type: "RESET_PASSWORD", NewPassword: secret})
				if got := metadata(t, op).NewPassword; (got == secret) != echo {
					t.Errorf("the metadata's password is %q", got)
				}
				for _, body := range []string{`{"type":"RESET_PASSWORD","newpassword":"` + secret + `"}`,
					`{"type":"RESET_PASSWORD","newPassword":["` + secret + `"]}`, `{"newPassword":"` + secret} {
					if code, text := r.raw("POST", "/v1/"+device+":issueCommand", body); code != 400 || strings.Contains(text, secret) {
						t.Errorf("%d %s", code, text)
					}
				}
				calls, err := json.Marshal(r.control("GET", "/calls", ""))
				if err != nil || strings.Contains(string(calls), secret) || !strings.Contains(string(calls), `"newPassword":"[redacted]"`) {
					t.Errorf("the calls tell the password")
				}
			}, func(o *emulator.Options) { o.Settings.Quirks.EchoNewPassword = echo })
		})
	}
}

// A command waits for its device, as long as it lives.
func TestCommands_OfflineDevice(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{Online: new(false)}})
		short := r.issue(device, &am.Command{Type: "LOCK"})
		long := r.issue(device, &am.Command{Type: "REBOOT", Duration: "3600s"})
		time.Sleep(10*time.Minute + time.Second)
		if op := r.operation(short.Name); !op.Done || op.Error == nil || op.Error.Code != 4 {
			t.Errorf("the short one is %+v", op)
		}
		if op := r.operation(long.Name); op.Done {
			t.Errorf("the long one is %+v", op)
		}
		r.wantKinds("COMMAND")
		id := device[strings.LastIndex(device, "/")+1:]
		got := r.control("PATCH", "/devices/"+id, `{"online":true}`)
		if got["online"] != true || got["name"] != device {
			t.Errorf("answered %v", got)
		}
		if op := r.operation(long.Name); !op.Done || op.Error != nil {
			t.Errorf("the long one is %+v", op)
		}
		r.wantKinds("COMMAND STATUS_REPORT")
	})
}

func TestCommands_HeldDevice(t *testing.T) {
	t.Parallel()
	for outcome, code := range map[string]string{"SUCCESS": "", "ERROR": "UNSUPPORTED"} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *fixture) {
				device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{CommandOutcome: "HOLD", ErrorCode: "UNSUPPORTED"}})
				op := r.complete(device, &am.Command{Type: "LOCK", Duration: "86400s"})
				if op.Done {
					t.Fatal("a held command is done")
				}
				r.wantKinds("")
				r.set(device, emulator.Behavior{CommandOutcome: outcome})
				op = r.operation(op.Name)
				if !op.Done || metadata(t, op).ErrorCode != code || (op.Error != nil) != (code != "") {
					t.Errorf("ended as %+v, %+v", op, metadata(t, op))
				}
				r.wantKinds("COMMAND")
			})
		})
	}
}

func TestQuirk_SilentBehaviorChange(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{CommandOutcome: "HOLD"}})
		op := r.complete(device, &am.Command{Type: "LOCK"})
		r.control("PATCH", "/devices/"+device[strings.LastIndex(device, "/")+1:], `{"commandOutcome":"ERROR","notify":false}`)
		r.wantKinds("")
		if got := metadata(t, r.operation(op.Name)).ErrorCode; got != "UNKNOWN" {
			t.Errorf("ended with %q", got)
		}
		if code, _ := r.raw("PATCH", "/emulator/v1/devices/none", `{}`); code != 404 {
			t.Errorf("an unknown device is %d", code)
		}
		if code, _ := r.raw("PATCH", "/emulator/v1/devices/"+device[strings.LastIndex(device, "/")+1:],
			`{"commandOutcome":"?"}`); code != 400 {
			t.Errorf("an unknown outcome is %d", code)
		}
	})
}

func TestOperations_Cancel(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *fixture) {
				device := r.device(emulator.Enrollment{})
				op := r.issue(device, &am.Command{Type: "WIPE", WipeParams: &am.WipeParams{}})
				cancel := func() {
					t.Helper()
					if _, err := r.management.Enterprises.Devices.Operations.Cancel(op.Name).Do(); err != nil {
						t.Fatal(err)
					}
				}
				cancel()
				time.Sleep(time.Second)
				got := r.operation(op.Name)
				if !got.Done || got.Error == nil || got.Error.Code != 1 || metadata(t, got).ErrorCode != "" {
					t.Errorf("canceled to %+v", got)
				}
				r.get(device) // not wiped
				if silent {
					r.wantKinds("")
				} else {
					r.wantKinds("COMMAND")
				}
				done := r.complete(device, &am.Command{Type: "LOCK"})
				op = done
				cancel() // too late, and no error
				if got := r.operation(done.Name); got.Error != nil {
					t.Errorf("a done command was canceled: %+v", got)
				}
			}, func(o *emulator.Options) { o.Settings.Quirks.SilentCancel = silent })
		})
	}
}

func TestQuirk_Expiry(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{Online: new(false)}})
		op := r.issue(device, &am.Command{Type: "LOCK", Duration: "1.5s"})
		time.Sleep(2 * time.Second)
		if got := r.operation(op.Name); !got.Done || got.Error != nil || metadata(t, got).ErrorCode != "UNKNOWN" {
			t.Errorf("expired to %+v", got)
		}
		r.wantKinds("")
	}, func(o *emulator.Options) {
		o.Settings.Quirks.ExpiredWithoutError, o.Settings.Quirks.SilentExpiry = true, true
	})
}

// A wiped or relinquished device is forgotten once it acknowledged, not before.
func TestCommands_DeviceLeaves(t *testing.T) {
	t.Parallel()
	for kind, usage := range map[string]string{"WIPE": "", "RELINQUISH_OWNERSHIP": personalUse} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *fixture) {
				r.bind()
				device := r.enroll(r.policy("p", &am.Policy{}), usage, emulator.Enrollment{Behavior: emulator.Behavior{Online: new(false)}})
				command := &am.Command{Type: kind, Duration: "31536000s"}
				if kind == "WIPE" {
					command.WipeParams = &am.WipeParams{WipeDataFlags: []string{"WIPE_EXTERNAL_STORAGE"}}
				}
				op := r.issue(device, command)
				time.Sleep(24 * time.Hour)
				r.get(device)
				r.pull()
				r.set(device, emulator.Behavior{Online: new(true)})
				notes := r.wantKinds("COMMAND STATUS_REPORT")
				var last am.Device
				if err := json.Unmarshal(notes[1].data, &last); err != nil || last.AppliedState != "DELETED" || last.Name != device {
					t.Errorf("the last report is %s", notes[1].data)
				}
				_, err := r.management.Enterprises.Devices.Get(device).Do()
				wantCode(t, err, 404, "")
				_, err = r.management.Enterprises.Devices.Operations.Get(op.Name).Do()
				wantCode(t, err, 404, "")
			})
		})
	}
}

// A device remembers its last hundred operations; those that wait are never
// dropped.
func TestOperations_OldAreDropped(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		first := r.complete(device, &am.Command{Type: "LOCK"})
		r.set(device, emulator.Behavior{CommandOutcome: "HOLD"})
		held := r.issue(device, &am.Command{Type: "LOCK", Duration: "86400s"})
		for range 110 {
			r.issue(device, &am.Command{Type: "LOCK", Duration: "60s"})
		}
		time.Sleep(2 * time.Minute)
		for range 20 {
			r.issue(device, &am.Command{Type: "LOCK", Duration: "60s"})
		}
		_, err := r.management.Enterprises.Devices.Operations.Get(first.Name).Do()
		wantCode(t, err, 404, "")
		if r.operation(held.Name).Done {
			t.Error("the held command is done")
		}
		list, err := r.management.Enterprises.Devices.Operations.List(device + "/operations").Do()
		if err != nil || len(list.Operations) != 100 {
			t.Errorf("listed %d, %v", len(list.Operations), err)
		}
	})
}
