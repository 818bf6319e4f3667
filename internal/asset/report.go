package asset

import (
	"encoding/json"
	"reflect"

	"github.com/musterhq/muster/internal/operation"
)

// StatusReport is a device's last report as it is stored, a JSON object whose members are
// those of ReportMembers and others that the device has.
type StatusReport struct{ Text json.RawMessage }

// Wire implements operation.Wired.
func (StatusReport) Wire() reflect.Type { return reflect.TypeFor[ReportMembers]() }

// MarshalJSON implements json.Marshaler.
func (r StatusReport) MarshalJSON() ([]byte, error) { return r.Text, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (r *StatusReport) UnmarshalJSON(text []byte) error { return r.Text.UnmarshalJSON(text) }

// Specifications are facts about a device by name: those of KnownSpecifications, and others
// that an agent names.
type Specifications map[string]string

// KnownSpecifications are the facts that have a fixed name. Which of them a device reports
// depends on its policy and its Android version.
type KnownSpecifications struct {
	SerialNumber    string `json:"serialNumber,omitempty" doc:"Serial number of the device." example:"R58N90ABCDE"`
	Model           string `json:"model,omitempty" doc:"Model." example:"Pixel 8"`
	Manufacturer    string `json:"manufacturer,omitempty" doc:"Manufacturer." example:"Google"`
	Brand           string `json:"brand,omitempty" doc:"Brand." example:"google"`
	OSVersion       string `json:"osVersion,omitempty" doc:"Version of Android." example:"16"`
	SecurityPatch   string `json:"securityPatchLevel,omitempty" doc:"Security patch level, as the device writes it." example:"2026-10-01"`
	IMEI            string `json:"imei,omitempty" doc:"IMEI; personally owned devices do not report it." example:"353544804815496"`
	MEID            string `json:"meid,omitempty" doc:"MEID." example:"35354480481549"`
	WiFiMAC         string `json:"wifiMacAddress,omitempty" doc:"MAC address of Wi-Fi." example:"02:71:6c:7d:f6:36"`
	APILevel        string `json:"apiLevel,omitempty" doc:"API level of Android, in digits." example:"36"`
	Build           string `json:"androidBuildNumber,omitempty" doc:"Build of Android." example:"BP2A.250605.031"`
	Bootloader      string `json:"bootloaderVersion,omitempty" doc:"Version of the bootloader." example:"ripcurrent-16.0"`
	Kernel          string `json:"deviceKernelVersion,omitempty" doc:"Version of the kernel." example:"6.1.75-android14"`
	Language        string `json:"primaryLanguageCode,omitempty" doc:"Language of the device, as BCP 47." example:"en-US"`
	PolicyApp       string `json:"androidDevicePolicyVersionName,omitempty" doc:"Version of Android Device Policy." example:"117.23.0"`
	Hardware        string `json:"hardware,omitempty" doc:"Name of the hardware." example:"shiba"`
	BasebandVersion string `json:"deviceBasebandVersion,omitempty" doc:"Version of the baseband." example:"g5300i-240605"`
}

// Wire implements operation.Wired.
func (Specifications) Wire() reflect.Type { return reflect.TypeFor[KnownSpecifications]() }

// ReportMembers are the members of a status report that have a fixed shape. The service
// drops those of a device's report that do not have it (enrollment.Observation.Clean).
type ReportMembers struct {
	ReportedAt        operation.Timestamp  `json:"reportedAt" doc:"When the device reported."`
	BatteryLevel      *float64             `json:"batteryLevel,omitempty" doc:"Battery level in percent." example:"80"`
	PolicyCompliant   *bool                `json:"policyCompliant,omitempty" doc:"Whether the device follows its policy: what the platform reports, or of a device with our agent whether no setting is in state failed or rolled_back."`
	NonCompliantSince *operation.Timestamp `json:"nonCompliantSince,omitempty" doc:"Time of the first of the reports without interruption in which the device did not follow its policy; only while policyCompliant is false."`
	NonCompliance     []NonCompliance      `json:"nonComplianceDetails,omitempty" doc:"The settings that the device has not applied, at most 100, also those that do not make it non-compliant."`

	State             string         `json:"state,omitempty" doc:"State at the platform." example:"ACTIVE"`
	AppliedState      string         `json:"appliedState,omitempty" doc:"State that the device applied, at the platform." example:"ACTIVE"`
	SecurityPosture   string         `json:"securityPosture,omitempty" doc:"The platform's rating: SECURE, AT_RISK or POTENTIALLY_COMPROMISED." example:"SECURE"`
	OperatorName      string         `json:"networkOperatorName,omitempty" doc:"Mobile network; platform only, an agent has it in networkInfo." example:"Example Mobile"`
	InstalledAppCount int            `json:"installedAppCount,omitempty" doc:"Number of reported apps; platform only."`
	Applications      []InstalledApp `json:"applications,omitempty" doc:"Installed apps, at most 1,000."`
	AgentErrors       []string       `json:"agentErrors,omitempty" doc:"Problems of our agent, in its words." example:"[\"the journal was damaged and has been made again\"]"`

	DeviceSettings   *SettingsReport   `json:"deviceSettings,omitempty" doc:"Settings that matter for security."`
	Displays         []DisplayReport   `json:"displays,omitempty" doc:"Displays, at most 16 of the platform's."`
	HardwareStatus   *HardwareReport   `json:"hardwareStatus,omitempty" doc:"Temperatures in degrees Celsius and more."`
	MemoryInfo       *MemoryReport     `json:"memoryInfo,omitempty" doc:"Memory and storage."`
	SystemUpdateInfo *UpdateReport     `json:"systemUpdateInfo,omitempty" doc:"System update; platform only."`
	NetworkInfo      map[string]any    `json:"networkInfo,omitempty" doc:"Network; agent only." example:"{\"wifiEnabled\":true}"`
	PowerEvents      []map[string]any  `json:"powerEvents,omitempty" doc:"Starts of the device; agent only." example:"[{\"type\":\"BOOT\"}]"`
	SoftwareInfo     map[string]any    `json:"softwareInfo,omitempty" doc:"Versions of the software; agent only, the platform's are in specifications." example:"{\"androidVersion\":\"16\"}"`
	SystemProperties map[string]string `json:"systemProperties,omitempty" doc:"System properties of Android; agent only." example:"{\"ro.build.type\":\"user\"}"`
}

// NonCompliance is a setting that a device has not applied.
type NonCompliance struct {
	SettingName string `json:"settingName,omitempty" doc:"A member of the platform's policy, or a setting's id for a device with our agent." example:"cameraAccess"`
	FieldPath   string `json:"fieldPath,omitempty" doc:"The member within settingName; platform only." example:"deviceConnectivityManagement.usbDataAccess"`
	PackageName string `json:"packageName,omitempty" doc:"The app that it is about; platform only." example:"com.example.app"`
	Reason      string `json:"nonComplianceReason,omitempty" doc:"The platform's reason, such as API_LEVEL, or the agent's state of the setting: pending, unsupported, failed, rolled_back." example:"API_LEVEL"`
	Specific    string `json:"specificNonComplianceReason,omitempty" doc:"The platform's more specific reason, or the agent's words." example:"PERMISSIBLE_USAGE_RESTRICTION"`

	SettingID string               `json:"settingId,omitempty" doc:"The setting's id in the catalog of settings, if it is there." example:"CAMERA"`
	Since     *operation.Timestamp `json:"since,omitempty" doc:"Time of the first of the reports without interruption that name it."`
}

// InstalledApp is an app in a status report.
type InstalledApp struct {
	PackageName string `json:"packageName" example:"com.example.app"`
	VersionCode *int64 `json:"versionCode,omitempty" doc:"Version code; absent: not reported." example:"42"`
}

// SettingsReport is what a device reports of settings that matter for security.
type SettingsReport struct {
	AdbEnabled          *bool  `json:"adbEnabled,omitempty" doc:"USB debugging is on."`
	DevelopmentSettings *bool  `json:"developmentSettingsEnabled,omitempty" doc:"Developer options are on."`
	IsDeviceSecure      *bool  `json:"isDeviceSecure,omitempty" doc:"A screen lock is set; platform only."`
	IsEncrypted         *bool  `json:"isEncrypted,omitempty" doc:"Storage is encrypted; platform only."`
	EncryptionStatus    string `json:"encryptionStatus,omitempty" doc:"How storage is encrypted; platform only." example:"ACTIVE_PER_USER"`
	UnknownSources      *bool  `json:"unknownSourcesEnabled,omitempty" doc:"Apps from unknown sources are allowed; platform only."`
	VerifyApps          *bool  `json:"verifyAppsEnabled,omitempty" doc:"Apps are verified; platform only."`
	Encrypted           *bool  `json:"encrypted,omitempty" doc:"Storage is encrypted; agent only."`
	VerifiedBootState   string `json:"verifiedBootState,omitempty" doc:"Verified boot; agent only." example:"green"`
}

// DisplayReport is a display that a device reports.
type DisplayReport struct {
	Name        string `json:"name,omitempty" example:"Built-in Screen"`
	DisplayID   *int64 `json:"displayId,omitempty"`
	Width       *int64 `json:"width,omitempty" doc:"Pixels."`
	Height      *int64 `json:"height,omitempty" doc:"Pixels."`
	Density     *int64 `json:"density,omitempty" doc:"Dots per inch."`
	RefreshRate *int64 `json:"refreshRate,omitempty" doc:"Frames per second."`
	State       string `json:"state,omitempty" example:"ON"`
}

// HardwareReport is the state of a device's hardware. Temperatures are in degrees Celsius.
type HardwareReport struct {
	CreateTime          string             `json:"createTime,omitempty" doc:"When the platform's values were measured." example:"2026-11-21T09:30:00Z"`
	BatteryTemperatures []float64          `json:"batteryTemperatures,omitempty"`
	CPUTemperatures     []float64          `json:"cpuTemperatures,omitempty"`
	GPUTemperatures     []float64          `json:"gpuTemperatures,omitempty"`
	SkinTemperatures    []float64          `json:"skinTemperatures,omitempty"`
	CPUUsages           []float64          `json:"cpuUsages,omitempty" doc:"Percent."`
	FanSpeeds           []float64          `json:"fanSpeeds,omitempty" doc:"Rotations per minute."`
	Temperatures        map[string]float64 `json:"temperatures,omitempty" doc:"By the name of the sensor; agent only." example:"{\"battery\":29.5}"`
}

// Bytes is a number of bytes: the platform writes digits in a text, our agent a number.
type Bytes struct{}

// Types implements operation.Typed.
func (Bytes) Types() []string { return []string{"string", "integer"} }

// MemoryReport is how much memory and storage a device has.
type MemoryReport struct {
	TotalRAM             *Bytes `json:"totalRam,omitempty" doc:"Bytes; of the platform digits in a text." example:"6442450944"`
	AvailableRAM         *Bytes `json:"availableRam,omitempty" doc:"Bytes; agent only." example:"2147483648"`
	TotalInternalStorage *Bytes `json:"totalInternalStorage,omitempty" doc:"Bytes; of the platform digits in a text." example:"137438953472"`
	FreeInternalStorage  *Bytes `json:"freeInternalStorage,omitempty" doc:"Bytes; agent only." example:"68719476736"`
}

// UpdateReport is whether a system update waits for a device.
type UpdateReport struct {
	UpdateStatus       string `json:"updateStatus,omitempty" doc:"Such as UP_TO_DATE or SECURITY_UPDATE_AVAILABLE." example:"UP_TO_DATE"`
	UpdateReceivedTime string `json:"updateReceivedTime,omitempty" doc:"When the update was first known." example:"2026-11-21T09:30:00Z"`
}
