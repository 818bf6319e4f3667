package policy_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/policy"
	"pgregory.net/rapid"
)

// schema checks documents against the vendor's published schema.
type schema struct{ document *discovery.Document }

func (s schema) CheckDocument(document json.RawMessage) error {
	return s.document.Validate("Policy", document)
}

func vendor(t testing.TB) schema {
	t.Helper()
	d, err := discovery.Load()
	if err != nil {
		t.Fatal(err)
	}
	return schema{d}
}

// The catalog is the table of contract 2.8, row by row.
func TestCatalog_MatchesContract(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") && (strings.HasSuffix(line, "| yes |\n") || strings.HasSuffix(line, "| no |\n")) {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	all := policy.Catalog()
	if len(rows) != len(all) {
		t.Fatalf("the catalog has %d settings, docs/contract.md section 2.8 has %d rows", len(all), len(rows))
	}
	for i, s := range all {
		high := "no"
		if s.HighImpact {
			high = "yes"
		}
		got := "| `" + strings.Join([]string{s.ID + "`", s.Label, s.Group, strings.Join(s.Allowed, ", "), high}, " | ") + " |"
		if got != rows[i] {
			t.Errorf("row %d\n got %s\nwant %s", i, got, rows[i])
		}
	}
}

func read(t testing.TB, kind policy.Type, document, setting string) string {
	t.Helper()
	values, err := policy.View(kind, json.RawMessage(document))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(values, func(v policy.Value) bool { return v.ID == setting })
	return values[i].Value
}

// Every setting, every allowed value, on documents that are empty, full of
// former members, or hold values newer than this program: the value reads
// back, the former members are gone, and the vendor knows the result.
func TestSettings_EveryAllowedValueReadsBack(t *testing.T) {
	t.Parallel()
	v := vendor(t)
	former := `{"cameraDisabled":true,"autoTimeRequired":true,"bluetoothConfigDisabled":true,"debuggingFeaturesAllowed":true,
		"safeBootDisabled":true,"usbFileTransferDisabled":true,"usbMassStorageEnabled":true,"wifiConfigDisabled":true,
		"tetheringConfigDisabled":true,"ensureVerifyAppsEnabled":true,"installUnknownSourcesAllowed":true,
		"statusReportingSettings":{"applicationReportingSettings":{"includeRemovedApps":true}},"applications":[{"packageName":"com.example.app"}]}`
	for _, s := range policy.Catalog() {
		for _, value := range s.Allowed {
			for name, document := range map[string]string{"empty": `{}`, "former": former, "newer": newer(t, s.ID)} {
				if name == "newer" && read(t, policy.Platform, document, s.ID) != policy.Custom {
					t.Errorf("%s does not read as CUSTOM in %s", s.ID, document)
				}
				was := read(t, policy.Platform, document, s.ID)
				got, moves, err := policy.Apply(policy.Platform, json.RawMessage(document), []policy.Change{{Setting: s.ID, Value: value}})
				if err != nil {
					t.Fatal(err)
				}
				if now := read(t, policy.Platform, string(got), s.ID); now != value {
					t.Errorf("%s=%s on %s reads %s", s.ID, value, name, now)
				}
				if (len(moves) == 1) != (was != value) {
					t.Errorf("%s %s -> %s: moves %v", s.ID, was, value, moves)
				}
				if err := v.CheckDocument(got); err != nil {
					t.Errorf("%s=%s on %s: %v", s.ID, value, name, err)
				}
				if name == "former" && !strings.Contains(string(got), `"applications":[{"packageName":"com.example.app"}]`) {
					t.Errorf("%s=%s touched the apps: %s", s.ID, value, got)
				}
			}
		}
		if got := read(t, policy.Platform, `{}`, s.ID); got != policy.NotSet {
			t.Errorf("%s reads %s in an empty document", s.ID, got)
		}
	}
}

