package platform

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
)

// Limits of what is kept of a report. Its texts are the device's own.
const (
	maxNonCompliance = 50
	maxReportList    = 16
)

// specifications are the device's hardware and software, under the vendor's
// own names (contract 2.1). What the policy does not let it report is
// left out.
func specifications(d *androidmanagement.Device) map[string]string {
	s := map[string]string{}
	put := func(name, value string) {
		if value = oneLine(value); value != "" {
			s[name] = value
		}
	}
	if h := d.HardwareInfo; h != nil {
		put("serialNumber", h.SerialNumber)
		put("model", h.Model)
		put("manufacturer", h.Manufacturer)
		put("brand", h.Brand)
		put("hardware", h.Hardware)
		put("deviceBasebandVersion", h.DeviceBasebandVersion)
	}
	if w := d.SoftwareInfo; w != nil {
		put("osVersion", w.AndroidVersion)
		put("securityPatchLevel", w.SecurityPatchLevel)
		put("androidBuildNumber", w.AndroidBuildNumber)
		put("bootloaderVersion", w.BootloaderVersion)
		put("deviceKernelVersion", w.DeviceKernelVersion)
		put("primaryLanguageCode", w.PrimaryLanguageCode)
		put("androidDevicePolicyVersionName", w.AndroidDevicePolicyVersionName)
	}
	if n := d.NetworkInfo; n != nil {
		put("imei", n.Imei)
		put("meid", n.Meid)
		put("wifiMacAddress", n.WifiMacAddress)
	}
	if d.ApiLevel > 0 {
		put("apiLevel", strconv.FormatInt(d.ApiLevel, 10))
	}
	if len(s) == 0 {
		return nil
	}
	return s
}

// report is a status report as assets show it, in the vendor's words.
type report struct {
	ReportedAt           string                              `json:"reportedAt"`
	BatteryLevel         *float64                            `json:"batteryLevel,omitempty"`
	State                string                              `json:"state,omitempty"`
	AppliedState         string                              `json:"appliedState,omitempty"`
	PolicyCompliant      bool                                `json:"policyCompliant"`
	NonComplianceDetails []nonCompliance                     `json:"nonComplianceDetails,omitempty"`
	SecurityPosture      string                              `json:"securityPosture,omitempty"`
	MemoryInfo           *androidmanagement.MemoryInfo       `json:"memoryInfo,omitempty"`
	DeviceSettings       *androidmanagement.DeviceSettings   `json:"deviceSettings,omitempty"`
	Displays             []*androidmanagement.Display        `json:"displays,omitempty"`
	HardwareStatus       *androidmanagement.HardwareStatus   `json:"hardwareStatus,omitempty"`
	NetworkOperatorName  string                              `json:"networkOperatorName,omitempty"`
	SystemUpdateInfo     *androidmanagement.SystemUpdateInfo `json:"systemUpdateInfo,omitempty"`
	InstalledAppCount    int                                 `json:"installedAppCount,omitempty"`
	Applications         []installed                         `json:"applications,omitempty"`
}

// installed is an app in a status report, as both kinds of device have it.
type installed struct {
	PackageName string `json:"packageName"`
	VersionCode int64  `json:"versionCode"`
}

type nonCompliance struct {
	SettingName string `json:"settingName,omitempty"`
	FieldPath   string `json:"fieldPath,omitempty"`
	PackageName string `json:"packageName,omitempty"`
	Reason      string `json:"nonComplianceReason,omitempty"`
	Specific    string `json:"specificNonComplianceReason,omitempty"`
	SettingID   string `json:"settingId,omitempty"`
}

// statusReport is the device's last report; nil before the first.
func statusReport(d *androidmanagement.Device) json.RawMessage {
	if instant(d.LastStatusReportTime).IsZero() {
		return nil
	}
	r := report{
		ReportedAt: d.LastStatusReportTime, BatteryLevel: battery(d.PowerManagementEvents),
		State: oneLine(d.State), AppliedState: oneLine(d.AppliedState), PolicyCompliant: d.PolicyCompliant,
		NonComplianceDetails: shortcomings(d.NonComplianceDetails),
		MemoryInfo:           d.MemoryInfo, DeviceSettings: d.DeviceSettings,
		Displays:          d.Displays[:min(len(d.Displays), maxReportList)],
		InstalledAppCount: len(d.ApplicationReports), Applications: applications(d.ApplicationReports),
	}
	if n := len(d.HardwareStatusSamples); n > 0 {
		r.HardwareStatus = d.HardwareStatusSamples[n-1]
	}
	if d.SecurityPosture != nil {
		r.SecurityPosture = oneLine(d.SecurityPosture.DevicePosture)
	}
	if d.NetworkInfo != nil {
		r.NetworkOperatorName = oneLine(d.NetworkInfo.NetworkOperatorName)
	}
	if d.SoftwareInfo != nil {
		r.SystemUpdateInfo = d.SoftwareInfo.SystemUpdateInfo
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil // numbers that JSON cannot hold: not a report
	}
	return text
}

// applications are the apps that are installed, at most asset.MaxApps.
func applications(reports []*androidmanagement.ApplicationReport) []installed {
	var list []installed
	for _, a := range reports {
		if a != nil && a.State != "REMOVED" && a.PackageName != "" && len(list) < asset.MaxApps {
			list = append(list, installed{oneLine(a.PackageName), a.VersionCode})
		}
	}
	return list
}

// battery is the last level reported, in percent; nil if none was.
func battery(events []*androidmanagement.PowerManagementEvent) *float64 {
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; e != nil && e.EventType == "BATTERY_LEVEL_COLLECTED" {
			return &e.BatteryLevel
		}
	}
	return nil
}

func shortcomings(details []*androidmanagement.NonComplianceDetail) []nonCompliance {
	var list []nonCompliance
	for _, d := range details[:min(len(details), maxNonCompliance)] {
		if d != nil {
			list = append(list, nonCompliance{
				oneLine(d.SettingName), oneLine(d.FieldPath), oneLine(d.PackageName),
				oneLine(d.NonComplianceReason), oneLine(d.SpecificNonComplianceReason),
				policy.SettingAt(cmp.Or(d.FieldPath, d.SettingName)),
			})
		}
	}
	return list
}

// apps are what the device reports of its apps: none if its policy does not let
// it, nil before its first report.
func apps(d *androidmanagement.Device) []asset.App {
	if instant(d.LastStatusReportTime).IsZero() {
		return nil
	}
	list := []asset.App{}
	for _, a := range d.ApplicationReports[:min(len(d.ApplicationReports), 2*asset.MaxApps)] {
		if a != nil {
			list = append(list, asset.App{Package: oneLine(a.PackageName), Name: oneLine(a.DisplayName), Version: oneLine(a.VersionName),
				Source: oneLine(a.ApplicationSource), Removed: a.State == "REMOVED"})
		}
	}
	return list
}
