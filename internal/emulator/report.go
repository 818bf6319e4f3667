package emulator

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
)

// reportingOf is what a policy lets a device report.
func reportingOf(p *policy) *am.StatusReportingSettings {
	wanted := &am.StatusReportingSettings{}
	settings, _ := p.Document["statusReportingSettings"].(map[string]any)
	_ = fromTree(settings, wanted) // the document was checked against the vendor's schema
	return wanted
}

// reporting is what the applied policy lets the device report.
func (d *simulated) reporting() *am.StatusReportingSettings {
	return cmp.Or(d.Applied.Reporting, &am.StatusReportingSettings{})
}

// reportInterval is how often a device reports without being asked.
const reportInterval = 24 * time.Hour

func (e *Emulator) schedulePeriodicReport(d *simulated) {
	e.after(reportInterval, func() {
		if e.world.byDevice[d.ID] != d || d.Deleted {
			return
		}
		if d.Online {
			d.power("BATTERY_LEVEL_COLLECTED", e.now())
			e.report(d, &outbox{})
		}
		e.schedulePeriodicReport(d)
	})
}

// report makes a device send a status report.
func (e *Emulator) report(d *simulated, out *outbox) {
	d.Reported = d.statusReport(e.now())
	e.touch()
	e.notify(d.owner, "STATUS_REPORT", e.resource(d), out)
}

// resource is the device as the API answers it: its last report, with what the
// platform itself knows brought up to date. It is a copy.
func (e *Emulator) resource(d *simulated) *am.Device {
	r := &am.Device{}
	if d.Reported != nil {
		*r = *d.Reported
	}
	d.identify(r)
	if r.AppliedState == "LOST" && e.settings.Quirks.LostInState {
		r.State = "LOST"
	}
	return r
}

// identify fills in what the platform knows without a report.
func (d *simulated) identify(r *am.Device) {
	r.Name = d.name()
	r.UserName = d.owner.name() + "/users/" + d.UserID
	r.PolicyName = d.owner.name() + "/policies/" + d.PolicyID
	r.State = d.State
	if d.Applied.Version == 0 {
		r.State = "PROVISIONING"
	}
	if d.Deleted {
		r.State = "DELETED"
	}
	r.DisabledReason = d.Disabled
	r.EnrollmentTime = timestamp(d.Enrolled)
	r.EnrollmentTokenName = d.TokenName
	r.EnrollmentTokenData = d.TokenData
	r.Ownership = d.Ownership
	r.ManagementMode = d.Mode
	r.PreviousDeviceNames = d.Previous
	r.AppliedState = d.appliedState()
}

// enrollmentReport is what a device says of itself as it enrolls.
func (d *simulated) enrollmentReport(now time.Time) *am.Device {
	r := &am.Device{ApiLevel: int64(d.APILevel), HardwareInfo: d.hardwareInfo(), LastStatusReportTime: timestamp(now)}
	d.identify(r)
	return r
}

// statusReport is what a device says of itself now, as far as its policy allows.
// Displays, hardware status and power events of personally owned devices are
// never reported.
func (d *simulated) statusReport(now time.Time) *am.Device {
	r := d.enrollmentReport(now)
	levels := d.reporting()
	if d.Applied.Version > 0 {
		r.AppliedPolicyName = d.owner.name() + "/policies/" + d.Applied.PolicyID
		r.AppliedPolicyVersion = d.Applied.Version
		r.LastPolicySyncTime = timestamp(d.Applied.At)
		r.PolicyCompliant = len(d.NonCompliance) == 0
		r.NonComplianceDetails = d.NonCompliance
	}
	r.SecurityPosture = &am.SecurityPosture{DevicePosture: "SECURE"}
	if levels.SoftwareInfoEnabled {
		r.SoftwareInfo = d.softwareInfo()
	}
	if levels.MemoryInfoEnabled {
		r.MemoryInfo = &am.MemoryInfo{TotalRam: int64(d.Hardware.MemoryGB) << 30, TotalInternalStorage: int64(d.Hardware.StorageGB) << 30}
		r.MemoryEvents = []*am.MemoryEvent{
			{CreateTime: timestamp(now), EventType: "RAM_MEASURED", ByteCount: int64(d.Hardware.MemoryGB) << 29},
			{CreateTime: timestamp(now), EventType: "INTERNAL_STORAGE_MEASURED", ByteCount: int64(d.Hardware.StorageGB) << 29},
		}
	}
	if levels.NetworkInfoEnabled {
		r.NetworkInfo = d.networkInfo()
	}
	if levels.DeviceSettingsEnabled {
		r.DeviceSettings = &am.DeviceSettings{EncryptionStatus: "ACTIVE_PER_USER", IsDeviceSecure: true, IsEncrypted: true,
			VerifyAppsEnabled: true}
	}
	if levels.SystemPropertiesEnabled {
		r.SystemProperties = map[string]string{"ro.product.model": d.Hardware.Model, "ro.build.version.sdk": strconv.Itoa(d.APILevel)}
	}
	if levels.ApplicationReportsEnabled {
		r.ApplicationReports = d.applicationReports()
	}
	if !d.personal() {
		d.addCompanyReports(r, now)
	}
	return r
}

