package shelltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/agent/simulated"
)

// levels are the user restrictions with the API level that brought each.
var levels = map[string]int{
	"no_modify_accounts": 18, "no_config_wifi": 18, "no_uninstall_apps": 18, "no_share_location": 18, "no_usb_file_transfer": 18,
	"no_remove_user": 18, "no_install_apps": 18, "no_install_unknown_sources": 18, "no_config_bluetooth": 18,
	"ensure_verify_apps": 21, "no_factory_reset": 21, "no_add_user": 21, "no_debugging_features": 21, "no_outgoing_calls": 21,
	"no_sms": 21, "no_config_vpn": 21, "no_config_tethering": 21, "no_network_reset": 23, "no_data_roaming": 24, "no_camera": 24,
	"no_bluetooth": 26, "no_config_location": 28, "no_airplane_mode": 28, "no_config_date_time": 28,
	"no_install_unknown_sources_globally": 29, "no_wifi_direct": 33, "no_change_wifi_state": 33, "no_add_wifi_config": 33,
	"no_wifi_tethering": 33,
}

func (c call) pm() error {
	switch c.arg(0) {
	case "set-user-restriction":
		return c.restrict()
	case "path":
		if c.State.Installed(c.arg(1)) {
			fmt.Fprintf(c.out, "package:/data/app/%s/base.apk\n", c.args[1])
			return nil
		}
		return fail(1, "")
	case "list":
		for _, name := range c.State.Packages {
			fmt.Fprintf(c.out, "package:%s\n", name)
		}
		return nil
	case "has-feature":
		has := c.arg(1) == "android.hardware.telephony" && c.State.Telephony ||
			c.arg(1) == "android.hardware.vr.headtracking" && c.State.Headset
		fmt.Fprintln(c.out, has)
		if !has {
			return fail(1, "")
		}
		return nil
	}
	return c.usage()
}

// restrict is pm set-user-restriction --user 0 KEY 0|1. Who works over USB may
// not; a key that this Android does not know is passed over without a word.
func (c call) restrict() error {
	if len(c.args) != 5 || c.args[1] != "--user" || c.args[2] != "0" || c.args[4] != "0" && c.args[4] != "1" {
		return c.usage()
	}
	if c.UID == shellUID {
		return denied("android.permission.MANAGE_USERS")
	}
	level, known := levels[c.args[3]]
	if !known || c.sdk() < level {
		return nil
	}
	p := &c.State.Platform
	if p.Restrictions == nil {
		p.Restrictions = map[string]bool{}
	}
	if c.args[4] == "1" {
		p.Restrictions[c.args[3]] = true
		p.LocationOff = p.LocationOff || c.args[3] == "no_share_location" // as Android does
	} else {
		delete(p.Restrictions, c.args[3])
	}
	return nil
}

func (c call) cmd() error {
	words := strings.Join(c.args[:min(2, len(c.args))], " ")
	switch {
	case words == "notification post" && c.sdk() >= 29:
		return c.notify()
	case words == "package resolve-activity" && c.sdk() >= 24:
		return c.resolve()
	case words == "package query-receivers":
		if c.State.Platform.NoVerifier {
			fmt.Fprintln(c.out, "No receivers found")
			return nil
		}
		fmt.Fprintln(c.out, "1 receivers found:\n  priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n  "+
			"com.android.vending/.verifier.Receiver")
		return nil
	case words == "location set-location-enabled" && c.sdk() >= 30:
		c.State.Platform.LocationOff = c.arg(2) == "false"
		return nil
	case words == "location is-location-enabled" && c.sdk() >= 30:
		fmt.Fprintln(c.out, !c.State.Platform.LocationOff)
		return nil
	case words == "wifi set-wifi-enabled" && c.sdk() >= 30:
		c.State.Platform.WifiOff = c.arg(2) == "disabled"
		return nil
	case words == "connectivity airplane-mode" && c.sdk() >= 30:
		if c.State.Platform.Global == nil {
			c.State.Platform.Global = map[string]string{}
		}
		c.State.Platform.Global["airplane_mode_on"] = map[bool]string{true: "1", false: "0"}[c.arg(2) == "enable"]
		return nil
	}
	return fail(255, "cmd: Can't find service or command: %s", words)
}

