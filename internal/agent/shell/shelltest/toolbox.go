// Package shelltest plays Android's command-line tools on the simulated device: it
// answers in their words, and refuses like they do, by API level and by who
// asks. It is what the agent's command-line backend is tested on.
package shelltest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/agent/simulated"
)

// Machine is a device with its tools.
type Machine struct {
	State *simulated.State
	UID   int // of who starts the tool
	// Restarted is called when a tool restarts the machine or switches it off.
	Restarted func()
}

// shellUID is who works over USB.
const shellUID = 2000

// call is one tool that was started.
type call struct {
	*Machine
	args     []string
	out, err io.Writer
}

// exit is a tool's end with another code than 0.
type exit struct {
	code int
	text string
}

// Error implements error.
func (e *exit) Error() string { return e.text }

func fail(code int, format string, args ...any) error {
	return &exit{code, fmt.Sprintf(format, args...)}
}

// Run plays one tool and returns its exit code.
func (m *Machine) Run(tool string, args []string, out, errOut io.Writer) int {
	tools := map[string]func(call) error{
		"getprop": call.getprop, "setprop": call.setprop, "settings": call.settings, "pm": call.pm, "cmd": call.cmd,
		"am": call.am, "svc": call.svc, "reboot": call.reboot, "dumpsys": call.dumpsys, "wm": call.wm, "df": call.df,
	}
	play, ok := tools[tool]
	if !ok {
		fmt.Fprintf(errOut, "%s: not found\n", tool)
		return 127
	}
	err := play(call{m, args, out, errOut})
	if err == nil {
		return 0
	}
	fmt.Fprintln(errOut, err)
	if end, ok := errors.AsType[*exit](err); ok {
		return end.code
	}
	return 1
}

// Names are the tools that there are.
func Names() []string {
	return []string{"getprop", "setprop", "settings", "pm", "cmd", "am", "svc", "reboot", "dumpsys", "wm", "df"}
}

func (c call) sdk() int { return c.State.Facts.SDK }

func (c call) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

func (c call) usage() error {
	return fail(255, "Error: unknown command or too few arguments: %q", c.args)
}

// denied is what Android throws at who may not.
func denied(permission string) error {
	return fail(255, "java.lang.SecurityException: Requires %s permission\n\tat android.os.Parcel.createException(Parcel.java)", permission)
}

// properties are what getprop prints.
func (c call) properties() map[string]string {
	f := c.State.Facts
	all := map[string]string{"ro.build.version.sdk": strconv.Itoa(f.SDK), "ro.build.version.release": f.OSVersion,
		"ro.serialno":             f.SerialNumber,
		"ro.product.manufacturer": f.Manufacturer, "ro.product.brand": f.Brand, "ro.product.model": f.Model, "ro.crypto.state": "encrypted",
		"ro.crypto.type": "file", "ro.build.type": "user", "ro.build.version.security_patch": "2026-10-01",
		"ro.boot.verifiedbootstate": "green",
		"ro.product.cpu.abi":        "arm64-v8a", "sys.boot_completed": "1", "gsm.sim.operator.numeric": "",
		"ro.build.description": "two\nlines [odd]"}
	maps.Copy(all, c.State.Platform.Properties)
	return all
}

func (c call) getprop() error {
	all := c.properties()
	if len(c.args) > 0 {
		fmt.Fprintln(c.out, all[c.args[0]])
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(c.out, "[%s]: [%s]\n", name, all[name])
	}
	return nil
}

func (c call) setprop() error {
	if len(c.args) != 2 {
		return c.usage()
	}
	if c.UID == shellUID && !strings.HasPrefix(c.args[0], "debug.") {
		return fail(1, "setprop: failed to set property '%s' to '%s'", c.args[0], c.args[1])
	}
	if c.State.Platform.Properties == nil {
		c.State.Platform.Properties = map[string]string{}
	}
	c.State.Platform.Properties[c.args[0]] = c.args[1]
	c.State.Released = c.State.Released || c.args[0] == "persist.muster.enrolled" && c.args[1] == "0"
	return nil
}

func (c call) settings() error {
	p := &c.State.Platform
	tables := map[string]*map[string]string{"global": &p.Global, "secure": &p.Secure}
	table, known := tables[c.arg(1)]
	switch {
	case !known:
		return c.usage()
	case c.args[0] == "get" && len(c.args) == 3:
		fmt.Fprintln(c.out, c.setting(c.args[1], c.args[2]))
		return nil
	case c.args[0] == "put" && len(c.args) == 4:
		if *table == nil {
			*table = map[string]string{}
		}
		(*table)[c.args[2]] = c.args[3]
		if c.args[2] == "location_mode" {
			p.LocationOff = c.args[3] == "0"
		}
		return nil
	}
	return c.usage()
}

// setting reads one, also those that stand for a switch.
func (c call) setting(table, name string) string {
	p := c.State.Platform
	flag := func(on bool) string {
		if on {
			return "1"
		}
		return "0"
	}
	switch {
	case name == "wifi_on" && p.WifiOff && p.Global["airplane_mode_on"] == "1":
		return "3"
	case name == "wifi_on":
		return flag(!p.WifiOff)
	case name == "location_mode" && p.LocationOff:
		return "0"
	case name == "location_mode":
		return "3"
	}
	value, ok := p.Global[name]
	if table == "secure" {
		value, ok = p.Secure[name]
	}
	if !ok {
		return "null"
	}
	return value
}

func (c call) svc() error {
	switch strings.Join(c.args, " ") {
	case "power reboot":
		return c.reboot()
	case "power shutdown":
		if c.sdk() < 30 && c.UID == shellUID {
			return denied("android.permission.REBOOT")
		}
		c.restart(true)
		return nil
	case "wifi enable", "wifi disable":
		c.State.Platform.WifiOff = c.args[1] == "disable"
		return nil
	}
	return c.usage()
}

func (c call) reboot() error {
	c.restart(c.arg(0) == "-p")
	return nil
}

func (c call) restart(off bool) {
	c.State.Restart(off)
	c.restarted()
}

func (c call) restarted() {
	if c.Restarted != nil {
		c.Restarted()
	}
}

func (c call) wm() error {
	switch c.arg(0) {
	case "size":
		fmt.Fprintln(c.out, "Physical size: 1080x2400")
	case "density":
		fmt.Fprintln(c.out, "Physical density: 480\nOverride density: 420")
	default:
		return c.usage()
	}
	return nil
}

func (c call) df() error {
	fmt.Fprintln(c.out, "Filesystem     1K-blocks    Used Available Use% Mounted on\n/dev/block/dm-8 62914560 1048576  61865984   2% /data")
	return nil
}
