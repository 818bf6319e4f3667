package proposal_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// kept is where the platform keeps a setting, written down apart from the
// catalog: ours=the vendor's for each allowed value, and the members that
// went before it, as JSON documents with what the setting reads as when only
// these are there.
type kept struct {
	path   string
	values string
	former map[string]string
}

const onOff = "ALLOW=false BLOCK=true"

// vendorTable is the platform's policy as the vendor describes it.
func vendorTable() map[string]kept {
	radio, connectivity, security, reports := "deviceRadioState.", "deviceConnectivityManagement.", "advancedSecurityOverrides.",
		"statusReportingSettings."
	return map[string]kept{
		"VENDOR_STORE_MODE":         {"playStoreMode", "BLACKLIST=BLACKLIST WHITELIST=WHITELIST", nil},
		"DEFAULT_PERMISSION_POLICY": {"defaultPermissionPolicy", "DENY=DENY PROMPT=PROMPT", nil},
		"APP_AUTO_UPDATE_POLICY": {"appAutoUpdatePolicy",
			"ALWAYS=ALWAYS CHOICE_TO_THE_USER=CHOICE_TO_THE_USER NEVER=NEVER WIFI=WIFI_ONLY", nil},
		"UNTRUSTED_APPS_POLICY": {security + "untrustedAppsPolicy",
			"ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY=ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY DISALLOW_INSTALL=DISALLOW_INSTALL",
			map[string]string{`{"installUnknownSourcesAllowed":true}`: "NOT_SET"}},
		"VENDOR_PROTECT": {security + "googlePlayProtectVerifyApps", "ENABLED=VERIFY_APPS_ENFORCED USER_CHOICE=VERIFY_APPS_USER_CHOICE",
			map[string]string{`{"ensureVerifyAppsEnabled":true}`: "ENABLED", `{"ensureVerifyAppsEnabled":false}`: "NOT_SET"}},
		"SCREEN_CAPTURE": {"screenCaptureDisabled", onOff, nil},
		"CAMERA": {"cameraAccess", "ALLOW=CAMERA_ACCESS_USER_CHOICE BLOCK=CAMERA_ACCESS_DISABLED",
			map[string]string{`{"cameraDisabled":true}`: "BLOCK", `{"cameraDisabled":false}`: "ALLOW"}},
		"FACTORY_RESET":        {"factoryResetDisabled", onOff, nil},
		"UNINSTALL_APPS":       {"uninstallAppsDisabled", onOff, nil},
		"ACCOUNT_MODIFICATION": {"modifyAccountsDisabled", onOff, nil},
		"ADD_USER":             {"addUserDisabled", onOff, nil},
		"REMOVE_USER":          {"removeUserDisabled", onOff, nil},
		"DEVELOPER_SETTINGS": {security + "developerSettings", "ALLOW=DEVELOPER_SETTINGS_ALLOWED BLOCK=DEVELOPER_SETTINGS_DISABLED",
			map[string]string{`{"debuggingFeaturesAllowed":true}`: "CUSTOM", `{"safeBootDisabled":true}`: "CUSTOM",
				`{"debuggingFeaturesAllowed":false,"safeBootDisabled":true}`: "CUSTOM"}},
		"USB_DATA_ACCESS": {connectivity + "usbDataAccess", "ALLOW=ALLOW_USB_DATA_TRANSFER BLOCK=DISALLOW_USB_DATA_TRANSFER",
			map[string]string{`{"usbFileTransferDisabled":true}`: "CUSTOM", `{"usbMassStorageEnabled":true}`: "NOT_SET"}},
		"LOCATION_MODE": {"locationMode", "DISABLED=LOCATION_DISABLED ENFORCED=LOCATION_ENFORCED USER_CHOICE=LOCATION_USER_CHOICE",
			nil},
		"LOCATION_SHARING":  {"shareLocationDisabled", onOff, nil},
		"OUTGOING_CALLS":    {"outgoingCallsDisabled", onOff, nil},
		"SMS":               {"smsDisabled", onOff, nil},
		"BLUETOOTH":         {"bluetoothDisabled", onOff, map[string]string{`{"bluetoothConfigDisabled":true}`: "CUSTOM"}},
		"DATA_ROAMING":      {"dataRoamingDisabled", onOff, nil},
		"NETWORK_RESET":     {"networkResetDisabled", onOff, nil},
		"VPN_CONFIGURATION": {"vpnConfigDisabled", onOff, nil},
		"CONFIGURE_WIFI": {connectivity + "configureWifi", "ALLOW=ALLOW_CONFIGURING_WIFI BLOCK=DISALLOW_CONFIGURING_WIFI",
			map[string]string{`{"wifiConfigDisabled":true}`: "BLOCK", `{"wifiConfigDisabled":false}`: "NOT_SET"}},
		"WIFI_DIRECT": {connectivity + "wifiDirectSettings", "ALLOW=ALLOW_WIFI_DIRECT BLOCK=DISALLOW_WIFI_DIRECT", nil},
		"TETHERING": {connectivity + "tetheringSettings", "ALLOW=ALLOW_ALL_TETHERING BLOCK=DISALLOW_ALL_TETHERING",
			map[string]string{`{"tetheringConfigDisabled":true}`: "BLOCK", `{"tetheringConfigDisabled":false}`: "NOT_SET"}},
		"WIFI_STATE": {radio + "wifiState", "DISABLED=WIFI_DISABLED ENABLED=WIFI_ENABLED USER_CHOICE=WIFI_STATE_USER_CHOICE",
			nil},
		"AIRPLANE_MODE": {radio + "airplaneModeState", "DISABLED=AIRPLANE_MODE_DISABLED USER_CHOICE=AIRPLANE_MODE_USER_CHOICE",
			nil},
		"MINIMUM_WIFI_SECURITY": {radio + "minimumWifiSecurityLevel",
			"OPEN_NETWORK=OPEN_NETWORK_SECURITY PERSONAL_NETWORK=PERSONAL_NETWORK_SECURITY", nil},
		"AUTO_DATE_TIME": {"autoDateAndTimeZone",
			"ENFORCED=AUTO_DATE_AND_TIME_ZONE_ENFORCED USER_CHOICE=AUTO_DATE_AND_TIME_ZONE_USER_CHOICE",
			map[string]string{`{"autoTimeRequired":true}`: "CUSTOM"}},
		"ENCRYPTION_POLICY": {"encryptionPolicy", "ENABLED_WITHOUT_PASSWORD=ENABLED_WITHOUT_PASSWORD " +
			"ENABLED_WITH_PASSWORD=ENABLED_WITH_PASSWORD UNSPECIFIED=ENCRYPTION_POLICY_UNSPECIFIED", nil},
		"APPLICATION_REPORT_LEVEL": {reports + "applicationReportsEnabled",
			"DISABLED=false INSTALLED_AND_REMOVED_APPS=true INSTALLED_APPS=true",
			map[string]string{`{"statusReportingSettings":{"applicationReportingSettings":{"includeRemovedApps":true}}}`: "NOT_SET",
				`{"statusReportingSettings":{"applicationReportsEnabled":true}}`:                                                                   "INSTALLED_APPS",
				`{"statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":true}}}`:        "INSTALLED_AND_REMOVED_APPS",
				`{"statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false}}}`:       "INSTALLED_APPS",
				`{"statusReportingSettings":{"applicationReportsEnabled":false,"applicationReportingSettings":{"includeRemovedApps":true}}}`:       "DISABLED",
				`{"statusReportingSettings":{"applicationReportsEnabled":"VALUE_OF_NEXT_YEAR"}}`:                                                   "CUSTOM",
				`{"statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":"NEXT_YEAR"}}}`: "CUSTOM"}},
		"REPORT_DEVICE_SETTINGS":   {reports + "deviceSettingsEnabled", "DISABLED=false ENABLED=true", nil},
		"REPORT_DISPLAY_INFO":      {reports + "displayInfoEnabled", "DISABLED=false ENABLED=true", nil},
		"REPORT_HARDWARE_STATUS":   {reports + "hardwareStatusEnabled", "DISABLED=false ENABLED=true", nil},
		"REPORT_MEMORY_INFO":       {reports + "memoryInfoEnabled", "DISABLED=false ENABLED=true", nil},
		"REPORT_NETWORK_INFO":      {reports + "networkInfoEnabled", "DISABLED=false ENABLED=true", nil},
		"REPORT_POWER_EVENTS":      {reports + "powerManagementEventsEnabled", "DISABLED=false ENABLED=true", nil},
		"REPORT_SOFTWARE_INFO":     {reports + "softwareInfoEnabled", "DISABLED=false ENABLED=true", nil},
		"REPORT_SYSTEM_PROPERTIES": {reports + "systemPropertiesEnabled", "DISABLED=false ENABLED=true", nil},
	}
}

