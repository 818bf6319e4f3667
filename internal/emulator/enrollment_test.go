package emulator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/emulator"
)

func TestTokens_Shape(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		policy := r.policy("p", &am.Policy{})
		made := r.token(&am.EnrollmentToken{PolicyName: "p", Duration: "86400s", AdditionalData: `{"t":"1"}`,
			AllowPersonalUsage: "PERSONAL_USAGE_DISALLOWED"})
		if made.PolicyName != policy || made.Duration != "86400s" || made.AdditionalData == "" ||
			made.ExpirationTimestamp != time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339) {
			t.Errorf("made %+v", made)
		}
		var payload struct {
			Component string            `json:"android.app.extra.PROVISIONING_DEVICE_ADMIN_COMPONENT_NAME"`
			Extras    map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
		}
		if err := json.Unmarshal([]byte(made.QrCode), &payload); err != nil || payload.Component == "" ||
			payload.Extras["com.google.android.apps.work.clouddpc.EXTRA_ENROLLMENT_TOKEN"] != made.Value {
			t.Errorf("QR code is %s", made.QrCode)
		}
		got, err := r.management.Enterprises.EnrollmentTokens.Get(made.Name).Do()
		if err != nil || got.Value != made.Value || got.QrCode != made.QrCode {
			t.Errorf("the partial view is %+v, %v", got, err)
		}
		if got.PolicyName != "" || got.AdditionalData != "" || got.Duration != "" {
			t.Errorf("the partial view holds more: %+v", got)
		}
		list, err := r.management.Enterprises.EnrollmentTokens.List(r.enterprise).Do()
		if err != nil || len(list.EnrollmentTokens) != 1 {
			t.Errorf("listed %+v, %v", list, err)
		}
		if plain := r.token(&am.EnrollmentToken{}); plain.Duration != "3600s" {
			t.Errorf("the default duration is %s", plain.Duration)
		}
	})
}

func TestTokens_Refused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for _, test := range []struct {
			token am.EnrollmentToken
			want  string
		}{
			{am.EnrollmentToken{Duration: "59s"}, "at least 1 minute"},
			{am.EnrollmentToken{Duration: "1h"}, "duration must end with 's'"},
			{am.EnrollmentToken{AdditionalData: strings.Repeat("ä", 1025)}, "1024 characters"},
			{am.EnrollmentToken{PolicyName: "none"}, "does not exist"},
			{am.EnrollmentToken{PolicyName: "enterprises/other/policies/p"}, "must be in the form"},
			{am.EnrollmentToken{AllowPersonalUsage: "PERSONAL_USAGE_UNSPECIFIED"},
				"Invalid value at 'enrollment_token.allow_personal_usage'"},
		} {
			_, err := r.management.Enterprises.EnrollmentTokens.Create(r.enterprise, &test.token).Do()
			wantCode(t, err, 400, test.want)
		}
		settings := r.emulator.Settings()
		settings.Quirks.MissingPolicyAs404 = true
		if err := r.emulator.SetSettings(settings); err != nil {
			t.Fatal(err)
		}
		_, err := r.management.Enterprises.EnrollmentTokens.Create(r.enterprise, &am.EnrollmentToken{PolicyName: "none"}).Do()
		wantCode(t, err, 404, "Requested entity was not found.")
	})
}

