package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/shell"
)

// settings are those of the catalog with what each takes, as on a real device.
var settings = shell.AllNeeds() //nolint:gochecknoglobals // a table that is never written to

// Settings implements agent.Device.
func (d *Device) Settings() []string { return slices.Sorted(maps.Keys(settings)) }

// Read implements agent.Device.
func (d *Device) Read(_ context.Context, setting string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.able(setting); err != nil {
		return "", err
	}
	return d.state.Settings[setting], nil
}

// Apply implements agent.Device.
func (d *Device) Apply(_ context.Context, setting, value string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.able(setting); err != nil {
		return err
	}
	if slices.Contains(settings[setting].OwnerValues, value) && d.state.Form != Owner {
		return fmt.Errorf("%w: it takes a device owner", agent.ErrUnsupported)
	}
	if setting == "VENDOR_PROTECT" && value == "ENABLED" && d.state.Platform.NoVerifier {
		return fmt.Errorf("%w: no app on it verifies packages", agent.ErrUnsupported)
	}
	if d.state.Headset && setting == "BLUETOOTH" && value == "BLOCK" {
		return fmt.Errorf("%w: the controllers of a headset are Bluetooth", agent.ErrUnsupported)
	}
	if setting == "WIFI_STATE" && value == "DISABLED" && !d.state.Telephony {
		return fmt.Errorf("%w: Wi-Fi is this device's only way to the service", agent.ErrUnsupported)
	}
	if value == "" {
		delete(d.state.Settings, setting)
	} else {
		d.state.Settings[setting] = value
	}
	return d.save()
}

func (d *Device) able(setting string) error {
	p, known := settings[setting]
	s := &d.state
	switch {
	case !known:
		return fmt.Errorf("%w: unknown setting", agent.ErrUnsupported)
	case p.None != "":
		return fmt.Errorf("%w: %s", agent.ErrNotApplicable, p.None)
	case p.Own:
		return nil
	case p.Phone && !s.Telephony:
		return fmt.Errorf("%w: it has no telephony", agent.ErrNotApplicable)
	case s.Facts.SDK < p.SDK:
		return fmt.Errorf("%w: it takes API level %d, the device has %d", agent.ErrUnsupported, p.SDK, s.Facts.SDK)
	case p.Owner && s.Form != Owner:
		return fmt.Errorf("%w: it takes a device owner", agent.ErrUnsupported)
	case s.Form == Shell && !p.Lab:
		return fmt.Errorf("%w: an agent started over USB may not", agent.ErrUnsupported)
	}
	return nil
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
	add(groups.Applications == "INSTALLED_APPS" || groups.Applications == "INSTALLED_AND_REMOVED_APPS", "applications", s.Packages)
	add(groups.DeviceSettings, "deviceSettings", map[string]any{"encrypted": true, "adbEnabled": s.Form == Shell})
	add(groups.Display, "displays", []map[string]any{{"width": 1080, "height": 2400, "density": 420}})
	add(groups.Hardware, "hardwareStatus", map[string]any{"cpuTemperature": 41.5})
	add(groups.Memory, "memoryInfo", map[string]any{"totalRam": 4 << 30, "totalInternalStorage": 64 << 30})
	add(groups.Network, "networkInfo", map[string]any{"wifiConnected": true})
	add(groups.Power, "powerEvents", []map[string]any{{"type": "BOOT", "boot": s.Boot}})
	add(groups.Software, "softwareInfo", map[string]any{"androidVersion": s.Facts.OSVersion, "securityPatchLevel": "2026-10-01"})
	add(groups.Properties, "systemProperties", map[string]string{"ro.build.type": "user"})
	text, err := json.Marshal(values)
	if err != nil {
		return agent.Report{}, err
	}
	report := agent.Report{Values: text, Specifications: map[string]string{"osVersion": s.Facts.OSVersion}}
	if groups.Software {
		report.Specifications["securityPatchLevel"] = "2026-10-01"
	}
	if groups.Location && s.Fix != nil && s.Settings["LOCATION_MODE"] != "DISABLED" {
		report.Location = &protocol.Location{Latitude: s.Fix.Latitude, Longitude: s.Fix.Longitude,
			AccuracyMeters: s.Fix.Accuracy, At: d.now().UnixMilli()}
	}
	return report, nil
}
