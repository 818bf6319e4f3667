package discovery_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/discovery"
)

func load(t testing.TB) *discovery.Document {
	t.Helper()
	d, err := discovery.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestValidate(t *testing.T) {
	t.Parallel()
	d := load(t)
	for _, test := range []struct {
		name, schema, document string
		want                   string // the complaint, or nothing
	}{
		{"empty policy", "Policy", `{}`, ""},
		{"no document", "Policy", ``, ""},
		{"settings", "Policy",
			`{"screenCaptureDisabled":true,"cameraAccess":"CAMERA_ACCESS_DISABLED","deviceRadioState":{"wifiState":"WIFI_ENABLED"}}`, ""},
		{"null counts as absent", "Policy", `{"cameraAccess":null}`, ""},
		{"managed configuration is free", "Policy",
			`{"applications":[{"packageName":"a","managedConfiguration":{"x":null,"y":[1,{"z":true}]}}]}`, ""},
		{"map of messages", "UserFacingMessage", `{"defaultMessage":"hello","localizedMessages":{"de":"hallo"}}`, ""},
		{"int64 as text", "Policy", `{"version":"12"}`, ""},
		{"a real operation", "Operation",
			`{"name":"enterprises/LC03k/devices/36c3/operations/1786048723669","done":true,"metadata":{"@type":"type.googleapis.com/google.android.devicemanagement.v1.Command","type":"REBOOT"}}`, ""},
		{"a duration", "Command", `{"type":"LOCK","duration":"315360000s"}`, ""},

		{"unknown name", "Policy", `{"x":1}`, `Invalid JSON payload received. Unknown name "x" at 'policy': Cannot find field.`},
		{"unknown name inside", "Policy", `{"deviceRadioState":{"wifiStat":"WIFI_ENABLED"}}`,
			`Invalid JSON payload received. Unknown name "wifiStat" at 'policy.device_radio_state': Cannot find field.`},
		{"unknown name in a list", "Policy", `{"applications":[{},{"x":1}]}`,
			`Invalid JSON payload received. Unknown name "x" at 'policy.applications[1]': Cannot find field.`},
		{"names are exact", "Policy", `{"CameraAccess":"CAMERA_ACCESS_DISABLED"}`,
			`Invalid JSON payload received. Unknown name "CameraAccess" at 'policy': Cannot find field.`},
		{"bad enum", "Policy", `{"cameraAccess":"DISALLOWED"}`,
			`Invalid value at 'policy.camera_access' (type.googleapis.com/google.android.devicemanagement.v1.Policy.CameraAccess), "DISALLOWED"`},
		{"command that is ours only", "Command", `{"type":"SHUTDOWN"}`,
			`Invalid value at 'command.type' (type.googleapis.com/google.android.devicemanagement.v1.Command.Type), "SHUTDOWN"`},
		{"enum in a list", "Command", `{"resetPasswordFlags":["LOCK"]}`,
			`Invalid value at 'command.reset_password_flags[0]' (type.googleapis.com/google.android.devicemanagement.v1.Command.ResetPasswordFlags), "LOCK"`},
		{"personal usage of others", "EnrollmentToken", `{"allowPersonalUsage":"PERSONAL_USAGE_UNSPECIFIED"}`,
			`Invalid value at 'enrollment_token.allow_personal_usage' (type.googleapis.com/google.android.devicemanagement.v1.EnrollmentToken.AllowPersonalUsage), "PERSONAL_USAGE_UNSPECIFIED"`},
		{"boolean as text", "Policy", `{"cameraDisabled":"true"}`, `Invalid value at 'policy.camera_disabled' (TYPE_BOOL), "true"`},
		{"int64 as number", "Policy", `{"version":12}`, `Invalid value at 'policy.version' (TYPE_INT64), 12`},
		{"fraction", "Policy", `{"minimumApiLevel":1.5}`, `Invalid value at 'policy.minimum_api_level' (TYPE_INT32), 1.5`},
		{"duration without s", "Command", `{"duration":"10m"}`,
			`Invalid value at 'command.duration' (type.googleapis.com/google.protobuf.Duration), Illegal duration format; duration must end with 's'`},
		{"password is not echoed", "Command", `{"newPassword":31337}`,
			`Invalid value at 'command.new_password' (TYPE_STRING), (not shown)`},
		{"list wanted", "Policy", `{"applications":{}}`, `Invalid value at 'policy.applications' (TYPE_LIST), {}`},
		{"null in a list", "ClearAppsDataParams", `{"packageNames":[null]}`,
			`Invalid value at 'clear_apps_data_params.package_names[0]' (TYPE_STRING), null`},
		{"message wanted", "Command", `{"wipeParams":true}`,
			`Invalid value at 'command.wipe_params' (type.googleapis.com/google.android.devicemanagement.v1.WipeParams), true`},
		{"root of a request", "ModifyPolicyApplicationsRequest", `{"x":1}`,
			`Invalid JSON payload received. Unknown name "x": Cannot find field.`},
		{"not an object", "Policy", `[]`, `Invalid JSON payload received. Unknown name "": Root element must be a message.`},
		{"two values", "Policy", `{} {}`, `Invalid JSON payload received. Expected end of input.`},
		{"cut off", "Policy", `{"x`, `Invalid JSON payload received.`},
		{"a name twice", "Policy", `{"cameraAccess":null,"cameraAccess":null}`, `Invalid JSON payload received.`},
		{"not UTF-8", "Policy", "{\"name\":\"\xff\"}", `Invalid JSON payload received.`},
		{"too deep", "Policy", strings.Repeat(`{"x":`, 200) + "1" + strings.Repeat("}", 200), `Message too deep`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := d.Validate(test.schema, []byte(test.document))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && err == nil:
				t.Errorf("accepted, want %q", test.want)
			case test.want != "" && !strings.Contains(err.Error(), test.want):
				t.Errorf("got  %q\nwant %q", err, test.want)
			}
		})
	}
}