// wire is the vendor's value as JSON.
func wire(value string) string {
	if value == "true" || value == "false" {
		return value
	}
	return `"` + value + `"`
}

// document holds one value at a path.
func document(path, value string) string {
	members := strings.Split(path, ".")
	slices.Reverse(members)
	for _, m := range members {
		value = `{"` + m + `":` + value + `}`
	}
	return value
}

// states are documents that hold the setting in every way there is, with what
// it reads as in each.
func (k kept) states() map[string]string {
	all := map[string]string{`{}`: "NOT_SET", document(k.path, "null"): "NOT_SET"}
	enum := false
	for pair := range strings.FieldsSeq(k.values) {
		ours, theirs, _ := strings.Cut(pair, "=")
		enum = enum || wire(theirs) != theirs
		if !strings.HasSuffix(k.path, "applicationReportsEnabled") {
			all[document(k.path, wire(theirs))] = ours
		}
	}
	all[document(k.path, `"VALUE_OF_NEXT_YEAR"`)] = "CUSTOM"
	if enum {
		last := k.path[strings.LastIndexByte(k.path, '.')+1:]
		if unset := document(k.path, `"`+last+`_UNSPECIFIED"`); k.path != "encryptionPolicy" {
			all[unset] = "NOT_SET"
		}
	}
	maps.Copy(all, k.former)
	return all
}