func (d *simulated) addCompanyReports(r *am.Device, now time.Time) {
	levels, h := d.reporting(), d.Hardware
	if levels.DisplayInfoEnabled {
		r.Displays = []*am.Display{{Name: "Built-in Screen", DisplayId: 0, State: "ON", RefreshRate: 60, Width: int64(h.Width),
			Height: int64(h.Height), Density: int64(h.Density)}}
	}
	if levels.HardwareStatusEnabled {
		r.HardwareStatusSamples = []*am.HardwareStatus{{CreateTime: timestamp(now), BatteryTemperatures: []float64{29.5},
			CpuTemperatures: []float64{38.1}, SkinTemperatures: []float64{30.2}}}
	}
	if levels.PowerManagementEventsEnabled {
		r.PowerManagementEvents = slices.Clone(d.Power)
	}
}

func (d *simulated) hardwareInfo() *am.HardwareInfo {
	h := d.Hardware
	info := &am.HardwareInfo{Manufacturer: h.Manufacturer, Brand: h.Brand, Model: h.Model, Hardware: h.Board, SerialNumber: h.Serial,
		EnterpriseSpecificId: h.SpecificID}
	if h.SpecificID != "" { // Android 12 hides the serial number of personal devices
		info.SerialNumber = h.SpecificID
	}
	return info
}

func (d *simulated) softwareInfo() *am.SoftwareInfo {
	return &am.SoftwareInfo{
		AndroidVersion: androidVersion(d.APILevel), AndroidBuildNumber: "EMU" + strconv.Itoa(d.APILevel) + ".261001.001",
		AndroidBuildTime: "2026-10-01T00:00:00Z", SecurityPatchLevel: patchOf(d.APILevel),
		AndroidDevicePolicyVersionCode: 117_230_000, AndroidDevicePolicyVersionName: "117.23.0",
		BootloaderVersion: "emulator-1.0", DeviceKernelVersion: "6.1.75-android14", PrimaryLanguageCode: "en-US",
		SystemUpdateInfo: &am.SystemUpdateInfo{UpdateStatus: "UP_TO_DATE"},
	}
}

// patchOf is the level of devices with an API level: older ones get patches later, or none.
func patchOf(apiLevel int) string {
	switch {
	case apiLevel >= 34:
		return "2026-10-01"
	case apiLevel == 33:
		return "2026-08-05"
	case apiLevel == 32:
		return "2026-05-05"
	default:
		return "2026-02-05"
	}
}

func (d *simulated) networkInfo() *am.NetworkInfo {
	info := &am.NetworkInfo{WifiMacAddress: d.Hardware.MAC, Imei: d.Hardware.IMEI}
	if d.personal() { // hardware ids of personal devices stay hidden
		info = &am.NetworkInfo{}
	}
	if d.Hardware.HasPhone {
		info.TelephonyInfos = []*am.TelephonyInfo{{CarrierName: "Emulated Mobile"}}
	}
	return info
}

func (d *simulated) applicationReports() []*am.ApplicationReport {
	var reports []*am.ApplicationReport
	for _, name := range d.Packages {
		reports = append(reports, &am.ApplicationReport{
			PackageName: name, DisplayName: name, VersionName: "1.0.0", VersionCode: 1, State: "INSTALLED",
			ApplicationSource: "INSTALLED_FROM_PLAY_STORE", InstallerPackageName: "com.android.vending",
		})
	}
	return reports
}