func TestValidate_ViolationPlaces(t *testing.T) {
	t.Parallel()
	err := load(t).Validate("Policy", []byte(`{"deviceRadioState":{"wifiState":"ON"},"zzz":1}`))
	var problem *discovery.Error
	if !errors.As(err, &problem) || len(problem.Violations) != 2 {
		t.Fatalf("want two violations, got %v", err)
	}
	if v := problem.Violations[0]; v.Field != "policy.device_radio_state.wifi_state" {
		t.Errorf("first place is %+v", v)
	}
	if v := problem.Violations[1]; v.Field != "policy" || !strings.Contains(v.Description, "zzz") {
		t.Errorf("second place is %+v", v)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	d := load(t)
	for _, test := range []struct{ method, path, want, name string }{
		{"POST", "/v1/enterprises/E/devices/D:issueCommand", "androidmanagement.enterprises.devices.issueCommand",
			"enterprises/E/devices/D"},
		{"GET", "/v1/enterprises/E/devices/D", "androidmanagement.enterprises.devices.get", "enterprises/E/devices/D"},
		{"GET", "/v1/enterprises/E/devices/D/operations", "androidmanagement.enterprises.devices.operations.list",
			"enterprises/E/devices/D/operations"},
		{"POST", "/v1/enterprises/E/devices/D/operations/1:cancel", "androidmanagement.enterprises.devices.operations.cancel",
			"enterprises/E/devices/D/operations/1"},
		{"PATCH", "/v1/enterprises/E/policies/P", "androidmanagement.enterprises.policies.patch", "enterprises/E/policies/P"},
		{"POST", "/v1/signupUrls", "androidmanagement.signupUrls.create", ""},
		{"POST", "/v1/enterprises/E/devices/D", "", ""},
		{"GET", "/v1/enterprises/E/devices/D:issueCommand", "", ""},
		{"GET", "/v1/enterprises/E/devices/D/", "", ""},
		{"GET", "/v2/enterprises", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, values, ok := d.Match(test.method, test.path)
			if ok != (test.want != "") || ok && (m.ID != test.want || values["name"] != test.name) {
				t.Errorf("%s %s: got %v %v", test.method, test.path, m, values)
			}
		})
	}
}

func TestCheckQuery(t *testing.T) {
	t.Parallel()
	d := load(t)
	for _, test := range []struct{ id, query, want string }{
		{"androidmanagement.enterprises.devices.list", "pageSize=100&pageToken=x&alt=json&prettyPrint=false&fields=devices/name", ""},
		{"androidmanagement.enterprises.devices.delete", "wipeDataFlags=WIPE_ESIMS&wipeDataFlags=WIPE_EXTERNAL_STORAGE", ""},
		{"androidmanagement.enterprises.devices.list", "pageSize=ten", `Invalid value at 'page_size' (TYPE_INT32), "ten"`},
		{"androidmanagement.enterprises.devices.list", "size=10", `Unknown name "size": Cannot bind query parameter.`},
		{"androidmanagement.enterprises.devices.list", "parent=enterprises/X", `Unknown name "parent"`},
		{"androidmanagement.enterprises.devices.list", "pageSize=1&pageSize=2", `may be given once`},
		{"androidmanagement.enterprises.devices.delete", "wipeDataFlags=ALL", `Invalid value at 'wipe_data_flags'`},
	} {
		t.Run(test.query, func(t *testing.T) {
			at := slices.IndexFunc(d.Methods(), func(m *discovery.Method) bool { return m.ID == test.id })
			if at < 0 {
				t.Fatalf("no method %s", test.id)
			}
			m := d.Methods()[at]
			query, err := url.ParseQuery(test.query)
			if err != nil {
				t.Fatal(err)
			}
			err = m.CheckQuery(query)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q", test.query, err, test.want)
			}
		})
	}
}

