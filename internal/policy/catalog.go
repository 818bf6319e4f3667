package policy

import (
	"strings"

	"github.com/musterhq/muster/internal/slice"
)

// row is a setting together with where a PLATFORM policy's document keeps it.
type row struct {
	id, label, group string
	high             bool
	choices          []choice
	path             []string
	lostBy           []string // the values by which devices lose something for good
	lost             string   // what
	warnings         []warning
	// former are members that did the setting's work before path did. They are
	// read while path is unset, and cleared when path is written.
	former []former
	kind   kind
}

// choice pairs an allowed value with what the document holds for it, as JSON.
type choice struct{ value, json string }

// warning says what a value can do to devices beyond what its setting says: erase
// data, or cut them off. A person may have to approve a change that has one.
type warning struct{ value, text string }

// kind says how a row reads and writes.
type kind int

const (
	_ kind = iota // read and written as it is
	// unspecifiedCounts: the vendor's unspecified value is an allowed value
	// here, and only an absent one is NOT_SET.
	unspecifiedCounts
	// formerWins: a former member is a restriction of its own, which counts
	// unless path says the stricter thing.
	formerWins
	// reportLevel: two booleans make one setting.
	reportLevel
)

// former is a member that path replaced. reads maps its JSON to what the
// setting then reads as; values not named do not count.
type former struct {
	path  []string
	reads []choice
}

func (r *row) setting() Setting {
	return Setting{ID: r.id, Label: r.label, Help: help(r.id), Group: r.group, HighImpact: r.high,
		Allowed: slice.Map(r.choices, func(c choice) string { return c.value })}
}

// at splits a dotted path.
func at(path string) []string { return strings.Split(path, ".") }

// blocked is a setting kept as a boolean "…Disabled".
func blocked(id, label, group string, high bool, path string, was ...former) row {
	return row{id: id, label: label, group: group, high: high, path: at(path), former: was,
		choices: []choice{{"ALLOW", "false"}, {"BLOCK", "true"}}}
}

// reported is a reporting switch.
func reported(id, label, path string) row {
	return row{id: id, label: label, group: "REPORTING", path: at("statusReportingSettings." + path),
		choices: []choice{{"DISABLED", "false"}, {"ENABLED", "true"}}}
}

// enumerated is a setting kept as one of the vendor's enum values. values are
// pairs: ours, the vendor's.
func enumerated(id, label, group string, high bool, path string, values [][2]string, was ...former) row {
	return row{id: id, label: label, group: group, high: high, path: at(path), former: was,
		choices: slice.Map(values, func(v [2]string) choice { return choice{v[0], `"` + v[1] + `"`} })}
}

// was describes a former member by pairs: its JSON, what the setting reads as.
func was(path string, reads ...[2]string) former {
	return former{path: at(path), reads: slice.Map(reads, func(r [2]string) choice { return choice{value: r[1], json: r[0]} })}
}

// as changes how a row reads and writes.
func (r row) as(k kind) row { r.kind = k; return r }

// losing notes what devices lose for good when the setting gets a value.
func (r row) losing(what string, values ...string) row { r.lostBy, r.lost = values, what; return r }

// warning declares what a value can do.
func (r row) warning(value, text string) row {
	r.warnings = append(r.warnings, warning{value, text})
	return r
}

const (
	uninstalls     = "Devices uninstall every app that the policy does not list, with its data."
	leavesNetworks = "Devices leave Wi-Fi networks without a password; one without another network cannot be reached."
)

