package devices

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/portal/geo"
)

// report is what the portal reads of a status report. Everything in it is the
// device's word.
type report struct {
	BatteryLevel         *float64        `json:"batteryLevel"`
	PolicyCompliant      *bool           `json:"policyCompliant"`
	SecurityPosture      string          `json:"securityPosture"`
	NetworkOperatorName  string          `json:"networkOperatorName"`
	NonCompliantSince    time.Time       `json:"nonCompliantSince"`
	NonComplianceDetails []noncompliance `json:"nonComplianceDetails"`
	DeviceSettings       *struct {
		IsDeviceSecure             *bool `json:"isDeviceSecure"`
		IsEncrypted                *bool `json:"isEncrypted"`
		VerifyAppsEnabled          *bool `json:"verifyAppsEnabled"`
		AdbEnabled                 *bool `json:"adbEnabled"`
		DevelopmentSettingsEnabled *bool `json:"developmentSettingsEnabled"`
		UnknownSourcesEnabled      *bool `json:"unknownSourcesEnabled"`
	} `json:"deviceSettings"`
	MemoryInfo *struct {
		TotalRAM             json.Number `json:"totalRam"`
		TotalInternalStorage json.Number `json:"totalInternalStorage"`
	} `json:"memoryInfo"`
	SystemUpdateInfo *struct {
		UpdateStatus string `json:"updateStatus"`
	} `json:"systemUpdateInfo"`
}

// noncompliance is an entry of a report about a setting that is not applied.
type noncompliance struct {
	SettingName string    `json:"settingName"`
	FieldPath   string    `json:"fieldPath"`
	PackageName string    `json:"packageName"`
	Reason      string    `json:"nonComplianceReason"`
	Since       time.Time `json:"since"`
}

// reportOf reads a device's report; what cannot be read is left out.
func reportOf(a asset.Asset) report {
	var r report
	if a.Device != nil && a.Device.StatusReport != nil {
		_ = json.Unmarshal(a.Device.StatusReport, &r) // what was read so far counts
	}
	return r
}

// battery is the level in percent; -1: not known.
func battery(a asset.Asset) int {
	if level := reportOf(a).BatteryLevel; level != nil && *level >= 0 && *level <= 100 {
		return int(*level)
	}
	return -1
}

// finding is one thing about a device's security, in plain words.
type finding struct {
	Tone frame.Tone
	Text string
}

// findings say how the device stands, what is wrong first.
func findings(r report) []finding {
	var bad, good []finding
	say := func(known *bool, wanted bool, right, wrong string) {
		switch {
		case known == nil:
		case *known == wanted:
			good = append(good, finding{frame.OK, right})
		default:
			bad = append(bad, finding{frame.Warn, wrong})
		}
	}
	if s := r.DeviceSettings; s != nil {
		say(s.IsDeviceSecure, true, "A screen lock is set", "No screen lock is set")
		say(s.IsEncrypted, true, "Storage is encrypted", "Storage is not encrypted")
		say(s.VerifyAppsEnabled, true, "Apps are verified", "Apps are not verified")
		say(s.AdbEnabled, false, "USB debugging is off", "USB debugging is on")
		say(s.DevelopmentSettingsEnabled, false, "Developer options are off", "Developer options are on")
		say(s.UnknownSourcesEnabled, false, "Unknown sources are off", "Apps from unknown sources are allowed")
	}
	switch r.SecurityPosture {
	case "SECURE":
		good = append(good, finding{frame.OK, "The platform finds it secure"})
	case "AT_RISK", "POTENTIALLY_COMPROMISED":
		bad = append(bad, finding{frame.Bad, "The platform finds it " + words(r.SecurityPosture)})
	}
	return append(bad, good...)
}

// words makes a constant readable: UP_TO_DATE is "up to date".
func words(constant string) string {
	return strings.ToLower(strings.ReplaceAll(constant, "_", " "))
}

// size is a number of bytes for people.
func size(n json.Number) string {
	bytes, err := strconv.ParseFloat(n.String(), 64)
	if err != nil || bytes <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f GB", bytes/(1<<30))
}