// The ownership and mode of a device follow from its token and what is asked.
func TestEnroll_Ownership(t *testing.T) {
	t.Parallel()
	const company, personal, fully, profile = "COMPANY_OWNED", "PERSONALLY_OWNED", "DEVICE_OWNER", "PROFILE_OWNER"
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		policy := r.policy("p", &am.Policy{})
		for _, test := range []struct{ usage, requested, owner, mode string }{
			{"", "", company, fully},
			{"ALLOW_PERSONAL_USAGE_UNSPECIFIED", company, company, fully},
			{"PERSONAL_USAGE_DISALLOWED", "", company, fully},
			{"PERSONAL_USAGE_DISALLOWED_USERLESS", company, company, fully},
			{personalUse, "", company, profile},
			{personalUse, company, company, profile},
			{personalUse, personal, personal, profile},
			{"", personal, "", ""},
			{"ALLOW_PERSONAL_USAGE_UNSPECIFIED", personal, "", ""},
			{"PERSONAL_USAGE_DISALLOWED", personal, "", ""},
			{"PERSONAL_USAGE_DISALLOWED_USERLESS", personal, "", ""},
		} {
			token := r.token(&am.EnrollmentToken{PolicyName: policy, AllowPersonalUsage: test.usage})
			code, text := r.raw("POST", "/emulator/v1/devices", `{"enrollmentToken":"`+token.Value+`","ownership":"`+test.requested+`"}`)
			if test.owner == "" {
				if code != 400 || !strings.Contains(text, "forbids personally owned") {
					t.Errorf("%+v: %d %s", test, code, text)
				}
				continue
			}
			var answer struct{ Devices []struct{ Name string } }
			if err := json.Unmarshal([]byte(text), &answer); err != nil || code != 200 || len(answer.Devices) != 1 {
				t.Fatalf("%+v: %d %s", test, code, text)
			}
			if d := r.get(answer.Devices[0].Name); d.Ownership != test.owner || d.ManagementMode != test.mode {
				t.Errorf("%+v: %s %s", test, d.Ownership, d.ManagementMode)
			}
		}
	})
}

func TestEnroll_Refused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		policy := r.policy("p", &am.Policy{})
		once := r.token(&am.EnrollmentToken{PolicyName: policy, OneTimeOnly: true})
		deleted := r.token(&am.EnrollmentToken{PolicyName: policy})
		if _, err := r.management.Enterprises.EnrollmentTokens.Delete(deleted.Name).Do(); err != nil {
			t.Fatal(err)
		}
		refuse := func(body, want string) {
			t.Helper()
			if code, text := r.raw("POST", "/emulator/v1/devices", body); code != 400 || !strings.Contains(text, want) {
				t.Errorf("%s: %d %s", body, code, text)
			}
		}
		value := `{"enrollmentToken":"` + once.Value + `"`
		refuse(`{"enrollmentToken":"nonsense"}`, "not known")
		refuse(`{"enrollmentToken":"`+deleted.Value+`"}`, "not known")
		refuse(`{}`, "enrollmentToken is missing")
		refuse(`{"token":"x"}`, "unknown field")
		refuse(value+`,"count":2}`, "is for one device")
		refuse(value+`,"count":-1}`, "count must be")
		refuse(value+`,"count":10001}`, "count must be")
		refuse(value+`,"ownership":"MINE"}`, "ownership must be")
		refuse(value+`,"apiLevel":22}`, "apiLevel must be")
		refuse(value+`,"commandOutcome":"MAYBE"}`, "commandOutcome must be")
		refuse(value+`,"latencyMs":-1}`, "latencyMs must be")
		refuse(value+`,"battery":101}`, "battery must be")
		refuse(value+`,"errorCode":"X"}`, "errorCode must be")
		refuse(value+`,"latitude":91}`, "latitude must be")
		refuse(value+`,"longitude":181}`, "longitude must be")
		r.control("POST", "/devices", value+`}`)
		refuse(value+`}`, "which has enrolled")
		short := r.token(&am.EnrollmentToken{PolicyName: policy, Duration: "60s"})
		time.Sleep(time.Minute)
		refuse(`{"enrollmentToken":"`+short.Value+`"}`, "has expired")
		_, err := r.management.Enterprises.EnrollmentTokens.Get(short.Name).Do()
		wantCode(t, err, 404, "")
		_, err = r.management.Enterprises.EnrollmentTokens.Get(once.Name).Do()
		wantCode(t, err, 404, "")
	})
}

// The QR code's text does as well as the token, also with Wi-Fi keys added.
func TestEnroll_QRCode(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		token := r.token(&am.EnrollmentToken{PolicyName: r.policy("p", &am.Policy{})})
		var payload map[string]any
		if err := json.Unmarshal([]byte(token.QrCode), &payload); err != nil {
			t.Fatal(err)
		}
		payload["android.app.extra.PROVISIONING_WIFI_SSID"] = "Store & Forward"
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		names, err := r.emulator.Enroll(t.Context(), emulator.Enrollment{EnrollmentToken: string(text), Count: 3})
		if err != nil || len(names) != 3 {
			t.Fatalf("%v, %v", names, err)
		}
	})
}