// catalog is contract 2.8, in its order.
var catalog = [...]row{ //nolint:gochecknoglobals // a table that is never written to
	enumerated("VENDOR_STORE_MODE", "Store mode", "APPS", false, "playStoreMode",
		[][2]string{{"BLACKLIST", "BLACKLIST"}, {"WHITELIST", "WHITELIST"}}).
		losing("Apps that devices uninstall, with their data.", "WHITELIST", NotSet). // the platform takes NotSet as WHITELIST
		warning("WHITELIST", uninstalls).warning(NotSet, uninstalls),
	enumerated("DEFAULT_PERMISSION_POLICY", "Default runtime permission policy", "APPS", false, "defaultPermissionPolicy",
		[][2]string{{"DENY", "DENY"}, {"PROMPT", "PROMPT"}}),
	enumerated("APP_AUTO_UPDATE_POLICY", "App auto-update policy", "APPS", false, "appAutoUpdatePolicy",
		[][2]string{{"ALWAYS", "ALWAYS"}, {"CHOICE_TO_THE_USER", "CHOICE_TO_THE_USER"}, {"NEVER", "NEVER"}, {"WIFI", "WIFI_ONLY"}}),
	enumerated("UNTRUSTED_APPS_POLICY", "Apps from unknown sources", "SECURITY", true, "advancedSecurityOverrides.untrustedAppsPolicy",
		[][2]string{{"ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY", "ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY"},
			{"DISALLOW_INSTALL", "DISALLOW_INSTALL"}},
		was("installUnknownSourcesAllowed")),
	enumerated("VENDOR_PROTECT", "Protect app verification", "SECURITY", true, "advancedSecurityOverrides.googlePlayProtectVerifyApps",
		[][2]string{{"ENABLED", "VERIFY_APPS_ENFORCED"}, {"USER_CHOICE", "VERIFY_APPS_USER_CHOICE"}},
		was("ensureVerifyAppsEnabled", [2]string{"true", "ENABLED"})),
	blocked("SCREEN_CAPTURE", "Screen capture", "RESTRICTIONS", false, "screenCaptureDisabled"),
	enumerated("CAMERA", "Camera", "RESTRICTIONS", false, "cameraAccess",
		[][2]string{{"ALLOW", "CAMERA_ACCESS_USER_CHOICE"}, {"BLOCK", "CAMERA_ACCESS_DISABLED"}},
		was("cameraDisabled", [2]string{"true", "BLOCK"}, [2]string{"false", "ALLOW"})),
	blocked("FACTORY_RESET", "Factory reset from Settings", "RESTRICTIONS", true, "factoryResetDisabled"),
	blocked("UNINSTALL_APPS", "Uninstalling apps", "RESTRICTIONS", false, "uninstallAppsDisabled"),
	blocked("ACCOUNT_MODIFICATION", "Adding or removing accounts", "RESTRICTIONS", false, "modifyAccountsDisabled"),
	blocked("ADD_USER", "Adding users", "RESTRICTIONS", false, "addUserDisabled"),
	blocked("REMOVE_USER", "Removing users", "RESTRICTIONS", false, "removeUserDisabled"),
	enumerated("DEVELOPER_SETTINGS", "Developer options and USB debugging", "SECURITY", true, "advancedSecurityOverrides.developerSettings",
		[][2]string{{"ALLOW", "DEVELOPER_SETTINGS_ALLOWED"}, {"BLOCK", "DEVELOPER_SETTINGS_DISABLED"}},
		was("debuggingFeaturesAllowed", [2]string{"true", Custom}, [2]string{"false", Custom}),
		was("safeBootDisabled", [2]string{"true", Custom}, [2]string{"false", Custom})),
	enumerated("USB_DATA_ACCESS", "USB data transfer", "CONNECTIVITY", true, "deviceConnectivityManagement.usbDataAccess",
		[][2]string{{"ALLOW", "ALLOW_USB_DATA_TRANSFER"}, {"BLOCK", "DISALLOW_USB_DATA_TRANSFER"}},
		was("usbFileTransferDisabled", [2]string{"true", Custom}), was("usbMassStorageEnabled")),
	enumerated("LOCATION_MODE", "Location", "LOCATION", false, "locationMode",
		[][2]string{{"DISABLED", "LOCATION_DISABLED"}, {"ENFORCED", "LOCATION_ENFORCED"}, {"USER_CHOICE", "LOCATION_USER_CHOICE"}}),
	blocked("LOCATION_SHARING", "Sharing location", "LOCATION", false, "shareLocationDisabled"),
	blocked("OUTGOING_CALLS", "Outgoing calls", "RESTRICTIONS", false, "outgoingCallsDisabled"),
	blocked("SMS", "SMS", "RESTRICTIONS", false, "smsDisabled"),
	blocked("BLUETOOTH", "Bluetooth", "CONNECTIVITY", false, "bluetoothDisabled",
		was("bluetoothConfigDisabled", [2]string{"true", Custom})).as(formerWins),
	blocked("DATA_ROAMING", "Data roaming", "CONNECTIVITY", false, "dataRoamingDisabled").
		warning("BLOCK", "Devices abroad without Wi-Fi cannot be reached."),
	blocked("NETWORK_RESET", "Network settings reset", "CONNECTIVITY", false, "networkResetDisabled"),
	blocked("VPN_CONFIGURATION", "Configuring VPNs", "CONNECTIVITY", false, "vpnConfigDisabled"),
	enumerated("CONFIGURE_WIFI", "Configuring Wi-Fi networks", "CONNECTIVITY", false, "deviceConnectivityManagement.configureWifi",
		[][2]string{{"ALLOW", "ALLOW_CONFIGURING_WIFI"}, {"BLOCK", "DISALLOW_CONFIGURING_WIFI"}},
		was("wifiConfigDisabled", [2]string{"true", "BLOCK"})).
		losing("Wi-Fi networks that devices forget; a device without another network cannot be reached.", "BLOCK").
		warning("BLOCK", "Devices forget Wi-Fi networks that the policy does not configure; one without another network cannot "+
			"be reached."),
	enumerated("WIFI_DIRECT", "Wi-Fi Direct", "CONNECTIVITY", false, "deviceConnectivityManagement.wifiDirectSettings",
		[][2]string{{"ALLOW", "ALLOW_WIFI_DIRECT"}, {"BLOCK", "DISALLOW_WIFI_DIRECT"}}),
	enumerated("TETHERING", "Tethering and hotspot", "CONNECTIVITY", false, "deviceConnectivityManagement.tetheringSettings",
		[][2]string{{"ALLOW", "ALLOW_ALL_TETHERING"}, {"BLOCK", "DISALLOW_ALL_TETHERING"}},
		was("tetheringConfigDisabled", [2]string{"true", "BLOCK"})),
	enumerated("WIFI_STATE", "Wi-Fi on or off", "CONNECTIVITY", false, "deviceRadioState.wifiState",
		[][2]string{{"DISABLED", "WIFI_DISABLED"}, {"ENABLED", "WIFI_ENABLED"}, {"USER_CHOICE", "WIFI_STATE_USER_CHOICE"}}).
		warning("DISABLED", "Devices turn Wi-Fi off; one without a mobile network cannot be reached."),
	enumerated("AIRPLANE_MODE", "Airplane mode", "CONNECTIVITY", false, "deviceRadioState.airplaneModeState",
		[][2]string{{"DISABLED", "AIRPLANE_MODE_DISABLED"}, {"USER_CHOICE", "AIRPLANE_MODE_USER_CHOICE"}}),
	enumerated("MINIMUM_WIFI_SECURITY", "Minimum Wi-Fi security", "CONNECTIVITY", false, "deviceRadioState.minimumWifiSecurityLevel",
		[][2]string{{"OPEN_NETWORK", "OPEN_NETWORK_SECURITY"}, {"PERSONAL_NETWORK", "PERSONAL_NETWORK_SECURITY"}}).
		warning("PERSONAL_NETWORK", leavesNetworks).warning(Custom, leavesNetworks), // custom are the stricter ones
	enumerated("AUTO_DATE_TIME", "Automatic date, time and time zone", "RESTRICTIONS", false, "autoDateAndTimeZone",
		[][2]string{{"ENFORCED", "AUTO_DATE_AND_TIME_ZONE_ENFORCED"}, {"USER_CHOICE", "AUTO_DATE_AND_TIME_ZONE_USER_CHOICE"}},
		was("autoTimeRequired", [2]string{"true", Custom})),
	enumerated("ENCRYPTION_POLICY", "Storage encryption", "SECURITY", true, "encryptionPolicy",
		[][2]string{{"ENABLED_WITHOUT_PASSWORD", "ENABLED_WITHOUT_PASSWORD"}, {"ENABLED_WITH_PASSWORD", "ENABLED_WITH_PASSWORD"},
			{"UNSPECIFIED", "ENCRYPTION_POLICY_UNSPECIFIED"}}).as(unspecifiedCounts),
	row{id: ApplicationReportLevel, label: "Installed apps reporting", group: "REPORTING",
		choices: []choice{{value: "DISABLED"}, {value: "INSTALLED_AND_REMOVED_APPS"}, {value: "INSTALLED_APPS"}},
		path:    at("statusReportingSettings.applicationReportsEnabled"),
		former:  []former{was("statusReportingSettings.applicationReportingSettings.includeRemovedApps")}}.as(reportLevel),
	reported("REPORT_DEVICE_SETTINGS", "Device settings reporting", "deviceSettingsEnabled"),
	reported("REPORT_DISPLAY_INFO", "Display information reporting", "displayInfoEnabled"),
	reported("REPORT_HARDWARE_STATUS", "Hardware status reporting", "hardwareStatusEnabled"),
	reported("REPORT_MEMORY_INFO", "Memory information reporting", "memoryInfoEnabled"),
	reported("REPORT_NETWORK_INFO", "Network information reporting", "networkInfoEnabled"),
	reported("REPORT_POWER_EVENTS", "Power events reporting", "powerManagementEventsEnabled"),
	reported("REPORT_SOFTWARE_INFO", "Software information reporting", "softwareInfoEnabled"),
	reported("REPORT_SYSTEM_PROPERTIES", "System properties reporting", "systemPropertiesEnabled"),
}

// ApplicationReportLevel is the setting that two members of a document make.
const ApplicationReportLevel = "APPLICATION_REPORT_LEVEL"
