package simulated

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/slice"
)

// Settings implements agent.Device.
func (d *Device) Settings() []string {
	return slices.Sorted(slices.Values(shell.Settings()))
}

// Read implements agent.Device.
func (d *Device) Read(_ context.Context, setting string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(setting, ""); err != nil {
		return "", err
	}
	return d.state.Settings[setting], nil
}

// Apply implements agent.Device.
func (d *Device) Apply(_ context.Context, setting, value string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(setting, value); err != nil {
		return err
	}
	if value == "" {
		delete(d.state.Settings, setting)
	} else {
		d.state.Settings[setting] = value
	}
	return d.save()
}

// check refuses what the settings' rules refuse on such a device.
func (d *Device) check(setting, value string) error {
	s := &d.state
	is := func(yes bool) func() (bool, error) { return func() (bool, error) { return yes, nil } }
	return shell.Check(setting, value, shell.Powers{SDK: s.Facts.SDK, System: s.Form != Shell, Owner: s.Form == Owner,
		Telephony: is(s.Telephony), Headset: is(s.Headset), Verifier: is(!s.Platform.NoVerifier)})
}

// Report implements agent.Device.
func (d *Device) Report(_ context.Context, groups agent.Reporting) (agent.Report, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.state
	values := map[string]any{"batteryLevel": s.Battery}
	add := func(on bool, name string, value any) {
		if on {
			values[name] = value
		}
	}
	add(groups.Applications(), "applications", slice.Map(s.Packages, func(name string) map[string]any {
		return map[string]any{"packageName": name, "versionCode": 1}
	}))
	add(groups.On("REPORT_DEVICE_SETTINGS"), "deviceSettings", map[string]any{"encrypted": true, "adbEnabled": s.Form == Shell})
	add(groups.On("REPORT_DISPLAY_INFO"), "displays", []map[string]any{{"width": 1080, "height": 2400, "density": 420}})
	add(groups.On("REPORT_HARDWARE_STATUS"), "hardwareStatus", map[string]any{"cpuTemperature": 41.5})
	add(groups.On("REPORT_MEMORY_INFO"), "memoryInfo", map[string]any{"totalRam": 4 << 30, "totalInternalStorage": 64 << 30})
	add(groups.On("REPORT_NETWORK_INFO"), "networkInfo", map[string]any{"wifiConnected": true})
	add(groups.On("REPORT_POWER_EVENTS"), "powerEvents", []map[string]any{{"type": "BOOT", "boot": s.Boot}})
	add(groups.On("REPORT_SOFTWARE_INFO"), "softwareInfo",
		map[string]any{"androidVersion": s.Facts.OSVersion, "securityPatchLevel": "2026-10-01"})
	add(groups.On("REPORT_SYSTEM_PROPERTIES"), "systemProperties", map[string]string{"ro.build.type": "user"})
	text, err := json.Marshal(values)
	if err != nil {
		return agent.Report{}, err
	}
	report := agent.Report{Values: text, Specifications: map[string]string{"osVersion": s.Facts.OSVersion}}
	if groups.On("REPORT_SOFTWARE_INFO") {
		report.Specifications["securityPatchLevel"] = "2026-10-01"
	}
	if groups.Location && s.Fix != nil && s.Settings["LOCATION_MODE"] != "DISABLED" {
		fix := *s.Fix
		fix.At = d.now().UnixMilli()
		report.Location = &fix
	}
	return report, nil
}
