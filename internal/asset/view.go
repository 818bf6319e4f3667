package asset

import (
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/name"
	"github.com/musterhq/muster/internal/operation"
)

// View is the public asset object (contract 2.1, decisions "Assets").
type View struct {
	PathName       string            `json:"pathName" doc:"Path name of the asset; its id in every other operation."`
	Identification string            `json:"identification" doc:"Name of the asset for people."`
	Status         Status            `json:"status" doc:"ACTIVE, INACTIVE or SYNCHRONIZING while enrolled; PENDING before, DELETED after."`
	SyncedAt       *time.Time        `json:"syncedAt" doc:"When the asset was last synchronized; null: never."`
	CustomData     map[string]any    `json:"customData" doc:"The company's own keys, each with a string, and tags: an array of strings."`
	Specifications map[string]string `json:"specifications" doc:"Hardware and software facts: serialNumber, model, manufacturer, brand, osVersion and more."`
	ManagedDevice  *DeviceView       `json:"managedDevice" doc:"The managed device; null while the asset is not enrolled."`
}

// DeviceView is the public managed device inside a View.
type DeviceView struct {
	ManagementType       Management      `json:"managementType"`
	Ownership            *Ownership      `json:"ownership"`
	PolicyID             *string         `json:"policyId"`
	PolicyName           *string         `json:"policyName"`
	PolicyVersionApplied *int            `json:"policyVersionApplied"`
	EnrolledAt           *time.Time      `json:"enrolledAt"`
	LastSeenAt           *time.Time      `json:"lastSeenAt"`
	LostMode             bool            `json:"lostMode"`
	PushReachable        bool            `json:"pushReachable"`
	StatusReport         json.RawMessage `json:"statusReport"`
	Location             *Location       `json:"location"`
}

// tagsKey is reserved in customData.
const tagsKey = "tags"

// Public returns the asset as every surface shows it.
func (a Asset) Public() View {
	specifications := a.Specifications
	if specifications == nil {
		specifications = map[string]string{}
	}
	return View{
		PathName: a.PathName(), Identification: a.Identification, Status: a.Status,
		SyncedAt: operation.Moment(a.SyncedAt), CustomData: a.customData(),
		Specifications: specifications, ManagedDevice: a.deviceView(),
	}
}

func (a Asset) customData() map[string]any {
	data := make(map[string]any, len(a.CustomData)+1)
	for key, value := range a.CustomData {
		data[key] = value
	}
	tags := a.Tags
	if tags == nil {
		tags = []string{}
	}
	data[tagsKey] = tags
	return data
}

func (a Asset) deviceView() *DeviceView {
	d := a.Device
	if d == nil {
		return nil
	}
	view := &DeviceView{
		ManagementType: d.Management, Ownership: known(d.Ownership),
		PolicyName: known(d.PolicyName), PolicyVersionApplied: known(d.PolicyApplied),
		EnrolledAt: operation.Moment(d.EnrolledAt), LastSeenAt: operation.Moment(d.LastSeenAt),
		LostMode: d.LostMode, PushReachable: d.PushReachable, StatusReport: d.StatusReport,
	}
	if d.PolicyID != "" {
		view.PolicyID = known(name.Of(a.CompanySlug, name.Policies, d.PolicyID))
	}
	if d.Location != nil {
		location := *d.Location
		location.ReportedAt = location.ReportedAt.UTC()
		view.Location = &location
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
