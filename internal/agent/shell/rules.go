package shell

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/slice"
)

// rule is how one setting of the catalog is brought about by Android's own
// command lines.
type rule struct {
	id  string
	sdk int // the Android API level from which it works
	// keys are user restrictions, which say "the user may not".
	keys []key
	// on is the value that the restrictions mean; every other value of the
	// setting lifts them. Empty: the setting has no restriction of its own kind.
	on []string
	// sets are settings that are put as well when a value of on is applied.
	sets []put
	// toggle is a switch of the device that the setting turns.
	toggle *toggle
	// owner: only a device owner can; ownerValues: for these values.
	owner       bool
	ownerValues []string
	lab         bool   // an agent started over USB can do it, without the lock
	phone       bool   // without telephony it has no meaning
	own         bool   // it steers the agent itself
	none        string // why it has no meaning at all
	check       string // what is read when nothing can be set
}

// key is a user restriction with the level that brought it.
type key struct {
	name string
	sdk  int // 0: as early as the rule
}

// put is a setting of Android that the agent writes.
type put struct{ table, name, value string }

// toggle is something that can be switched, and read (parseSwitch).
type toggle struct {
	values    map[string]bool // the setting's values: switched on or off
	since     int             // from which level the cmd forms exist
	turn      order
	before    order // below since
	read, old []string
	restore   bool // taking the setting back switches it on again
}

// order is a command line, and its last word for on and off.
type order struct {
	words   []string
	on, off string
}

func (o order) line(on bool) []string {
	last := o.off
	if on {
		last = o.on
	}
	return append(slices.Clone(o.words), last)
}

// restricted is a setting ALLOW | BLOCK that is user restrictions alone.
func restricted(id string, sdk int, keys ...string) rule {
	return rule{id: id, sdk: sdk, on: []string{"BLOCK"}, keys: slice.Map(keys, func(name string) key { return key{name: name} })}
}

func (r rule) with(name string, sdk int) rule {
	r.keys = append(slices.Clone(r.keys), key{name, sdk})
	return r
}

func (r rule) onPhones() rule { r.phone = true; return r }

func ownerOnly(id string, sdk int) rule { return rule{id: id, sdk: sdk, owner: true} }

func reporting(id string) rule { return rule{id: id, own: true} }

// Powers are what a device has and its agent may, as far as settings depend on it.
type Powers struct {
	SDK    int
	System bool // the agent is a system daemon or owns the device; else it was started over USB
	Owner  bool // the agent owns the device
	// What takes time to find out is asked when a setting depends on it.
	Telephony func() (bool, error)
	Headset   func() (bool, error)
	Verifier  func() (bool, error) // an app verifies packages
}

// byID are the rules of the settings.
var byID = func() map[string]rule { //nolint:gochecknoglobals // a table that is never written to
	all := map[string]rule{}
	for _, r := range rules() {
		all[r.id] = r
	}
	return all
}()

// Check says why a device cannot do what a value of a setting means, if it cannot.
// Without a value it says whether the setting can be read.
func Check(setting, value string, p Powers) error {
	_, err := find(setting, value, p)
	return err
}

// find returns a setting's rule if the device and its agent can follow it.
func find(setting, value string, p Powers) (rule, error) {
	r, known := byID[setting]
	switch {
	case !known:
		return r, fmt.Errorf("%w: unknown setting", agent.ErrUnsupported)
	case r.none != "":
		return r, fmt.Errorf("%w: %s", agent.ErrNotApplicable, r.none)
	case r.own:
		return r, nil
	case r.phone:
		if has, err := p.Telephony(); err != nil {
			return r, err
		} else if !has {
			return r, fmt.Errorf("%w: it has no telephony", agent.ErrNotApplicable)
		}
	}
	switch {
	case p.SDK < r.sdk:
		return r, fmt.Errorf("%w: it takes API level %d, the device has %d", agent.ErrUnsupported, r.sdk, p.SDK)
	case (r.owner || slices.Contains(r.ownerValues, value)) && !p.Owner:
		return r, fmt.Errorf("%w: it takes a device owner", agent.ErrUnsupported)
	case !p.System && !r.lab:
		return r, fmt.Errorf("%w: an agent started over USB may not", agent.ErrUnsupported)
	}
	return r, safe(r.id+" "+value, p)
}

// safe refuses what would cut the device off from its people or from us.
func safe(change string, p Powers) error {
	var ask func() (bool, error)
	var safe bool // the answer with which the change does no harm
	var harm string
	switch change {
	case "BLUETOOTH BLOCK":
		ask, safe, harm = p.Headset, false, "the controllers of a headset are Bluetooth"
	case "WIFI_STATE DISABLED":
		ask, safe, harm = p.Telephony, true, "Wi-Fi is this device's only way to the service"
	case "VENDOR_PROTECT ENABLED":
		ask, safe, harm = p.Verifier, true, "no app on it verifies packages"
	default:
		return nil
	}
	is, err := ask()
	if err == nil && is != safe {
		err = fmt.Errorf("%w: %s", agent.ErrUnsupported, harm)
	}
	return err
}