func TestProperty(t *testing.T) {
	t.Parallel()
	d := load(t)
	for _, test := range []struct {
		path, kind, value string
		found             bool
	}{
		{"deviceRadioState.wifiState", "string", "WIFI_ENABLED", true},
		{"screenCaptureDisabled", "boolean", "", true},
		{"applications.installType", "string", "FORCE_INSTALLED", true},
		{"statusReportingSettings.applicationReportingSettings.includeRemovedApps", "boolean", "", true},
		{"deviceRadioState.wifi", "", "", false},
	} {
		t.Run(test.path, func(t *testing.T) {
			p, ok := d.Property("Policy", test.path)
			if ok != test.found || p.Type != test.kind || test.value != "" && !strings.Contains(strings.Join(p.Enum, " "), test.value) {
				t.Errorf("%s: %+v %v", test.path, p, ok)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	d := load(t)
	object, err := d.Decode("Policy",
		[]byte(
			`{"version":"0","cameraDisabled":false,"screenCaptureDisabled":true,"cameraAccess":"CAMERA_ACCESS_UNSPECIFIED","applications":[],"deviceRadioState":{},"statusReportingSettings":{"memoryInfoEnabled":false},"locationMode":"LOCATION_DISABLED"}`))
	if err != nil {
		t.Fatal(err)
	}
	d.Prune("Policy", object)
	for _, member := range []string{"screenCaptureDisabled", "deviceRadioState", "statusReportingSettings", "locationMode"} {
		if object[member] == nil {
			t.Errorf("%s is pruned", member)
		}
	}
	if len(object) != 4 || object["screenCaptureDisabled"] != true {
		t.Errorf("pruned to %v", object)
	}
	if inner := object["statusReportingSettings"].(map[string]any); len(inner) != 0 {
		t.Errorf("kept %v inside", inner)
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0s": 0, "86400s": 24 * time.Hour, "0.5s": 500 * time.Millisecond, "-1.000000001s": -time.Second - 1,
		"315360000s": 87600 * time.Hour, "315576000000s": 1<<63 - 1,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := discovery.ParseDuration(text)
			if err != nil || got != want {
				t.Errorf("%s: got %v, %v", text, got, err)
			}
		})
	}
	for _, text := range []string{"", "1", "1m", "s", "1.0000000001s", "+1s", "1e3s", "315576000001s", "999999999999s"} {
		if _, err := discovery.ParseDuration(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// The README names the revisions that are really there.
func TestRevisions(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(".", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, read := range []func() (*discovery.Document, error){discovery.Load, discovery.LoadMessaging, discovery.LoadPubSub} {
		d, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(readme), "| "+d.Revision+" |") {
			t.Errorf("README.md does not name revision %s of %s", d.Revision, d.Name)
		}
	}
}

func FuzzValidate(f *testing.F) {
	d := load(f)
	for _, seed := range []string{`{}`, `{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`,
		`{"applications":[{"managedConfiguration":{"a":[null]}}]}`, `{"version":"1"}`, `[`, `{"a":1,"a":2}`} {
		f.Add("Policy", []byte(seed))
		f.Add("Command", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema string, document []byte) {
		object, err := d.Decode(schema, document)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		d.Prune(schema, object)
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b)
	}
}

// Every method is found by its own path, and by no other.
func TestMatch_FindsEveryMethod(t *testing.T) {
	t.Parallel()
	for _, read := range []func() (*discovery.Document, error){discovery.Load, discovery.LoadMessaging, discovery.LoadPubSub} {
		d, err := read()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range d.Methods() {
			path := regexp.MustCompile(`\{[A-Za-z]+\}`).ReplaceAllString(m.FlatPath, "id-1.x")
			found, _, ok := d.Match(m.HTTPMethod, "/"+path)
			if !ok || found != m {
				t.Errorf("%s %s finds %v, want %s", m.HTTPMethod, path, found, m.ID)
			}
		}
	}
}

// Every reference in a document leads to a schema of it: no check asks again.
func TestDocuments_ReferencesLeadToSchemas(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"androidmanagement", "fcm", "pubsub"} {
		text, err := os.ReadFile(name + "-api.json")
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ Schemas map[string]any }
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		references := regexp.MustCompile(`"\$ref": "([^"]+)"`).FindAllStringSubmatch(string(text), -1)
		if len(references) == 0 {
			t.Errorf("%s has no references", name)
		}
		for _, reference := range references {
			if document.Schemas[reference[1]] == nil {
				t.Errorf("%s refers to the unknown schema %s", name, reference[1])
			}
		}
	}
}
