package emulator

import (
	"slices"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
)

// Ownership and management modes, in the vendor's words.
const (
	CompanyOwned    = "COMPANY_OWNED"
	PersonallyOwned = "PERSONALLY_OWNED"
	deviceOwner     = "DEVICE_OWNER"
	profileOwner    = "PROFILE_OWNER"
)

// How a simulated device answers commands.
const (
	OutcomeSuccess = "SUCCESS" // carries them out
	OutcomeError   = "ERROR"   // fails them
	OutcomeHold    = "HOLD"    // leaves them undone until it is told otherwise
)

// simulated is a device: what the platform knows about it and what it is like.
type simulated struct {
	ID        string    `json:"id"`
	Seq       int64     `json:"seq"`
	Enrolled  time.Time `json:"enrolled"`
	UserID    string    `json:"userId"`
	TokenName string    `json:"tokenName"`
	TokenData string    `json:"tokenData,omitempty"`
	Previous  []string  `json:"previous,omitempty"` // earlier names of the same hardware

	Ownership string   `json:"ownership"`
	Mode      string   `json:"mode"`
	APILevel  int      `json:"apiLevel"`
	Hardware  hardware `json:"hardware"`

	// What the administrator wants of it.
	PolicyID string                `json:"policyId"`
	State    string                `json:"state"` // ACTIVE or DISABLED
	Disabled *am.UserFacingMessage `json:"disabledReason,omitempty"`

	// How it behaves.
	Online    bool   `json:"online"`
	Outcome   string `json:"outcome"`
	ErrorCode string `json:"errorCode,omitempty"`
	LatencyMS int    `json:"latencyMs"`

	// What it is doing.
	Packages      []string                   `json:"packages"`
	Applied       applied                    `json:"applied"`
	NonCompliance []*am.NonComplianceDetail  `json:"nonCompliance,omitempty"`
	LostSince     time.Time                  `json:"lostSince"`     // zero: not in lost mode
	PasswordReset time.Time                  `json:"passwordReset"` // by the administrator
	LostModeExit  time.Time                  `json:"lostModeExit"`  // by the user
	Battery       int                        `json:"battery"`       // percent
	Latitude      float64                    `json:"latitude"`
	Longitude     float64                    `json:"longitude"`
	Power         []*am.PowerManagementEvent `json:"power,omitempty"`

	Operations []*operation `json:"operations,omitempty"` // oldest first
	Reported   *am.Device   `json:"reported"`             // its last report; replaced, never changed
	Deleted    bool         `json:"deleted,omitempty"`    // the platform has forgotten it

	owner *enterprise
}

// applied is the policy that a device has applied.
type applied struct {
	PolicyID  string                      `json:"policyId,omitempty"`
	Version   int64                       `json:"version,omitempty"`
	At        time.Time                   `json:"at"`
	Reporting *am.StatusReportingSettings `json:"reporting,omitempty"`
	Password  bool                        `json:"password,omitempty"` // a password is required
}

// hardware is what a device is made of.
type hardware struct {
	Manufacturer string `json:"manufacturer"`
	Brand        string `json:"brand"`
	Model        string `json:"model"`
	Board        string `json:"board"`
	Serial       string `json:"serial"`
	MemoryGB     int    `json:"memoryGb"`
	StorageGB    int    `json:"storageGb"`
	Width        int    `json:"width"`
	Height       int    `json:"height"`
	Density      int    `json:"density"`
	HasPhone     bool   `json:"hasPhone"`
	IMEI         string `json:"imei,omitempty"`
	MAC          string `json:"mac"`
	SpecificID   string `json:"specificId,omitempty"` // of a personally owned device, from Android 12
}

func (d *simulated) name() string { return d.owner.name() + "/devices/" + d.ID }

func (d *simulated) fullyManaged() bool { return d.Mode == deviceOwner }

func (d *simulated) personal() bool { return d.Ownership == PersonallyOwned }

func (d *simulated) lost() bool { return !d.LostSince.IsZero() }

func (d *simulated) latency() time.Duration { return time.Duration(d.LatencyMS) * time.Millisecond }

// acts reports whether the device does anything by itself now.
func (d *simulated) acts() bool { return d.Online && d.Outcome != OutcomeHold }

// appliedState is the state that the device is in by its own account.
func (d *simulated) appliedState() string {
	switch {
	case d.Deleted:
		return "DELETED"
	case d.lost():
		return "LOST"
	case d.Applied.Version == 0:
		return "PROVISIONING"
	default:
		return d.State
	}
}

// powerEventsKept bounds what a device remembers.
const powerEventsKept = 8

func (d *simulated) power(kind string, at time.Time) {
	event := &am.PowerManagementEvent{CreateTime: timestamp(at), EventType: kind}
	if kind == "BATTERY_LEVEL_COLLECTED" {
		event.BatteryLevel = float64(d.Battery)
	}
	d.Power = append(d.Power, event)
	if extra := len(d.Power) - powerEventsKept; extra > 0 {
		d.Power = slices.Delete(d.Power, 0, extra)
	}
}

// forget takes a device out of the world for good.
func (e *Emulator) forget(d *simulated) {
	d.Deleted = true
	delete(e.world.byDevice, d.ID)
	d.owner.Devices = slices.DeleteFunc(d.owner.Devices, func(other *simulated) bool { return other == d })
	e.touch()
}
