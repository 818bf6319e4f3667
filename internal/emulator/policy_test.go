package emulator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/emulator"
)

func TestPolicies_Versions(t *testing.T) {
	t.Parallel()
	for _, bump := range []bool{false, true} {
		t.Run(fmt.Sprint(bump), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *fixture) {
				r.bind()
				want := int64(0)
				for _, step := range []struct {
					policy *am.Policy
					mask   string
					change bool
				}{
					{&am.Policy{ScreenCaptureDisabled: true}, "", true},
					{&am.Policy{ScreenCaptureDisabled: true}, "", false},
					{&am.Policy{ScreenCaptureDisabled: true, CameraDisabled: false, ForceSendFields: []string{"CameraDisabled"}}, "",
						false},
					{&am.Policy{CameraAccess: "CAMERA_ACCESS_DISABLED"}, "", true},
					{&am.Policy{SmsDisabled: true}, "smsDisabled", true},
					{&am.Policy{}, "sms_disabled", true},
					{&am.Policy{}, "smsDisabled", false},
					{&am.Policy{DeviceRadioState: &am.DeviceRadioState{WifiState: "WIFI_ENABLED"}}, "deviceRadioState.wifiState", true},
				} {
					call := r.management.Enterprises.Policies.Patch(r.enterprise+"/policies/p", step.policy)
					if step.mask != "" {
						call.UpdateMask(step.mask)
					}
					got, err := call.Do()
					if err != nil {
						t.Fatal(err)
					}
					if step.change || bump {
						want++
					}
					if got.Version != want {
						t.Errorf("version %d after %+v, want %d", got.Version, step, want)
					}
				}
				got, err := r.management.Enterprises.Policies.Get(r.enterprise + "/policies/p").Do()
				if err != nil || got.CameraAccess != "CAMERA_ACCESS_DISABLED" || got.ScreenCaptureDisabled ||
					got.DeviceRadioState.WifiState != "WIFI_ENABLED" {
					t.Errorf("stored %+v, %v", got, err)
				}
			}, func(o *emulator.Options) { o.Settings.Quirks.NoOpPatchBumpsVersion = bump })
		})
	}
}

func TestPolicies_AnswersAsTheVendorWrites(t *testing.T) {
	t.Parallel()
	for _, echo := range []bool{false, true} {
		t.Run(fmt.Sprint(echo), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *fixture) {
				r.bind()
				code, text := r.raw("PATCH", "/v1/"+r.enterprise+"/policies/p",
					`{"cameraDisabled":false,"smsDisabled":true,"name":"x","version":"9"}`)
				got := map[string]any{}
				if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 {
					t.Fatalf("%d %s", code, text)
				}
				_, echoed := got["cameraDisabled"]
				if got["version"] != "1" || got["name"] != r.enterprise+"/policies/p" || echoed != echo || got["smsDisabled"] != true {
					t.Errorf("answered %s", text)
				}
				if !strings.Contains(text, "\n  \"") {
					t.Errorf("not indented: %s", text)
				}
				if _, text := r.raw("GET", "/v1/"+r.enterprise+"/policies/p?prettyPrint=false", ""); strings.Contains(text, "\n") {
					t.Errorf("indented: %s", text)
				}
			}, func(o *emulator.Options) { o.Settings.Quirks.EchoDefaults = echo })
		})
	}
}

