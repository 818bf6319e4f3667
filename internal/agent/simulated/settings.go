package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// power is what a setting takes.
type power struct {
	sdk    int  // the Android API level from which it exists
	shell  bool // an agent started over USB can do it too
	owner  bool // only a device owner can
	phone  bool // it needs telephony
	report bool // it steers the agent itself
	none   bool // it has no meaning on devices with this agent
}

// settings are the 39 of the catalog with what each takes.
var settings = map[string]power{ //nolint:gochecknoglobals // a table that is never written to
	"VENDOR_STORE_MODE":         {sdk: 24},
	"DEFAULT_PERMISSION_POLICY": {sdk: 23, owner: true},
	"APP_AUTO_UPDATE_POLICY":    {none: true},
	"UNTRUSTED_APPS_POLICY":     {sdk: 21},
	"VENDOR_PROTECT":            {sdk: 21},
	"SCREEN_CAPTURE":            {sdk: 21, owner: true},
	"CAMERA":                    {sdk: 24},
	"FACTORY_RESET":             {sdk: 21},
	"UNINSTALL_APPS":            {sdk: 18},
	"ACCOUNT_MODIFICATION":      {sdk: 18},
	"ADD_USER":                  {sdk: 21},
	"REMOVE_USER":               {sdk: 18},
	"DEVELOPER_SETTINGS":        {sdk: 21},
	"USB_DATA_ACCESS":           {sdk: 18},
	"LOCATION_MODE":             {sdk: 28, shell: true},
	"LOCATION_SHARING":          {sdk: 18},
	"OUTGOING_CALLS":            {sdk: 21, phone: true},
	"SMS":                       {sdk: 21, phone: true},
	"BLUETOOTH":                 {sdk: 26},
	"DATA_ROAMING":              {sdk: 24, phone: true},
	"NETWORK_RESET":             {sdk: 23},
	"VPN_CONFIGURATION":         {sdk: 21},
	"CONFIGURE_WIFI":            {sdk: 18},
	"WIFI_DIRECT":               {sdk: 33},
	"TETHERING":                 {sdk: 21},
	"WIFI_STATE":                {sdk: 21, shell: true},
	"AIRPLANE_MODE":             {sdk: 28},
	"MINIMUM_WIFI_SECURITY":     {sdk: 33, owner: true},
	"AUTO_DATE_TIME":            {sdk: 21, shell: true},
	"ENCRYPTION_POLICY":         {sdk: 21, shell: true},
	"APPLICATION_REPORT_LEVEL":  {report: true},
	"REPORT_DEVICE_SETTINGS":    {report: true},
	"REPORT_DISPLAY_INFO":       {report: true},
	"REPORT_HARDWARE_STATUS":    {report: true},
	"REPORT_MEMORY_INFO":        {report: true},
	"REPORT_NETWORK_INFO":       {report: true},
	"REPORT_POWER_EVENTS":       {report: true},
	"REPORT_SOFTWARE_INFO":      {report: true},
	"REPORT_SYSTEM_PROPERTIES":  {report: true},
}

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
	if setting == "ENCRYPTION_POLICY" && value == "ENABLED_WITH_PASSWORD" && d.state.Form != Owner {
		return fmt.Errorf("%w: it takes a device owner to demand a password", agent.ErrUnsupported)
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
	case p.none:
		return fmt.Errorf("%w: the agent installs no apps", agent.ErrNotApplicable)
	case p.report:
		return nil
	case p.phone && !s.Telephony:
		return fmt.Errorf("%w: it has no telephony", agent.ErrNotApplicable)
	case s.Facts.SDK < p.sdk:
		return fmt.Errorf("%w: it takes API level %d, the device has %d", agent.ErrUnsupported, p.sdk, s.Facts.SDK)
	case p.owner && s.Form != Owner:
		return fmt.Errorf("%w: it takes a device owner", agent.ErrUnsupported)
	case s.Form == Shell && !p.shell:
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