// newer returns a document that holds a value of the setting that this program
// has never heard of.
func newer(t testing.TB, setting string) string {
	t.Helper()
	s, _ := policy.Lookup(setting)
	document, _, err := policy.Apply(policy.Platform, json.RawMessage(`{}`), []policy.Change{{Setting: setting, Value: s.Allowed[0]}})
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(document, &o); err != nil {
		t.Fatal(err)
	}
	var replace func(map[string]any)
	replace = func(m map[string]any) {
		for k, v := range m {
			if inner, ok := v.(map[string]any); ok {
				replace(inner)
			} else {
				m[k] = "VALUE_OF_NEXT_YEAR"
			}
		}
	}
	replace(o)
	out, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestSettings_Read(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ setting, document, want string }{
		{"SMS", `{"smsDisabled":true}`, "BLOCK"},
		{"SMS", `{"smsDisabled":false}`, "ALLOW"},
		{"SMS", `{"smsDisabled":null}`, "NOT_SET"},
		{"SMS", `{"smsDisabled":"true"}`, "CUSTOM"},
		{"CAMERA", `{"cameraAccess":"CAMERA_ACCESS_UNSPECIFIED"}`, "NOT_SET"},
		{"CAMERA", `{"cameraAccess":"CAMERA_ACCESS_ENFORCED"}`, "CUSTOM"},
		{"CAMERA", `{"cameraAccess":"CAMERA_ACCESS_SOMETHING"}`, "CUSTOM"},
		{"CAMERA", `{"cameraDisabled":true}`, "BLOCK"},
		{"CAMERA", `{"cameraDisabled":false}`, "ALLOW"},
		{"CAMERA", `{"cameraDisabled":true,"cameraAccess":"CAMERA_ACCESS_UNSPECIFIED"}`, "BLOCK"},
		{"CAMERA", `{"cameraDisabled":true,"cameraAccess":"CAMERA_ACCESS_USER_CHOICE"}`, "ALLOW"},
		{"CAMERA", `{"camera\u0041ccess":"CAMERA_ACCESS_\u0044ISABLED"}`, "BLOCK"},
		{"DEFAULT_PERMISSION_POLICY", `{"defaultPermissionPolicy":"GRANT"}`, "CUSTOM"},
		{"APP_AUTO_UPDATE_POLICY", `{"appAutoUpdatePolicy":"WIFI_ONLY"}`, "WIFI"},
		{"UNTRUSTED_APPS_POLICY", `{"installUnknownSourcesAllowed":true}`, "NOT_SET"},
		{"UNTRUSTED_APPS_POLICY", `{"advancedSecurityOverrides":{"untrustedAppsPolicy":"ALLOW_INSTALL_DEVICE_WIDE"}}`, "CUSTOM"},
		{"UNTRUSTED_APPS_POLICY", `{"advancedSecurityOverrides":null}`, "NOT_SET"},
		{"UNTRUSTED_APPS_POLICY", `{"advancedSecurityOverrides":"x"}`, "CUSTOM"},
		{"VENDOR_PROTECT", `{"ensureVerifyAppsEnabled":true}`, "ENABLED"},
		{"DEVELOPER_SETTINGS", `{"debuggingFeaturesAllowed":true}`, "CUSTOM"},
		{"DEVELOPER_SETTINGS", `{"safeBootDisabled":true}`, "CUSTOM"},
		{"DEVELOPER_SETTINGS", `{"safeBootDisabled":true,"advancedSecurityOverrides":{"developerSettings":"DEVELOPER_SETTINGS_DISABLED"}}`,
			"BLOCK"},
		{"USB_DATA_ACCESS", `{"usbFileTransferDisabled":true}`, "CUSTOM"},
		{"USB_DATA_ACCESS", `{"usbFileTransferDisabled":false,"usbMassStorageEnabled":true}`, "NOT_SET"},
		{"USB_DATA_ACCESS", `{"deviceConnectivityManagement":{"usbDataAccess":"DISALLOW_USB_FILE_TRANSFER"}}`, "CUSTOM"},
		{"USB_DATA_ACCESS", `{"deviceConnectivityManagement":{"usbDataAccess":"DISALLOW_USB_DATA_TRANSFER"}}`, "BLOCK"},
		{"LOCATION_MODE", `{"locationMode":"OFF"}`, "CUSTOM"},
		{"BLUETOOTH", `{"bluetoothConfigDisabled":true}`, "CUSTOM"},
		{"BLUETOOTH", `{"bluetoothConfigDisabled":true,"bluetoothDisabled":true}`, "BLOCK"},
		{"BLUETOOTH", `{"bluetoothConfigDisabled":false}`, "NOT_SET"},
		{"CONFIGURE_WIFI", `{"wifiConfigDisabled":true}`, "BLOCK"},
		{"CONFIGURE_WIFI", `{"wifiConfigDisabled":true,"deviceConnectivityManagement":{"configureWifi":"ALLOW_CONFIGURING_WIFI"}}`,
			"ALLOW"},
		{"CONFIGURE_WIFI", `{"deviceConnectivityManagement":{"configureWifi":"DISALLOW_ADD_WIFI_CONFIG"}}`, "CUSTOM"},
		{"TETHERING", `{"tetheringConfigDisabled":true}`, "BLOCK"},
		{"TETHERING", `{"deviceConnectivityManagement":{"tetheringSettings":"DISALLOW_WIFI_TETHERING"}}`, "CUSTOM"},
		{"MINIMUM_WIFI_SECURITY", `{"deviceRadioState":{"minimumWifiSecurityLevel":"ENTERPRISE_NETWORK_SECURITY"}}`, "CUSTOM"},
		{"AUTO_DATE_TIME", `{"autoTimeRequired":true}`, "CUSTOM"},
		{"AUTO_DATE_TIME", `{"autoTimeRequired":true,"autoDateAndTimeZone":"AUTO_DATE_AND_TIME_ZONE_ENFORCED"}`, "ENFORCED"},
		{"ENCRYPTION_POLICY", `{"encryptionPolicy":"ENCRYPTION_POLICY_UNSPECIFIED"}`, "UNSPECIFIED"},
		{"ENCRYPTION_POLICY", `{"encryptionPolicy":null}`, "NOT_SET"},
		{"APPLICATION_REPORT_LEVEL", `{"statusReportingSettings":{"applicationReportingSettings":{"includeRemovedApps":true}}}`, "NOT_SET"},
		{"APPLICATION_REPORT_LEVEL",
			`{"statusReportingSettings":{"applicationReportsEnabled":false,"applicationReportingSettings":{"includeRemovedApps":true}}}`,
			"DISABLED"},
		{"APPLICATION_REPORT_LEVEL", `{"statusReportingSettings":{"applicationReportsEnabled":true}}`, "INSTALLED_APPS"},
		{"APPLICATION_REPORT_LEVEL",
			`{"statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":true}}}`,
			"INSTALLED_AND_REMOVED_APPS"},
		{"APPLICATION_REPORT_LEVEL", `{"statusReportingSettings":{"applicationReportsEnabled":1}}`, "CUSTOM"},
	} {
		t.Run(test.document, func(t *testing.T) {
			if got := read(t, policy.Platform, test.document, test.setting); got != test.want {
				t.Errorf("%s in %s: got %s, want %s", test.setting, test.document, got, test.want)
			}
		})
	}
}

