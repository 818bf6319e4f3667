package emulator

import (
	"slices"

	am "google.golang.org/api/androidmanagement/v1"
)

// schedulePolicy lets a device apply its policy after its latency. The device reports
// if the policy was new to it, or if report is set.
func (e *Emulator) schedulePolicy(d *simulated, report bool) {
	e.after(d.latency(), func() {
		if e.world.byDevice[d.ID] == d && !d.Deleted && d.acts() && (e.applyPolicy(d) || report) {
			e.report(d, &outbox{})
		}
	})
}

// applyPolicy makes a device apply its policy. It reports whether anything was
// new to it.
func (e *Emulator) applyPolicy(d *simulated) bool {
	p := d.owner.Policies[d.PolicyID]
	if p == nil || d.Applied.PolicyID == p.ID && d.Applied.Version == p.Version {
		return false
	}
	d.Applied = applied{PolicyID: p.ID, Version: p.Version, At: e.now(), Reporting: reportingOf(p), Password: wantsPassword(p.Document)}
	d.install(p.Document)
	d.NonCompliance = e.nonCompliance(d, p.Document)
	e.touch()
	return true
}

func wantsPassword(document map[string]any) bool {
	single, _ := document["passwordRequirements"].(map[string]any)
	several, _ := document["passwordPolicies"].([]any)
	return len(single) > 0 || len(several) > 0
}

// install brings the installed packages in line with a policy. Packages that the
// policy does not name stay, in every store mode.
func (d *simulated) install(document map[string]any) {
	applications, _ := document["applications"].([]any)
	for _, application := range applications {
		application, _ := application.(map[string]any)
		name, _ := application["packageName"].(string)
		switch application["installType"] {
		case "FORCE_INSTALLED", "PREINSTALLED", "REQUIRED_FOR_SETUP", "KIOSK":
			if !slices.Contains(d.Packages, name) {
				d.Packages = append(d.Packages, name)
			}
		case "BLOCKED":
			d.Packages = slices.DeleteFunc(d.Packages, func(installed string) bool { return installed == name })
		}
	}
}

// support says on which devices a setting works.
type support struct {
	path    []string
	values  []string // the values meant; none: every value but the default
	modes   []string // where it works; none: everywhere
	api     int      // from which API level
	reason  string   // with which the listed modes still do not comply
	partial []string // the modes of that reason
}

// How devices are managed, as the tables of settings have it.
const (
	fully = "fully managed"
	cope  = "company-owned work profile"
	byo   = "personally owned work profile"
)

func (d *simulated) kind() string {
	switch {
	case d.fullyManaged():
		return fully
	case d.personal():
		return byo
	default:
		return cope
	}
}

// supports is the table of settings that do not work on every device, from the
// vendor's reference.
func supports() []support {
	company := []string{fully, cope}
	connectivity, radio := "deviceConnectivityManagement", "deviceRadioState"
	return []support{
		{path: []string{"factoryResetDisabled"}, modes: company},
		{path: []string{"networkResetDisabled"}, modes: []string{fully}},
		{path: []string{"outgoingCallsDisabled"}, modes: company},
		{path: []string{"smsDisabled"}, modes: company},
		{path: []string{"bluetoothDisabled"}, modes: company},
		{path: []string{"dataRoamingDisabled"}, modes: company},
		{path: []string{"autoDateAndTimeZone"}, values: []string{"AUTO_DATE_AND_TIME_ZONE_ENFORCED"}, modes: company},
		{path: []string{"locationMode"}, values: []string{"LOCATION_ENFORCED", "LOCATION_DISABLED"}, reason: "USER_ACTION",
			partial: []string{cope}},
		{path: []string{connectivity, "usbDataAccess"}, values: []string{"DISALLOW_USB_DATA_TRANSFER"}, modes: company, api: 31},
		{path: []string{connectivity, "usbDataAccess"}, values: []string{"DISALLOW_USB_FILE_TRANSFER"}, modes: company},
		{path: []string{connectivity, "configureWifi"}, values: []string{"DISALLOW_ADD_WIFI_CONFIG"}, modes: company, api: 33},
		{path: []string{connectivity, "configureWifi"}, values: []string{"DISALLOW_CONFIGURING_WIFI"}, modes: company},
		{path: []string{connectivity, "wifiDirectSettings"}, values: []string{"DISALLOW_WIFI_DIRECT"}, modes: company, api: 33},
		{path: []string{connectivity, "tetheringSettings"}, values: []string{"DISALLOW_WIFI_TETHERING"}, modes: company, api: 33},
		{path: []string{connectivity, "tetheringSettings"}, values: []string{"DISALLOW_ALL_TETHERING"}, modes: company},
		{path: []string{radio, "wifiState"}, values: []string{"WIFI_ENABLED", "WIFI_DISABLED"}, modes: company, api: 33},
		{path: []string{radio, "airplaneModeState"}, values: []string{"AIRPLANE_MODE_DISABLED"}, modes: company, api: 28},
		{path: []string{radio, "minimumWifiSecurityLevel"}, values: []string{"PERSONAL_NETWORK_SECURITY", "ENTERPRISE_NETWORK_SECURITY",
			"ENTERPRISE_BIT192_NETWORK_SECURITY"}, modes: company, api: 33},
		{path: []string{"advancedSecurityOverrides", "developerSettings"}, values: []string{"DEVELOPER_SETTINGS_DISABLED"}, modes: company},
	}
}

// nonCompliance reports which settings of a policy a device does not comply with,
// and why.
func (e *Emulator) nonCompliance(d *simulated, document map[string]any) []*am.NonComplianceDetail {
	var details []*am.NonComplianceDetail
	for _, s := range supports() {
		if reason := s.failing(d, valueAt(document, s.path)); reason != "" {
			details = append(details, detail(s.path, reason))
		}
	}
	if e.settings.Quirks.UnapprovedProject && document["factoryResetDisabled"] == true {
		unapproved := detail([]string{"factoryResetDisabled"}, "PROJECT_NOT_PERMITTED")
		unapproved.SpecificNonComplianceReason = "PERMISSIBLE_USAGE_RESTRICTION"
		details = append(details, unapproved)
	}
	return details
}

// failing gives the reason for which a value does not work on a device, if any.
func (s support) failing(d *simulated, value any) string {
	text, isText := value.(string)
	set := value == true || isText && slices.Contains(s.values, text)
	switch kind := d.kind(); {
	case !set:
		return ""
	case len(s.modes) > 0 && !slices.Contains(s.modes, kind):
		return "MANAGEMENT_MODE"
	case d.APILevel < s.api:
		return "API_LEVEL"
	case slices.Contains(s.partial, kind) && d.APILevel >= 30:
		return s.reason
	default:
		return ""
	}
}

func detail(path []string, reason string) *am.NonComplianceDetail {
	found := &am.NonComplianceDetail{SettingName: path[0], NonComplianceReason: reason}
	if len(path) > 1 {
		found.FieldPath = path[0] + "." + path[1]
	}
	return found
}

func valueAt(document map[string]any, path []string) any {
	var value any = document
	for _, name := range path {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}
