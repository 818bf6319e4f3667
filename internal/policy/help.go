package policy

// help says in a sentence what a setting does, for people who choose its value.
func help(id string) string {
	return map[string]string{
		"VENDOR_STORE_MODE": "Whitelist: the store offers only the apps that the policy lists, and devices uninstall all others. " +
			"Blacklist: it offers all but those that the policy blocks.",
		"DEFAULT_PERMISSION_POLICY": "Whether apps may ask the person for permissions that the policy does not name (Prompt), or never " +
			"get them (Deny).",
		"APP_AUTO_UPDATE_POLICY": "When the store updates apps by itself. Always may use mobile data.",
		"UNTRUSTED_APPS_POLICY":  "Whether apps from elsewhere than the store can be installed: never, or in the personal profile only.",
		"VENDOR_PROTECT":         "Enabled: apps are always checked for harm, and the person cannot turn the check off.",
		"SCREEN_CAPTURE":         "Blocked: no screenshots and no recordings of the screen.",
		"CAMERA":                 "Blocked: no app can use a camera of the device.",
		"FACTORY_RESET":          "Blocked: the person cannot reset the device from its settings.",
		"UNINSTALL_APPS":         "Blocked: apps cannot be uninstalled, not even by taking them out of the policy.",
		"ACCOUNT_MODIFICATION":   "Blocked: the person cannot add or remove accounts.",
		"ADD_USER":               "Blocked: the person cannot add users or profiles to the device.",
		"REMOVE_USER":            "Blocked: the person cannot remove users from the device.",
		"DEVELOPER_SETTINGS":     "Blocked: developer options, USB debugging and safe boot are off.",
		"USB_DATA_ACCESS":        "Blocked: USB charges the device, and carries no data.",
		"LOCATION_MODE": "Enforced: location is on and cannot be turned off. Disabled: it is off. User choice: the " +
			"person decides.",
		"LOCATION_SHARING":  "Blocked: Android turns location off. Agents refuse this while Location is enforced.",
		"OUTGOING_CALLS":    "Blocked: the device makes no phone calls, but for emergencies.",
		"SMS":               "Blocked: the device sends and receives no text messages.",
		"BLUETOOTH":         "Blocked: Bluetooth is off.",
		"DATA_ROAMING":      "Blocked: no mobile data in the networks of other carriers.",
		"NETWORK_RESET":     "Blocked: the person cannot reset network settings. Works on fully managed devices only.",
		"VPN_CONFIGURATION": "Blocked: the person cannot add or change VPNs.",
		"CONFIGURE_WIFI": "Blocked: fully managed devices forget every network that the policy does not configure, and may " +
			"become unreachable.",
		"WIFI_DIRECT":              "Blocked: the device makes no direct Wi-Fi connections to other devices.",
		"TETHERING":                "Blocked: the device does not share its connection as a hotspot or over USB or Bluetooth.",
		"WIFI_STATE":               "Enabled or Disabled: Wi-Fi stays on or off, and the person cannot change it.",
		"AIRPLANE_MODE":            "Disabled: the person cannot turn airplane mode on.",
		"MINIMUM_WIFI_SECURITY":    "Personal network: the device does not use Wi-Fi networks without a password.",
		"AUTO_DATE_TIME":           "Enforced: date, time and time zone are set automatically, and the person cannot change them.",
		"ENCRYPTION_POLICY":        "Whether storage must be encrypted, and a password given at start.",
		"APPLICATION_REPORT_LEVEL": "Whether devices report no apps, those that are installed, or also those that were removed.",
		"REPORT_DEVICE_SETTINGS": "Whether devices report settings that matter for security: screen lock, encryption, " +
			"developer options.",
		"REPORT_DISPLAY_INFO":      "Whether devices report their displays: resolution, density, refresh rate.",
		"REPORT_HARDWARE_STATUS":   "Whether devices report temperatures, fan speeds and processor use.",
		"REPORT_MEMORY_INFO":       "Whether devices report the size of their memory and storage, and storage that is added or removed.",
		"REPORT_NETWORK_INFO":      "Whether devices report IMEI, Wi-Fi address, carrier and phone number.",
		"REPORT_POWER_EVENTS":      "Whether devices report battery levels, charging, starts and shutdowns.",
		"REPORT_SOFTWARE_INFO":     "Whether devices report the versions of Android, its security patch, kernel and bootloader.",
		"REPORT_SYSTEM_PROPERTIES": "Whether devices report the system properties of Android.",
	}[id]
}