func TestEnroll_Notifications(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		r.wantKinds("test")
		token := r.token(&am.EnrollmentToken{PolicyName: r.policy("p", &am.Policy{}), AdditionalData: "mine"})
		r.control("POST", "/devices", `{"enrollmentToken":"`+token.Value+`","model":"TC58","apiLevel":30,"latencyMs":50,"online":false}`)
		notes := r.wantKinds("ENROLLMENT STATUS_REPORT")
		var enrolled, reported am.Device
		if json.Unmarshal(notes[0].data, &enrolled) != nil || json.Unmarshal(notes[1].data, &reported) != nil {
			t.Fatal("not devices")
		}
		if enrolled.State != "PROVISIONING" || enrolled.EnrollmentTokenData != "mine" || enrolled.EnrollmentTokenName != token.Name {
			t.Errorf("enrolled %s", notes[0].data)
		}
		if enrolled.HardwareInfo.Model != "TC58" || enrolled.HardwareInfo.Brand != "Zebra" {
			t.Errorf("enrolled with hardware %+v", enrolled.HardwareInfo)
		}
		if reported.State != "ACTIVE" || reported.AppliedState != "ACTIVE" || reported.AppliedPolicyName != r.enterprise+"/policies/p" ||
			reported.ApiLevel != 30 {
			t.Errorf("reported %s", notes[1].data)
		}
		r.control("POST", "/devices", `{"enrollmentToken":"`+token.Value+`","count":5,"notify":false}`)
		r.wantKinds("")
		if got := len(r.emulator.Devices()); got != 6 {
			t.Errorf("%d devices", got)
		}
	})
}

// A device whose policy does not exist waits for it five minutes, then gives up.
func TestEnroll_WithoutPolicy(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		first := r.enroll("", "", emulator.Enrollment{})
		if d := r.get(first); d.State != "PROVISIONING" || d.PolicyName != r.enterprise+"/policies/default" {
			t.Errorf("device is %+v", d)
		}
		time.Sleep(4 * time.Minute)
		second := r.enroll("", "", emulator.Enrollment{})
		time.Sleep(90 * time.Second)
		_, err := r.management.Enterprises.Devices.Get(first).Do()
		wantCode(t, err, 404, "")
		r.policy("default", &am.Policy{})
		time.Sleep(time.Hour)
		if d := r.get(second); d.State != "ACTIVE" || d.AppliedPolicyVersion != 1 {
			t.Errorf("device is %+v", d)
		}
	})
}

// The same hardware enrolled again is a new device that knows its old name.
func TestEnroll_Again(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		first := r.device(emulator.Enrollment{SerialNumber: "S1"})
		second := r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{SerialNumber: "S1"})
		third := r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{SerialNumber: "S1"})
		d := r.get(third)
		if d.HardwareInfo.SerialNumber != "S1" || strings.Join(d.PreviousDeviceNames, " ") != first+" "+second {
			t.Errorf("previous names are %v", d.PreviousDeviceNames)
		}
		_, err := r.management.Enterprises.Devices.Get(second).Do()
		wantCode(t, err, 404, "")
	})
}

func TestEnroll_PersonalDevicesHideTheSerialNumber(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		policy := r.policy("p", &am.Policy{})
		for _, test := range []struct {
			ownership string
			level     int
			hidden    bool
		}{{"PERSONALLY_OWNED", 34, true}, {"PERSONALLY_OWNED", 30, false}, {"COMPANY_OWNED", 34, false}} {
			h := r.get(r.enroll(policy, personalUse, emulator.Enrollment{Ownership: test.ownership, APILevel: test.level,
				SerialNumber: "S" + test.ownership})).HardwareInfo
			if (h.EnterpriseSpecificId != "") != test.hidden {
				t.Errorf("%+v: enterprise-specific ID %q", test, h.EnterpriseSpecificId)
			}
			serial := "S" + test.ownership
			if test.hidden {
				serial = h.EnterpriseSpecificId
			}
			if h.SerialNumber != serial {
				t.Errorf("%+v: serial number %q, want %q", test, h.SerialNumber, serial)
			}
		}
	})
}
