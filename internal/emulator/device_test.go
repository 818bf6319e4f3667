package emulator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/emulator"
)

func TestDevices_List(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		token := r.token(&am.EnrollmentToken{PolicyName: r.policy("p", &am.Policy{})})
		names, err := r.emulator.Enroll(t.Context(), emulator.Enrollment{EnrollmentToken: token.Value, Count: 120})
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[int64]int{0: 10, 7: 7, 100: 100, 500: 100} {
			call := r.management.Enterprises.Devices.List(r.enterprise)
			if size > 0 {
				call.PageSize(size)
			}
			page, err := call.Do()
			if err != nil || len(page.Devices) != want || page.NextPageToken == "" {
				t.Errorf("size %d: %d devices, %v", size, len(page.Devices), err)
			}
		}
		// A device that goes between two pages neither repeats nor hides another.
		first, err := r.management.Enterprises.Devices.List(r.enterprise).PageSize(50).Do()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.management.Enterprises.Devices.Delete(names[49]).Do(); err != nil {
			t.Fatal(err)
		}
		var listed []string
		for _, d := range first.Devices {
			listed = append(listed, d.Name)
		}
		for next := first.NextPageToken; next != ""; {
			page, err := r.management.Enterprises.Devices.List(r.enterprise).PageSize(50).PageToken(next).Fields("nextPageToken",
				"devices/name").Do()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range page.Devices {
				if d.Ownership != "" {
					t.Fatal("a partial answer has more than was asked for")
				}
				listed = append(listed, d.Name)
			}
			next = page.NextPageToken
		}
		if !slices.Equal(listed, names) {
			t.Errorf("listed %d of %d devices", len(listed), len(names))
		}
		if code, _ := r.raw("GET", "/v1/"+r.enterprise+"/devices?pageSize=-1", ""); code != 400 {
			t.Errorf("a negative size is %d", code)
		}
	})
}

func TestDevices_Fields(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Model: "TC58"})
		for fields, want := range map[string]string{
			"name":                                `{"name":"` + device + `"}`,
			"hardwareInfo(model,brand),ownership": `{"hardwareInfo":{"brand":"Zebra","model":"TC58"},"ownership":"COMPANY_OWNED"}`,
			"hardwareInfo/model":                  `{"hardwareInfo":{"model":"TC58"}}`,
			"hardwareInfo.model,name":             `{"hardwareInfo":{"model":"TC58"},"name":"` + device + `"}`,
			"*":                                   "",
		} {
			if code, text := r.raw("GET", "/v1/"+device+"?prettyPrint=false&fields="+fields, ""); code != 200 ||
				want != "" && text != want {
				t.Errorf("%s: %d %s", fields, code, text)
			}
		}
		for _, fields := range []string{",", "a(", "a)", "a(b", "a//b", "none", "name,none", "hardwareInfo(model),hardwareInfo/none"} {
			if code, _ := r.raw("GET", "/v1/"+device+"?fields="+fields, ""); code != 400 {
				t.Errorf("%s: %d", fields, code)
			}
		}
	})
}

func TestDevices_Patch(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		other := r.policy("q", &am.Policy{})
		patch := func(d *am.Device, mask string) (*am.Device, error) {
			return r.management.Enterprises.Devices.Patch(device, d).UpdateMask(mask).Do()
		}
		got, err := patch(&am.Device{PolicyName: "q"}, "policyName")
		if err != nil || got.PolicyName != other || got.AppliedPolicyName != r.enterprise+"/policies/p" {
			t.Errorf("patched to %+v, %v", got, err)
		}
		r.wantKinds("")
		time.Sleep(time.Second)
		r.wantKinds("STATUS_REPORT")
		if got := r.get(device); got.AppliedPolicyName != other {
			t.Errorf("applied %s", got.AppliedPolicyName)
		}
		if _, err := patch(&am.Device{State: "DISABLED", DisabledReason: &am.UserFacingMessage{DefaultMessage: "gone"}},
			"state,disabledReason"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if got := r.get(device); got.AppliedState != "DISABLED" || got.PolicyName != other || got.DisabledReason.DefaultMessage != "gone" {
			t.Errorf("disabled %+v", got)
		}
		_, err = patch(&am.Device{State: "LOST"}, "state")
		wantCode(t, err, 400, "ACTIVE or DISABLED")
		_, err = patch(&am.Device{PolicyName: "none"}, "policyName")
		wantCode(t, err, 400, "does not exist")
		_, err = patch(&am.Device{Ownership: "COMPANY_OWNED"}, "ownership")
		wantCode(t, err, 400, "cannot be modified")
		_, err = patch(&am.Device{}, "polcyName")
		wantCode(t, err, 400, "is not a field")
	})
}