// Writing touches the setting's own members and not one byte of another.
func TestSettings_WriteLeavesTheRest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ setting, value, document, want string }{
		{"CAMERA", "BLOCK", `{"z":1.10, "cameraDisabled":false,"minimumApiLevel":12345678901234567890,"a":[ 1 ]}`,
			`{"z":1.10,"minimumApiLevel":12345678901234567890,"a":[ 1 ],"cameraAccess":"CAMERA_ACCESS_DISABLED"}`},
		{"CAMERA", "ALLOW", `{ "cameraDisabled" : false }`, `{ "cameraDisabled" : false }`},
		{"WIFI_STATE", "ENABLED", `{"deviceRadioState":{"x":1e2,"wifiState":"WIFI_DISABLED", "y":null}}`,
			`{"deviceRadioState":{"x":1e2,"wifiState":"WIFI_ENABLED","y":null}}`},
		{"APPLICATION_REPORT_LEVEL", "DISABLED",
			`{"statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":true,"n":1}}}`,
			`{"statusReportingSettings":{"applicationReportsEnabled":false,"applicationReportingSettings":{"n":1}}}`},
		{"BLUETOOTH", "ALLOW", `{"bluetoothConfigDisabled":true}`, `{"bluetoothDisabled":false}`},
	} {
		t.Run(test.setting, func(t *testing.T) {
			got, _, err := policy.Apply(policy.Platform, json.RawMessage(test.document),
				[]policy.Change{{Setting: test.setting, Value: test.value}})
			if err != nil || string(got) != test.want {
				t.Errorf("%s=%s\n got %s %v\nwant %s", test.setting, test.value, got, err, test.want)
			}
		})
	}
}

