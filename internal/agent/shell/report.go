package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterhq/muster/internal/agent"
)

// reported are the properties that a device may tell: none identifies it or its
// owner.
var reported = [...]string{"ro.build.type", "ro.build.version.release", "ro.build.version.sdk", "ro.build.version.security_patch", //nolint:gochecknoglobals // a table that is never written to
	"ro.build.version.incremental", "ro.product.cpu.abi", "ro.boot.verifiedbootstate", "ro.boot.flash.locked", "ro.crypto.state",
	"ro.crypto.type", "ro.treble.enabled", "persist.sys.timezone", "persist.sys.locale"}

// Report implements agent.Device. What a tool does not tell is left out; what is
// off is not asked for.
func (d *Device) Report(ctx context.Context, groups agent.Reporting) (agent.Report, error) {
	if groups.Location {
		return d.locate(ctx)
	}
	props, err := d.properties(ctx)
	if err != nil {
		return agent.Report{}, err
	}
	c := &collector{d: d, ctx: ctx, values: map[string]any{}, props: props}
	if level, ok := parseBattery(c.ask("dumpsys", "battery")); ok {
		c.values["batteryLevel"] = level
	}
	for _, group := range []struct {
		on      bool
		collect func()
	}{
		{groups.Applications(), c.applications},
		{groups.On("REPORT_DEVICE_SETTINGS"), c.settings}, {groups.On("REPORT_DISPLAY_INFO"), c.display},
		{groups.On("REPORT_HARDWARE_STATUS"), c.hardware}, {groups.On("REPORT_MEMORY_INFO"), c.memory},
		{groups.On("REPORT_NETWORK_INFO"), c.network}, {groups.On("REPORT_POWER_EVENTS"), c.power},
		{groups.On("REPORT_SOFTWARE_INFO"), c.software}, {groups.On("REPORT_SYSTEM_PROPERTIES"), c.properties},
	} {
		if group.on {
			group.collect()
		}
	}
	text, err := json.Marshal(c.values)
	report := agent.Report{Values: text, Specifications: map[string]string{"osVersion": props["ro.build.version.release"]}}
	if groups.On("REPORT_SOFTWARE_INFO") {
		report.Specifications["securityPatchLevel"] = props["ro.build.version.security_patch"]
	}
	return report, err
}

// locate reads the last known location: a command line cannot ask for a new one. Its
// time is the fix's own.
func (d *Device) locate(ctx context.Context) (agent.Report, error) {
	text, err := d.Tools.Run(ctx, "dumpsys", "location")
	if err != nil {
		return agent.Report{}, err
	}
	uptime, err := os.ReadFile(filepath.Join(d.Root, "proc/uptime"))
	if err != nil {
		return agent.Report{}, fmt.Errorf("the age of a location cannot be told: %w", err)
	}
	since, err := parseUptime(string(uptime))
	if err != nil {
		return agent.Report{}, err
	}
	return agent.Report{Values: json.RawMessage("{}"), Location: parseLocation(text, d.Now().Add(-since))}, nil
}

// collector gathers one report.
type collector struct {
	d      *Device
	ctx    context.Context
	values map[string]any
	props  map[string]string
}

// ask runs a tool; a tool that fails has nothing to tell.
func (c *collector) ask(tool string, args ...string) string {
	text, err := c.d.Tools.Run(c.ctx, tool, args...)
	if err != nil {
		return ""
	}
	return text
}

func (c *collector) file(path string) string {
	text, err := os.ReadFile(filepath.Join(c.d.Root, path))
	if err != nil {
		return ""
	}
	return string(text)
}

func (c *collector) applications() {
	apps := parsePackages(c.ask("pm", "list", "packages", "--show-versioncode"))
	if len(apps) == 0 { // Android before version 8 does not know the option
		apps = parsePackages(c.ask("pm", "list", "packages"))
	}
	c.values["applications"] = apps
}

func (c *collector) settings() {
	on := func(name string) bool { return strings.TrimSpace(c.ask("settings", "get", "global", name)) == "1" }
	c.values["deviceSettings"] = map[string]any{"adbEnabled": on("adb_enabled"),
		"developmentSettingsEnabled": on("development_settings_enabled"),
		"encrypted":                  c.props["ro.crypto.state"] == "encrypted",
		"verifiedBootState":          oneLine(c.props["ro.boot.verifiedbootstate"])}
}

func (c *collector) display() {
	width, height, ok := parseSize(c.ask("wm", "size"))
	if !ok {
		return
	}
	display := map[string]any{"width": width, "height": height}
	if density, ok := parseDensity(c.ask("wm", "density")); ok {
		display["density"] = density
	}
	c.values["displays"] = []any{display}
}

// maxZones bounds the temperatures of a report.
const maxZones = 32

func (c *collector) hardware() {
	temperatures := map[string]float64{}
	zones, _ := filepath.Glob(filepath.Join(c.d.Root, "sys/class/thermal/thermal_zone*")) // the pattern is well formed
	for _, zone := range zones[:min(len(zones), maxZones)] {
		kind, err1 := os.ReadFile(filepath.Join(zone, "type"))
		value, err2 := os.ReadFile(filepath.Join(zone, "temp"))
		if err1 != nil || err2 != nil {
			continue
		}
		if degrees, ok := parseDegrees(string(value)); ok {
			temperatures[oneLine(string(kind))] = degrees
		}
	}
	c.values["hardwareStatus"] = map[string]any{"temperatures": temperatures}
}

func (c *collector) memory() {
	memory := parseMemory(c.file("proc/meminfo"))
	memoryInfo := map[string]any{}
	if total, ok := memory["MemTotal"]; ok {
		memoryInfo["totalRam"], memoryInfo["availableRam"] = total, memory["MemAvailable"]
	}
	if total, free, ok := parseDisk(c.ask("df", "-k", "/data")); ok {
		memoryInfo["totalInternalStorage"], memoryInfo["freeInternalStorage"] = total, free
	}
	c.values["memoryInfo"] = memoryInfo
}

func (c *collector) network() {
	on, err := parseSwitch("wifi_on", c.ask("settings", "get", "global", "wifi_on"))
	if err != nil {
		return
	}
	c.values["networkInfo"] = map[string]any{"wifiEnabled": on, "operatorName": oneLine(c.props["gsm.operator.alpha"])}
}

func (c *collector) power() {
	if id, err := c.d.BootID(c.ctx); err == nil {
		c.values["powerEvents"] = []any{map[string]any{"type": "BOOT", "bootId": oneLine(id),
			"reason": oneLine(c.props["sys.boot.reason"])}}
	}
}

func (c *collector) software() {
	c.values["softwareInfo"] = map[string]any{"androidVersion": oneLine(c.props["ro.build.version.release"]),
		"securityPatchLevel": oneLine(c.props["ro.build.version.security_patch"]),
		"androidBuildNumber": oneLine(c.props["ro.build.display.id"]),
		"bootloaderVersion":  oneLine(c.props["ro.bootloader"]), "deviceKernelVersion": oneLine(c.file("proc/version"))}
}

func (c *collector) properties() {
	properties := map[string]string{}
	for _, name := range reported {
		if value, ok := c.props[name]; ok {
			properties[name] = oneLine(value)
		}
	}
	c.values["systemProperties"] = properties
}