// A deleted device is unknown at once; it says its farewell when it hears of it.
func TestDevices_Delete(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{Online: new(false)}})
		_, err := r.management.Enterprises.Devices.Delete(device).WipeReasonMessage(strings.Repeat("x", 201)).Do()
		wantCode(t, err, 400, "200 characters")
		if _, err := r.management.Enterprises.Devices.Delete(device).WipeDataFlags("WIPE_ESIMS", "WIPE_EXTERNAL_STORAGE").Do(); err != nil {
			t.Fatal(err)
		}
		for _, call := range []func() error{
			func() error { _, err := r.management.Enterprises.Devices.Get(device).Do(); return err },
			func() error { _, err := r.management.Enterprises.Devices.Delete(device).Do(); return err },
			func() error {
				_, err := r.management.Enterprises.Devices.IssueCommand(device, &am.Command{Type: "LOCK"}).Do()
				return err
			},
		} {
			wantCode(t, call(), 404, "Requested entity was not found.")
		}
		time.Sleep(time.Hour)
		r.wantKinds("")
		r.set(device, emulator.Behavior{Online: new(true)})
		notes := r.wantKinds("STATUS_REPORT")
		if len(notes) == 1 && !strings.Contains(string(notes[0].data), `"state":"DELETED"`) {
			t.Errorf("notified %s", notes[0].data)
		}
		if len(r.emulator.Devices()) != 0 {
			t.Error("the device is still there")
		}
	})
}

// What a device reports is what its policy asks for, and less on a personal one.
func TestDevices_ReportLevels(t *testing.T) {
	t.Parallel()
	all := func(d *am.Device) map[string]bool {
		return map[string]bool{
			"applicationReportsEnabled": len(d.ApplicationReports) > 0, "deviceSettingsEnabled": d.DeviceSettings != nil,
			"displayInfoEnabled": len(d.Displays) > 0, "hardwareStatusEnabled": len(d.HardwareStatusSamples) > 0,
			"memoryInfoEnabled": d.MemoryInfo != nil && len(d.MemoryEvents) > 0, "networkInfoEnabled": d.NetworkInfo != nil,
			"powerManagementEventsEnabled": len(d.PowerManagementEvents) > 0, "softwareInfoEnabled": d.SoftwareInfo != nil,
			"systemPropertiesEnabled": len(d.SystemProperties) > 0,
		}
	}
	onlyCompany := []string{"displayInfoEnabled", "hardwareStatusEnabled", "powerManagementEventsEnabled"}
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for setting := range all(&am.Device{}) {
			policy := r.enterprise + "/policies/" + setting
			if code, text := r.raw("PATCH", "/v1/"+policy, `{"statusReportingSettings":{"`+setting+`":true}}`); code != 200 {
				t.Fatal(text)
			}
			for _, ownership := range []string{"COMPANY_OWNED", "PERSONALLY_OWNED"} {
				d := r.get(r.enroll(policy, personalUse, emulator.Enrollment{Ownership: ownership}))
				for part, reported := range all(d) {
					want := part == setting && (ownership == "COMPANY_OWNED" || !slices.Contains(onlyCompany, part))
					if reported != want {
						t.Errorf("%s with %s: %s reported: %v", ownership, setting, part, reported)
					}
				}
			}
		}
	})
}

func TestDevices_NonCompliance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy, usage, ownership string
		level                    int
		want                     string
	}{
		{`{"smsDisabled":true,"cameraAccess":"CAMERA_ACCESS_DISABLED"}`, "", "", 34, ""},
		{`{"networkResetDisabled":true}`, "", "", 34, ""},
		{`{"networkResetDisabled":true}`, personalUse, "", 34, "networkResetDisabled MANAGEMENT_MODE"},
		{`{"deviceRadioState":{"wifiState":"WIFI_ENABLED"}}`, "", "", 33, ""},
		{`{"deviceRadioState":{"wifiState":"WIFI_ENABLED"}}`, "", "", 32, "deviceRadioState.wifiState API_LEVEL"},
		{`{"deviceRadioState":{"wifiState":"WIFI_STATE_USER_CHOICE"}}`, "", "", 30, ""},
		{`{"deviceRadioState":{"airplaneModeState":"AIRPLANE_MODE_DISABLED"}}`, "", "", 27, "deviceRadioState.airplaneModeState API_LEVEL"},
		{`{"deviceConnectivityManagement":{"wifiDirectSettings":"DISALLOW_WIFI_DIRECT","usbDataAccess":"DISALLOW_USB_DATA_TRANSFER"}}`, "",
			"", 30,
			"deviceConnectivityManagement.usbDataAccess API_LEVEL deviceConnectivityManagement.wifiDirectSettings API_LEVEL"},
		{`{"deviceConnectivityManagement":{"wifiDirectSettings":"DISALLOW_WIFI_DIRECT"}}`, personalUse, "PERSONALLY_OWNED", 34,
			"deviceConnectivityManagement.wifiDirectSettings MANAGEMENT_MODE"},
		{`{"locationMode":"LOCATION_ENFORCED"}`, "", "", 34, ""},
		{`{"locationMode":"LOCATION_ENFORCED"}`, personalUse, "", 34, "locationMode USER_ACTION"},
		{`{"locationMode":"LOCATION_ENFORCED"}`, personalUse, "", 29, ""},
		{`{"autoDateAndTimeZone":"AUTO_DATE_AND_TIME_ZONE_ENFORCED"}`, personalUse, "PERSONALLY_OWNED", 34,
			"autoDateAndTimeZone MANAGEMENT_MODE"},
	} {
		t.Run(fmt.Sprint(test.policy, test.usage, test.level), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *fixture) {
				r.bind()
				policy := r.enterprise + "/policies/p"
				if code, text := r.raw("PATCH", "/v1/"+policy, test.policy); code != 200 {
					t.Fatal(text)
				}
				d := r.get(r.enroll(policy, test.usage, emulator.Enrollment{Ownership: test.ownership, APILevel: test.level}))
				if got := strings.Join(reasons(d), " "); got != test.want || d.PolicyCompliant != (test.want == "") {
					t.Errorf("complies: %v, %s", d.PolicyCompliant, got)
				}
			})
		})
	}
}