// rules returns the settings in the contract's order, and the systemUpdate of AGENT policies.
func rules() []rule {
	return []rule{
		{id: "VENDOR_STORE_MODE", sdk: 24, keys: []key{{name: "no_install_apps"}}, on: []string{"WHITELIST"}},
		ownerOnly("DEFAULT_PERMISSION_POLICY", 23),
		{id: "APP_AUTO_UPDATE_POLICY", none: "the agent installs no apps"},
		rule{id: "UNTRUSTED_APPS_POLICY", sdk: 21, keys: []key{{name: "no_install_unknown_sources"}},
			on: []string{"DISALLOW_INSTALL", "ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY"}}.with("no_install_unknown_sources_globally", 29),
		{id: "VENDOR_PROTECT", sdk: 21, keys: []key{{name: "ensure_verify_apps"}}, on: []string{"ENABLED"}},
		ownerOnly("SCREEN_CAPTURE", 21),
		restricted("CAMERA", 24, "no_camera"),
		restricted("FACTORY_RESET", 21, "no_factory_reset"),
		restricted("UNINSTALL_APPS", 18, "no_uninstall_apps"),
		restricted("ACCOUNT_MODIFICATION", 18, "no_modify_accounts"),
		restricted("ADD_USER", 21, "no_add_user"),
		restricted("REMOVE_USER", 18, "no_remove_user"),
		{id: "DEVELOPER_SETTINGS", sdk: 21, keys: []key{{name: "no_debugging_features"}}, on: []string{"BLOCK"},
			sets: []put{{"global", "development_settings_enabled", "0"}, {"global", "adb_enabled", "0"}}},
		restricted("USB_DATA_ACCESS", 18, "no_usb_file_transfer"),
		locationMode(),
		restricted("LOCATION_SHARING", 18, "no_share_location"),
		restricted("OUTGOING_CALLS", 21, "no_outgoing_calls").onPhones(),
		restricted("SMS", 21, "no_sms").onPhones(),
		restricted("BLUETOOTH", 26, "no_bluetooth"),
		restricted("DATA_ROAMING", 24, "no_data_roaming").onPhones(),
		restricted("NETWORK_RESET", 23, "no_network_reset"),
		restricted("VPN_CONFIGURATION", 21, "no_config_vpn"),
		restricted("CONFIGURE_WIFI", 18, "no_config_wifi").with("no_add_wifi_config", 33),
		restricted("WIFI_DIRECT", 33, "no_wifi_direct"),
		restricted("TETHERING", 21, "no_config_tethering").with("no_wifi_tethering", 33),
		wifiState(),
		airplaneMode(),
		ownerOnly("MINIMUM_WIFI_SECURITY", 33),
		{id: "AUTO_DATE_TIME", sdk: 21, keys: []key{{"no_config_date_time", 28}}, on: []string{"ENFORCED"}, lab: true,
			sets: []put{{"global", "auto_time", "1"}, {"global", "auto_time_zone", "1"}}},
		{id: "ENCRYPTION_POLICY", sdk: 21, lab: true, ownerValues: []string{"ENABLED_WITH_PASSWORD"}, check: "getprop ro.crypto.state"},
		reporting("APPLICATION_REPORT_LEVEL"), reporting("REPORT_DEVICE_SETTINGS"), reporting("REPORT_DISPLAY_INFO"),
		reporting("REPORT_HARDWARE_STATUS"), reporting("REPORT_MEMORY_INFO"), reporting("REPORT_NETWORK_INFO"),
		reporting("REPORT_POWER_EVENTS"), reporting("REPORT_SOFTWARE_INFO"), reporting("REPORT_SYSTEM_PROPERTIES"),
		ownerOnly("SYSTEM_UPDATE", 28),
	}
}

func locationMode() rule {
	return rule{id: "LOCATION_MODE", sdk: 28, lab: true, keys: []key{{name: "no_config_location"}}, on: []string{"ENFORCED", "DISABLED"},
		toggle: &toggle{values: map[string]bool{"ENFORCED": true, "DISABLED": false}, since: 30,
			turn:   order{[]string{"cmd", "location", "set-location-enabled"}, "true", "false"},
			before: order{[]string{"settings", "put", "secure", "location_mode"}, "3", "0"},
			read:   []string{"cmd", "location", "is-location-enabled"}, old: []string{"settings", "get", "secure", "location_mode"}}}
}

func wifiState() rule {
	state := []string{"settings", "get", "global", "wifi_on"}
	return rule{id: "WIFI_STATE", sdk: 21, lab: true, keys: []key{{"no_change_wifi_state", 33}}, on: []string{"ENABLED", "DISABLED"},
		toggle: &toggle{values: map[string]bool{"ENABLED": true, "DISABLED": false}, since: 30, restore: true,
			turn:   order{[]string{"cmd", "wifi", "set-wifi-enabled"}, "enabled", "disabled"},
			before: order{[]string{"svc", "wifi"}, "enable", "disable"},
			read:   state, old: state}}
}

func airplaneMode() rule {
	state := []string{"settings", "get", "global", "airplane_mode_on"}
	return rule{id: "AIRPLANE_MODE", sdk: 28, keys: []key{{name: "no_airplane_mode"}}, on: []string{"DISABLED"},
		toggle: &toggle{values: map[string]bool{"DISABLED": false}, since: 30,
			turn:   order{[]string{"cmd", "connectivity", "airplane-mode"}, "enable", "disable"},
			before: order{[]string{"settings", "put", "global", "airplane_mode_on"}, "1", "0"},
			read:   state, old: state}}
}