// badge is a state as people see it.
type badge struct {
	tone frame.Tone
	word string
}

// statusOf is an asset's status as a tone and a word.
func statusOf(s asset.Status) (frame.Tone, string) {
	b := cmp.Or(map[asset.Status]badge{asset.Active: {frame.OK, "Active"}, asset.Inactive: {frame.Warn, "Inactive"},
		asset.Synchronizing: {frame.Idle, "Synchronizing"}, asset.Pending: {frame.Idle, "Never enrolled"},
	}[s], badge{frame.Bad, "Deleted"})
	return b.tone, b.word
}

// stateOf is a command's status as a tone and a word: what the service knows.
func stateOf(s command.State) (frame.Tone, string) {
	b := cmp.Or(map[command.State]badge{command.Succeeded: {frame.OK, "Success"}, command.Failed: {frame.Bad, "Error"},
		command.Unconfirmed: {frame.Warn, "Unconfirmed"}}[s], badge{frame.Idle, "In progress"})
	return b.tone, b.word
}

// sender is who sent a command: "api-key", its id and its prefix; a person, or
// a connection, by name (contract 1.6).
func sender(a access.Actor) (kind, name, detail string) {
	switch a.Kind {
	case "API_KEY":
		return "api-key", a.ID, a.Prefix
	case "CONNECTION":
		return "connection", a.Name, a.ID
	case "USER":
		return "user", a.Name, ""
	default:
		return "service", a.Name, ""
	}
}

func fact(a asset.Asset, key string) string { return a.Specifications[key] }

func ownership(d *asset.Device) string {
	switch {
	case d.Ownership == asset.CompanyOwned && d.Mode == asset.FullyManaged:
		return "Company-owned, fully managed"
	case d.Ownership == asset.CompanyOwned && d.Mode == asset.WorkProfile:
		return "Company-owned, work profile"
	case d.Ownership == asset.PersonallyOwned:
		return "Personally owned, work profile"
	case d.Ownership == asset.CompanyOwned:
		return "Company-owned"
	default:
		return "Not known"
	}
}

func management(m asset.Management) string {
	return frame.Either(m == asset.Agent, "Our agent", "Android platform")
}

// pretty is JSON with indents.
func pretty(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	text, _ := json.MarshalIndent(value, "", "  ") // it was JSON
	return string(text)
}

// maxTrail is how many places a map shows.
const maxTrail = 200

// trail is where a device was, the oldest place first, and which of its places
// is looked at: its time is in the address, so that a link shows the same.
type trail struct {
	Places []asset.Location
	At     int
}

func (s *Section) trail(v *frame.Visit, d device) (trail, error) {
	places, err := s.Assets.Trail(v.Context(), d.CompanyID, d.ID, v.Now.Add(-asset.TrailPeriod), maxTrail)
	if len(places) == 0 && d.Device != nil && d.Device.Location != nil {
		places = []asset.Location{*d.Device.Location}
	}
	t := trail{places, len(places) - 1}
	for i, p := range places {
		if p.ReportedAt.UnixMilli() <= v.Numbers["at"] {
			t.At = i
		}
	}
	return t, err
}

// here is the place that is looked at.
func (t trail) here() asset.Location { return t.Places[t.At] }

// moment is a place's time, as the address has it.
func moment(l asset.Location) string { return strconv.FormatInt(l.ReportedAt.UnixMilli(), 10) }

// placePath shows the device at one of its places.
func (d device) placePath(l asset.Location) string { return d.path(locationTab) + "?at=" + moment(l) }

// spotText is a place in words, for the slider.
func spotText(l asset.Location) string {
	return frame.Exact(l.ReportedAt) + ", " + geo.Coordinates(l) + ", " + geo.Accuracy(l.AccuracyMeters)
}

// endedText says what is known of the command that ended a device's management.
func endedText(c command.Command) string {
	return frame.Either(c.State == command.Succeeded, "the device confirmed it, and is no longer managed.",
		"the device is no longer managed. It has not confirmed that it was erased.")
}