// notify is cmd notification post [-S STYLE] [-t TITLE] TAG TEXT.
func (c call) notify() error {
	title, rest := "", c.args[2:]
	for len(rest) > 1 && strings.HasPrefix(rest[0], "-") {
		if rest[0] == "-t" {
			title = rest[1]
		}
		rest = rest[2:]
	}
	if len(rest) != 2 {
		return c.usage()
	}
	c.State.Show(simulated.Notification{Tag: rest[0], Title: title, Body: rest[1]})
	fmt.Fprintf(c.out, "posting:\n  Notification(channel=shell_cmd tag=%s)\n", rest[0])
	return nil
}

func (c call) resolve() error {
	name := c.args[len(c.args)-1]
	if !c.State.Installed(name) {
		fmt.Fprintln(c.out, "No activity found")
		return nil
	}
	fmt.Fprintf(c.out, "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n%s/.MainActivity\n", name)
	return nil
}

func (c call) am() error {
	switch c.arg(0) {
	case "start":
		name, _, _ := strings.Cut(c.arg(2), "/")
		if c.arg(1) != "-n" || !c.State.Open(name) {
			fmt.Fprintf(c.out, "Starting: Intent { cmp=%s }\nError type 3\nError: Activity class {%s} does not exist.\n", c.arg(2),
				c.arg(2))
			return nil
		}
		fmt.Fprintf(c.out, "Starting: Intent { cmp=%s }\n", c.arg(2))
		return nil
	case "broadcast":
		if !slices.Contains(c.args, "android.intent.action.FACTORY_RESET") {
			return c.usage()
		}
		if c.UID == shellUID {
			return denied("android.permission.MASTER_CLEAR")
		}
		if c.State.Platform.Restrictions["no_factory_reset"] {
			return fail(1, "java.lang.SecurityException: factory reset is not allowed for this user")
		}
		c.State.Erase()
		c.restarted()
		fmt.Fprintln(c.out, "Broadcasting: Intent { act=android.intent.action.FACTORY_RESET }\nBroadcast completed: result=0")
		return nil
	}
	return c.usage()
}

func (c call) dumpsys() error {
	switch c.arg(0) {
	case "battery":
		fmt.Fprintf(c.out, "Current Battery Service state:\n  AC powered: false\n  status: 3\n  health: 2\n  present: true\n  level: "+
			"%d\n  scale: 100\n  technology: Li-ion\n", c.State.Battery)
	case "user":
		c.users()
	case "location":
		fmt.Fprintln(c.out, "Location Manager State:\n  Last Known Locations:")
		if f := c.State.Fix; f != nil && !c.State.Platform.LocationOff {
			fmt.Fprintf(c.out, "    last location=Location[network %f,%f hAcc=900.0 et=+1d2h]\n", f.Latitude+0.01, f.Longitude)
			fmt.Fprintf(c.out, "    last location=Location[fused %f,%f hAcc=%.1f et=+1d2h3m4s5ms alt=34.0]\n", f.Latitude,
				f.Longitude, f.AccuracyMeters)
		}
	case "connectivity":
		fmt.Fprintln(c.out, "NetworkAgentInfo [WIFI () - 100]\n  LinkProperties{InterfaceName: wlan0 DnsAddresses: [ "+
			"/192.0.2.53,/2001:db8::53 ] Domains: lan}")
	default:
		return fail(0, "Can't find service: %s", c.arg(0))
	}
	return nil
}

func (c call) users() {
	fmt.Fprintln(c.out, "Current user: 0\n\nUsers:\n  UserInfo{0:Owner:c13} serialNo=0 isPrimary=true\n    State: RUNNING_UNLOCKED\n    "+
		"Restrictions:")
	list := func() {
		if len(c.State.Platform.Restrictions) == 0 {
			fmt.Fprintln(c.out, "      none")
		}
		for _, key := range slices.Sorted(maps.Keys(c.State.Platform.Restrictions)) {
			fmt.Fprintf(c.out, "      %s\n", key)
		}
	}
	list()
	fmt.Fprintln(c.out, "    Effective restrictions:")
	list()
	fmt.Fprintln(c.out, "    Ignore errors preparing storage: false\n  UserInfo{10:Guest:4} serialNo=10\n    Effective "+
		"restrictions:\n      no_camera\n      no_sms\n\n  Supports switchable users: true")
}