func TestPolicies_Refused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		many := make([]string, 3001)
		for i := range many {
			many[i] = fmt.Sprintf(`{"packageName":"p%d"}`, i)
		}
		for _, test := range []struct{ query, body, want string }{
			{"", `{"x":1}`, `Invalid JSON payload received. Unknown name \"x\" at 'policy': Cannot find field.`},
			{"", `{"cameraAccess":"DISALLOWED"}`,
				`Invalid value at 'policy.camera_access' (type.googleapis.com/google.android.devicemanagement.v1.Policy.CameraAccess), \"DISALLOWED\"`},
			{"", `{"cameraDisabled":"true"}`, `Invalid value at 'policy.camera_disabled' (TYPE_BOOL)`},
			{"", `{"policyEnforcementRules":[{"settingName":"x"}]}`,
				`policyEnforcementRules[0] must have a block action and a wipe action`},
			{"", `{"applications":[{"installType":"BLOCKED"}]}`, `applications[0] must have a package name`},
			{"", `{"applications":[{"packageName":"a"},{"packageName":"a"}]}`, `same package name`},
			{"", `{"applications":[` + strings.Join(many, ",") + `]}`, `at most 3000`},
			{"", `{`, `Invalid JSON payload received.`},
			{"?updateMask=version", `{}`, `cannot be modified`},
			{"?updateMask=cameraAcces", `{}`, `is not a field`},
			{"?mask=x", `{}`, `Cannot bind query parameter`},
		} {
			code, text := r.raw("PATCH", "/v1/"+r.enterprise+"/policies/p"+test.query, test.body)
			if code != 400 || !strings.Contains(text, test.want) || !strings.Contains(text, `"INVALID_ARGUMENT"`) {
				t.Errorf("%s%s: %d %s", test.query, test.body[:min(60, len(test.body))], code, text)
			}
		}
		_, err := r.management.Enterprises.Policies.Get(r.enterprise + "/policies/p").Do()
		wantCode(t, err, 404, "Requested entity was not found.") // nothing of it was stored
	})
}

func TestPolicies_DeleteWhileReferenced(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		policy := r.enterprise + "/policies/p"
		_, err := r.management.Enterprises.Policies.Delete(policy).Do()
		wantCode(t, err, 400, "in use")
		r.complete(device, &am.Command{Type: "LOCK"})
		r.issue(device, &am.Command{Type: "WIPE", WipeParams: &am.WipeParams{}})
		time.Sleep(time.Second)
		if _, err := r.management.Enterprises.Policies.Delete(policy).Do(); err != nil {
			t.Error(err)
		}
		_, err = r.management.Enterprises.Policies.Delete(policy).Do()
		wantCode(t, err, 404, "")
	})
}

func TestPolicies_List(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for i := range 5 {
			r.policy(fmt.Sprint(i), &am.Policy{})
		}
		var listed []string
		for token := ""; ; {
			part, err := r.management.Enterprises.Policies.List(r.enterprise).PageSize(2).PageToken(token).Do()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range part.Policies {
				listed = append(listed, strings.TrimPrefix(p.Name, r.enterprise+"/policies/"))
			}
			if token = part.NextPageToken; token == "" {
				break
			}
		}
		if got := strings.Join(listed, ""); got != "01234" {
			t.Errorf("listed %s", got)
		}
		_, err := r.management.Enterprises.Policies.List(r.enterprise).PageToken("x").Do()
		wantCode(t, err, 400, "page token")
	})
}

// A changed policy reaches its devices, after their latency, and only those that
// act.
func TestPolicies_ReachDevices(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Count: 1})
		held := r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{Behavior: emulator.Behavior{CommandOutcome: "HOLD"}})
		offline := r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{Behavior: emulator.Behavior{Online: new(false)}})
		r.pull()
		r.policy("p", &am.Policy{SmsDisabled: true})
		if got := r.get(device).AppliedPolicyVersion; got != 1 {
			t.Errorf("applied version %d at once", got)
		}
		time.Sleep(time.Second)
		for name, want := range map[string]int64{device: 2, held: 1, offline: 1} {
			if got := r.get(name).AppliedPolicyVersion; got != want {
				t.Errorf("%s applied version %d, want %d", name, got, want)
			}
		}
		notes := r.wantKinds("STATUS_REPORT")
		var reported am.Device
		if err := json.Unmarshal(notes[0].data, &reported); err != nil || reported.Name != device || reported.AppliedPolicyVersion != 2 {
			t.Errorf("notified %s", notes[0].data)
		}
		r.set(held, emulator.Behavior{CommandOutcome: "SUCCESS"})
		r.set(offline, emulator.Behavior{Online: new(true)})
		if r.get(held).AppliedPolicyVersion != 2 || r.get(offline).AppliedPolicyVersion != 2 {
			t.Error("the released devices did not catch up")
		}
		r.wantKinds("STATUS_REPORT STATUS_REPORT")
	})
}
