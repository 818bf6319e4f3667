package asset

import (
	"encoding/json"
	"reflect"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// View is the public asset object (contract 2.1).
type View struct {
	PathName       string               `json:"pathName" doc:"Path name of the asset; its id in every other operation."`
	Identification string               `json:"identification" doc:"Name of the asset for people." example:"Warehouse 7"`
	Status         Status               `json:"status" enum:"ACTIVE|INACTIVE|SYNCHRONIZING|PENDING|DELETED" doc:"ACTIVE, INACTIVE or SYNCHRONIZING while enrolled; PENDING before, DELETED after."`
	SyncedAt       *operation.Timestamp `json:"syncedAt" doc:"When the asset was last synchronized; null: never."`
	CustomData     map[string]any       `json:"customData" doc:"The company's own keys, each with a string, and tags: an array of strings."`
	Specifications Specifications       `json:"specifications" doc:"Hardware and software facts: serialNumber, model, manufacturer, brand, osVersion and more."`
	ManagedDevice  *DeviceView          `json:"managedDevice" doc:"The managed device; null while the asset is not enrolled."`
}

// DeviceView is the public managed device inside a View.
type DeviceView struct {
	ManagementType       Management           `json:"managementType" enum:"PLATFORM|AGENT" doc:"Who manages the device: the vendor's platform, or our own agent."`
	Ownership            *Ownership           `json:"ownership" enum:"COMPANY_OWNED|PERSONALLY_OWNED" doc:"COMPANY_OWNED or PERSONALLY_OWNED; null: not known."`
	PolicyID             *string              `json:"policyId" doc:"Path name of the policy assigned to the device."`
	PolicyName           *string              `json:"policyName" doc:"Its display name." example:"Warehouse"`
	PolicyVersionApplied *int                 `json:"policyVersionApplied" doc:"Version of the policy that the device reported to have applied; null: none yet."`
	EnrolledAt           *operation.Timestamp `json:"enrolledAt" doc:"When the device was enrolled."`
	LastSeenAt           *operation.Timestamp `json:"lastSeenAt" doc:"When the device was last heard of."`
	LostMode             bool                 `json:"lostMode" doc:"Whether the device is in lost mode."`
	PushReachable        bool                 `json:"pushReachable" doc:"Whether the device has a valid push token, which messages need."`
	StatusReport         *StatusReport        `json:"statusReport" doc:"The latest status report: reportedAt, batteryLevel and what else the device says; null: none."`
	Location             *LocationView        `json:"location" doc:"The latest location; null: none."`
}

// Listed is an asset in a list: whole, or its main facts.
type Listed struct {
	asset Asset
	basic bool
}

// Either implements operation.Either.
func (Listed) Either() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[View](), reflect.TypeFor[Basic]()}
}

// MarshalJSON implements json.Marshaler.
func (l Listed) MarshalJSON() ([]byte, error) {
	if l.basic {
		return json.Marshal(l.asset.Basic())
	}
	return json.Marshal(l.asset.Public())
}

// Basic is the main facts of an asset.
type Basic struct {
	PathName       string               `json:"pathName" doc:"Path name of the asset; its id in every other operation."`
	Identification string               `json:"identification" doc:"Name of the asset for people." example:"Warehouse 7"`
	SerialNumber   *string              `json:"serialNumber" doc:"Serial number; null: not known." example:"R58N90ABCDE"`
	Model          *string              `json:"model" doc:"Model; null: not known." example:"Pixel 8"`
	Status         Status               `json:"status" enum:"ACTIVE|INACTIVE|SYNCHRONIZING|PENDING|DELETED" doc:"Status of the asset."`
	ManagementType *Management          `json:"managementType" enum:"PLATFORM|AGENT" doc:"Who manages the device; null: it is not enrolled."`
	Ownership      *Ownership           `json:"ownership" enum:"COMPANY_OWNED|PERSONALLY_OWNED" doc:"Whose the device is; null: not known."`
	PolicyID       *string              `json:"policyId" doc:"Path name of the policy assigned to the device."`
	PolicyName     *string              `json:"policyName" doc:"Its display name." example:"Warehouse"`
	LastSeenAt     *operation.Timestamp `json:"lastSeenAt" doc:"When the device was last heard of."`
	Tags           []string             `json:"tags" doc:"The asset's tags." example:"[\"store-12\"]"`
	User           *string              `json:"user" doc:"The name of the person to whom the device is assigned; null: none." example:"Ada Lovelace"`
}

// Basic returns the main facts of the asset.
func (a Asset) Basic() Basic {
	whole := a.Public()
	b := Basic{PathName: whole.PathName, Identification: whole.Identification, Status: whole.Status, Tags: a.tags(),
		SerialNumber: known(a.Specifications["serialNumber"]), Model: known(a.Specifications["model"]), User: known(a.CustomData[UserKey])}
	if d := whole.ManagedDevice; d != nil {
		b.ManagementType, b.Ownership, b.PolicyID, b.PolicyName, b.LastSeenAt = &d.ManagementType, d.Ownership, d.PolicyID,
			d.PolicyName, d.LastSeenAt
	}
	return b
}

// LocationView is where a device was, inside a DeviceView.
type LocationView struct {
	Latitude       float64             `json:"latitude"`
	Longitude      float64             `json:"longitude"`
	AccuracyMeters float64             `json:"accuracyMeters"`
	ReportedAt     operation.Timestamp `json:"reportedAt"`
}

// The keys of customData with a meaning: tags is reserved, user and userEmail are who a
// device is assigned to.
const (
	tagsKey      = "tags"
	UserKey      = "user"
	UserEmailKey = "userEmail"
)

// Public returns the asset as every surface shows it.
func (a Asset) Public() View {
	specifications := a.Specifications
	if specifications == nil {
		specifications = map[string]string{}
	}
	return View{
		PathName: a.PathName(), Identification: a.Identification, Status: a.Status,
		SyncedAt: operation.TimestampOf(a.SyncedAt), CustomData: a.customData(),
		Specifications: specifications, ManagedDevice: a.deviceView(),
	}
}

func (a Asset) customData() map[string]any {
	data := make(map[string]any, len(a.CustomData)+1)
	for key, value := range a.CustomData {
		data[key] = value
	}
	data[tagsKey] = a.tags()
	return data
}

func (a Asset) tags() []string {
	if a.Tags == nil {
		return []string{}
	}
	return a.Tags
}

func (a Asset) deviceView() *DeviceView {
	d := a.Device
	if d == nil {
		return nil
	}
	view := &DeviceView{
		ManagementType: d.Management, Ownership: known(d.Ownership),
		PolicyName: known(d.PolicyName), PolicyVersionApplied: known(d.PolicyApplied),
		EnrolledAt: operation.TimestampOf(d.EnrolledAt), LastSeenAt: operation.TimestampOf(d.LastSeenAt),
		LostMode: d.LostMode, PushReachable: d.PushReachable,
	}
	if d.StatusReport != nil {
		view.StatusReport = &StatusReport{d.StatusReport}
	}
	if d.PolicyID != "" {
		view.PolicyID = known(resource.Of(a.CompanySlug, resource.Policies, d.PolicyID))
	}
	if l := d.Location; l != nil {
		view.Location = &LocationView{l.Latitude, l.Longitude, l.AccuracyMeters, operation.Timestamp{Time: l.ReportedAt}}
	}
	return view
}

// known returns a pointer to v, or nil for the zero value, which means unknown.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