func TestSettings_UnreadableDocuments(t *testing.T) {
	t.Parallel()
	for _, document := range []string{``, `[]`, `null`, `{`, `{} {}`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, "{\"\xff\":1}", `{"a":1}x`} {
		if _, err := policy.View(policy.Platform, json.RawMessage(document)); err == nil {
			t.Errorf("%q was read", document)
		}
		if _, _, err := policy.Apply(policy.Platform, json.RawMessage(document), nil); err == nil {
			t.Errorf("%q was changed", document)
		}
	}
}

func TestSettings_NormalizeChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		changes []policy.Change
		want    string // the field at fault
	}{
		{"case of values", []policy.Change{{"CAMERA", "bLoCk"}, {"SMS", "allow"}}, ""},
		{"unknown", []policy.Change{{"CAMERA", "BLOCK"}, {"MICROPHONE", "BLOCK"}}, "changes[1].setting"},
		{"ids are exact", []policy.Change{{"camera", "BLOCK"}}, "changes[0].setting"},
		{"twice", []policy.Change{{"CAMERA", "BLOCK"}, {"CAMERA", "BLOCK"}}, "changes[1].setting"},
		{"not allowed", []policy.Change{{"CAMERA", "MAYBE"}}, "changes[0].value"},
		{"NOT_SET is no input", []policy.Change{{"CAMERA", "NOT_SET"}}, "changes[0].value"},
		{"CUSTOM is no input", []policy.Change{{"CAMERA", "custom"}}, "changes[0].value"},
		{"spaces", []policy.Change{{"CAMERA", " BLOCK"}}, "changes[0].value"},
		{"exotic letters", []policy.Change{{"CAMERA", "bloc\u212a"}}, "changes[0].value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, faults := policy.NormalChanges(test.changes)
			if test.want == "" {
				if len(faults) > 0 || got[0].Value != "BLOCK" || got[1].Value != "ALLOW" {
					t.Errorf("%s: %v %v", test.name, got, faults)
				}
			} else if len(faults) != 1 || faults[0].Field != test.want {
				t.Errorf("%s: %v", test.name, faults)
			}
		})
	}
}

func TestSettings_AgentDocuments(t *testing.T) {
	t.Parallel()
	document := `{"settings":{"CAMERA":"BLOCK","SMS":"LATER","WIFI_STATE":null}}`
	for setting, want := range map[string]string{"CAMERA": "BLOCK", "SMS": "CUSTOM", "WIFI_STATE": "NOT_SET", "BLUETOOTH": "NOT_SET"} {
		t.Run(setting, func(t *testing.T) {
			if got := read(t, policy.Agent, document, setting); got != want {
				t.Errorf("%s: got %s, want %s", setting, got, want)
			}
		})
	}
	got, _, err := policy.Apply(policy.Agent, json.RawMessage(`{}`), []policy.Change{{"CAMERA", "BLOCK"}})
	if err != nil || string(got) != `{"settings":{"CAMERA":"BLOCK"}}` {
		t.Errorf("got %s %v", got, err)
	}
	for document, good := range map[string]bool{
		`{"settings":{"CAMERA":"BLOCK"}}`: true, `{}`: true, `{"settings":{"CAMERA":"block"}}`: false,
		`{"settings":{"X":"BLOCK"}}`: false, `{"settings":[]}`: false, `{"other":{}}`: false,
	} {
		t.Run(document, func(t *testing.T) {
			if err := policy.CheckDocument(nil, policy.Agent, json.RawMessage(document)); (err == nil) != good {
				t.Errorf("%s: %v", document, err)
			}
		})
	}
}