func TestAuth_UnapprovedProject(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		d := r.get(r.enroll(r.policy("p", &am.Policy{FactoryResetDisabled: true}), "", emulator.Enrollment{}))
		if len(d.NonComplianceDetails) != 1 || d.NonComplianceDetails[0].NonComplianceReason != "PROJECT_NOT_PERMITTED" ||
			d.NonComplianceDetails[0].SpecificNonComplianceReason != "PERMISSIBLE_USAGE_RESTRICTION" {
			t.Errorf("complains %+v", d.NonComplianceDetails)
		}
	}, func(o *emulator.Options) { o.Settings.Quirks.UnapprovedProject = true })
}

func TestPolicies_InstallApplications(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		r.policy("p", &am.Policy{
			Applications: []*am.ApplicationPolicy{{PackageName: "com.example.app", InstallType: "BLOCKED"},
				{PackageName: "com.acme", InstallType: "FORCE_INSTALLED"}},
			StatusReportingSettings: &am.StatusReportingSettings{ApplicationReportsEnabled: true},
		})
		time.Sleep(time.Second)
		reports := r.get(device).ApplicationReports
		if len(reports) != 1 || reports[0].PackageName != "com.acme" || reports[0].State != "INSTALLED" {
			t.Errorf("reports %+v", reports)
		}
	})
}

// Devices report daily, as long as they are online.
func TestDevices_PeriodicReport(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		time.Sleep(49 * time.Hour)
		r.wantKinds("STATUS_REPORT STATUS_REPORT")
		r.set(device, emulator.Behavior{Online: new(false)})
		time.Sleep(72 * time.Hour)
		r.wantKinds("")
	})
}

// What the user of a device does.
func TestControl_UserActions(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		id := device[strings.LastIndex(device, "/")+1:]
		act := func(name, action string) (int, string) {
			return r.raw("POST", "/emulator/v1/devices/"+name+"/actions", `{"action":"`+action+`"}`)
		}
		if code, text := act(id, "REMOVE_WORK_PROFILE"); code != 400 || !strings.Contains(text, "no work profile") {
			t.Errorf("%d %s", code, text)
		}
		if code, text := act(id, "EXIT_LOST_MODE"); code != 400 || !strings.Contains(text, "not in lost mode") {
			t.Errorf("%d %s", code, text)
		}
		if code, _ := act(id, "DANCE"); code != 400 {
			t.Errorf("an unknown action is %d", code)
		}
		if code, _ := act("none", "STATUS_REPORT"); code != 404 {
			t.Errorf("an unknown device is %d", code)
		}
		r.wantKinds("")
		r.control("POST", "/devices/"+id+"/actions", `{"action":"STATUS_REPORT"}`)
		r.wantKinds("STATUS_REPORT")
		profile := r.enroll(r.enterprise+"/policies/p", personalUse, emulator.Enrollment{Ownership: "PERSONALLY_OWNED"})
		r.pull()
		r.control("POST", "/devices/"+profile[strings.LastIndex(profile, "/")+1:]+"/actions", `{"action":"REMOVE_WORK_PROFILE"}`)
		r.wantKinds("") // no notification
		_, err := r.management.Enterprises.Devices.Get(profile).Do()
		wantCode(t, err, 404, "")
		r.control("POST", "/devices/"+id+"/actions", `{"action":"FACTORY_RESET","notify":true}`)
		if notes := r.wantKinds("STATUS_REPORT"); len(notes) == 1 {
			var state am.Device
			if json.Unmarshal(notes[0].data, &state) != nil || state.State != "DELETED" || state.AppliedState != "DELETED" {
				t.Errorf("notified %s", notes[0].data)
			}
		}
	})
}

func TestControl_UserRemovalKeepsRecord(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		if err := r.emulator.Act(t.Context(), device, emulator.ActionFactoryReset, false); err != nil {
			t.Fatal(err)
		}
		if d := r.get(device); d.State != "ACTIVE" {
			t.Errorf("state is %s", d.State)
		}
	}, func(o *emulator.Options) { o.Settings.Quirks.UserRemovalKeepsRecord = true })
}

func TestQuirk_EntityNotFoundAs500(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		_, err := r.management.Enterprises.Devices.Get(r.enterprise + "/devices/none").Do()
		wantCode(t, err, 500, "Requested entity was not found.")
	}, func(o *emulator.Options) { o.Settings.Quirks.EntityNotFoundAs500 = true })
}