// lookUp returns the JSON at a path of a document.
func lookUp(tb testing.TB, text []byte, path string) string {
	tb.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		tb.Fatal(err)
	}
	for m := range strings.SplitSeq(path, ".") {
		o, _ := value.(map[string]any)
		value = o[m]
	}
	out, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(out)
}

// All settings, all their allowed values, on documents where the setting is
// absent, null, unspecified, at each of its values, kept by members that went
// before it, and at a value of next year: read, propose, apply, read back; what
// the vendor then holds is valid by its own description (the fixture's vendor
// demands that of every push), has the value where the vendor expects it, none
// of the members that it replaced, and all the rest as it was.
func TestPropose_EverySetting(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	table, n := vendorTable(), 0
	for _, s := range policy.Catalog() {
		k, known := table[s.ID]
		if !known || len(strings.Fields(k.values)) != len(s.Allowed) {
			t.Fatalf("%s: vendorTable has %v, the catalog allows %v", s.ID, k, s.Allowed)
		}
		for text, reads := range k.states() {
			n++
			const apps = `"applications":[{"packageName":"com.example.app","installType":"FORCE_INSTALLED"}],"maximumTimeToLock":"60000"`
			text = strings.Replace(strings.TrimSuffix(text, "}")+`,`+apps+`}`, "{,", "{", 1)
			for _, value := range s.Allowed {
				r.passes(s, k, fmt.Sprintf("%s %d %s", s.ID[:min(20, len(s.ID))], n, value[:min(20, len(value))]), text, reads, value)
			}
		}
	}
	if n < 5*len(policy.Catalog()) {
		t.Errorf("only %d documents", n)
	}
}

func (r *fixture) passes(s policy.Setting, k kept, display, text, reads, wanted string) {
	r.Helper()
	p := policy.Policy{ID: resource.NewID(), CompanyID: r.company.ID, CompanySlug: r.company.Slug, Name: display, Type: policy.Platform,
		Version: 1, Document: json.RawMessage(text), CreatedAt: r.clock.Now(), UpdatedAt: r.clock.Now()}
	r.ok(r.db.CreatePolicy(r.Context(), p, operator(), "")) // past the check: it may be from a newer program
	if got := value(r, p.Document, s.ID); got != reads {
		r.Errorf("%s reads %s in %s, want %s", s.ID, got, text, reads)
	}
	made, err := r.service.ProposeChanges(r.Context(), r.key("k"), p.ID, set(s.ID, strings.ToLower(wanted)))
	if reads == wanted {
		r.code(fault.Refused, err) // nothing would change
		return
	}
	r.ok(err)
	if len(made.Fields) != 1 || made.Fields[0] != (proposal.Field{Label: s.Label, Value: wanted, PreviousValue: reads}) {
		r.Errorf("%s to %s of %s lists %+v", s.ID, wanted, text, made.Fields)
	}
	_, err = r.apply(made)
	r.ok(err)
	after := r.policy(p.ID)
	held := []byte(r.vendor.holds(p.ID))
	if got := value(r, after.Document, s.ID); got != wanted || string(held) != string(after.Document) ||
		string(held) != string(made.Next.Document) {
		r.Errorf("%s reads back %s; the vendor holds %s, reviewed %s", s.ID, got, held, made.Next.Document)
	}
	for pair := range strings.FieldsSeq(k.values) {
		if ours, theirs, _ := strings.Cut(pair, "="); ours == wanted {
			if got := lookUp(r, held, k.path); got != wire(theirs) {
				r.Errorf("%s=%s is %s at the vendor's %s", s.ID, wanted, got, k.path)
			}
		}
	}
	for former := range k.former {
		r.gone(s, k, former, held)
	}
	d, err := policy.CompareDocuments(policy.Platform, p.Document, after.Document)
	r.ok(err)
	if len(d.Moves) != 1 || len(d.Others) != 0 {
		r.Errorf("%s=%s on %s moves %+v", s.ID, wanted, text, d)
	}
}

// gone demands that the members of a document that went before the setting are
// not there any more.
func (r *fixture) gone(s policy.Setting, k kept, former string, held []byte) {
	r.Helper()
	if strings.HasPrefix(k.path, "statusReportingSettings") {
		return // its second member goes on to be used
	}
	var members map[string]any
	r.ok(json.Unmarshal([]byte(former), &members))
	for m := range members {
		if got := lookUp(r, held, m); got != "null" {
			r.Errorf("%s was written, and %s is still %s", s.ID, m, got)
		}
	}
}