// someDocument draws a document the vendor could have: settings by their
// values, former members, and members that no setting names.
func someDocument(t *rapid.T) json.RawMessage {
	document := json.RawMessage(rapid.SampledFrom([]string{
		`{}`, `{"applications":[{"packageName":"com.example.app","minimumVersionCode":7}],"maximumTimeToLock":"60000"}`,
		`{"cameraDisabled":true, "bluetoothConfigDisabled":true,"deviceRadioState":{}}`,
		`{"defaultPermissionPolicy":"GRANT","statusReportingSettings":{"applicationReportingSettings":{"includeRemovedApps":true}}}`,
	}).Draw(t, "document"))
	for _, s := range policy.Catalog() {
		if value := rapid.SampledFrom(append([]string{""}, s.Allowed...)).Draw(t, s.ID); value != "" {
			var err error
			document, _, err = policy.Apply(policy.Platform, document, []policy.Change{{s.ID, value}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return document
}

// Reading all settings of a document and writing them back changes nothing.
func TestSettings_ReadWriteIdentity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		document := someDocument(t)
		values, err := policy.View(policy.Platform, document)
		if err != nil {
			t.Fatal(err)
		}
		var changes []policy.Change
		for _, v := range values {
			if v.Value != policy.NotSet && v.Value != policy.Custom {
				changes = append(changes, policy.Change{Setting: v.ID, Value: v.Value})
			}
		}
		got, moves, err := policy.Apply(policy.Platform, document, changes)
		if err != nil || len(moves) != 0 || string(got) != string(document) {
			t.Fatalf("moved %v, error %v\n was %s\n  is %s", moves, err, document, got)
		}
	})
}

// What Compare lists as moves is exactly what leads from one document to the
// other, and applying changes moves these settings and nothing else.
func TestCompare_NamesWhatMoved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		document := someDocument(t)
		var changes []policy.Change
		for _, s := range policy.Catalog() {
			if rapid.Bool().Draw(t, "change "+s.ID) {
				changes = append(changes, policy.Change{Setting: s.ID, Value: rapid.SampledFrom(s.Allowed).Draw(t, "to")})
			}
		}
		next, moves, err := policy.Apply(policy.Platform, document, changes)
		if err != nil {
			t.Fatal(err)
		}
		d, err := policy.CompareDocuments(policy.Platform, document, next)
		if err != nil || len(d.Others) > 0 || len(d.Moves) != len(moves) {
			t.Fatalf("%v %+v, moves %v", err, d, moves)
		}
		for i := range moves {
			if d.Moves[i].Setting.ID != moves[i].Setting.ID || d.Moves[i].From != moves[i].From || d.Moves[i].To != moves[i].To {
				t.Fatalf("%+v is not %+v", d.Moves[i], moves[i])
			}
		}
		back, err := policy.CompareDocuments(policy.Platform, next, document)
		if err != nil || len(back.Moves) != len(moves) || len(back.Others) > 0 {
			t.Fatalf("%v %+v", err, back)
		}
	})
}

func TestCompare_NamesMembersWithoutSetting(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to, want string }{
		{`{"applications":[]}`, `{"applications":[{"packageName":"a"}]}`, "applications"},
		{`{"a":1,"b":{"c":1,"d":2}}`, `{"b":{"d":2,"c":1},"a":1}`, ""},
		{`{"minimumApiLevel":12345678901234567890}`, `{"minimumApiLevel":12345678901234567891}`, "minimumApiLevel"},
		{`{"deviceRadioState":{}}`, `{}`, ""},
		{`{"advancedSecurityOverrides":{"mtePolicy":"MTE_ENFORCED"}}`, `{}`, "advancedSecurityOverrides.mtePolicy"},
		{`{"defaultPermissionPolicy":"GRANT"}`, `{"defaultPermissionPolicy":"NEW"}`, "defaultPermissionPolicy"},
		{`{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`, `{}`, ""},
	} {
		t.Run(test.from, func(t *testing.T) {
			d, err := policy.CompareDocuments(policy.Platform, json.RawMessage(test.from), json.RawMessage(test.to))
			if got := strings.Join(d.Others, " "); err != nil || got != test.want {
				t.Errorf("%s -> %s: got %q, want %q (%v)", test.from, test.to, got, test.want, err)
			}
		})
	}
}

// Whatever comes in, it is refused or read the same way twice.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{}`, `{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`, `{"deviceRadioState":{"wifiState":1}}`,
		`{"a":{"a":{"a":[]}}}`, `{"\u0063ameraDisabled":true}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		values, err := policy.View(policy.Platform, document)
		if err != nil {
			return
		}
		for _, v := range values {
			next, _, err := policy.Apply(policy.Platform, document, []policy.Change{{v.ID, v.AllowedValues[0]}})
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, policy.Platform, string(next), v.ID); got != v.AllowedValues[0] {
				t.Fatalf("%s reads %s in %s", v.ID, got, next)
			}
		}
	})
}
