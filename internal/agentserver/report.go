package agentserver

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/validate"
)

// possible reports whether a device's clock can have shown a time: Android was
// published in September 2008.
func possible(unixMilli int64) bool {
	return unixMilli >= time.Date(2008, time.September, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// deviceTime is a time that a device names. The service's own time stands in for one
// that lies in the future or cannot be.
func deviceTime(unixMilli int64, now time.Time) time.Time {
	if !possible(unixMilli) || unixMilli > now.UnixMilli() {
		return now.UTC()
	}
	return time.UnixMilli(unixMilli).UTC()
}

// statusReport is what a device reports of itself, with the time of the report.
// Of the device's members it keeps those whose cleaned name keep accepts.
func statusReport(values json.RawMessage, at time.Time, keep func(name string) bool) json.RawMessage {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(values, &given) // what is no object has no members
	kept := map[string]json.RawMessage{}
	for name, value := range given {
		if name = validate.Clean(name, enrollment.MaxMemberName); keep(name) {
			kept[name] = value
		}
	}
	if list, has := kept["applications"]; has {
		kept["applications"] = applications(list)
	}
	kept["reportedAt"], _ = json.Marshal(operation.Timestamp{Time: at}) // such a time always can be written
	text, _ := json.Marshal(kept)                                       // what was read can be written
	return text
}

// applications are the apps of a report with a member packageName each. Agents before
// version 2.2 reported the packages alone.
func applications(list json.RawMessage) json.RawMessage {
	var names []string
	if json.Unmarshal(list, &names) != nil {
		return list
	}
	type app struct {
		PackageName string `json:"packageName"`
	}
	text, _ := json.Marshal(slice.Map(names, func(name string) app { return app{name} })) // texts can be written
	return text
}

// companionMember reports whether a companion may put a member into the status
// report of its device: those that the agent reports. The others are the
// platform's and the service's.
func companionMember(name string) bool {
	return slices.Contains([]string{"batteryLevel", "applications", "deviceSettings", "displays", "hardwareStatus", "memoryInfo",
		"networkInfo", "powerEvents", "softwareInfo", "systemProperties"}, name)
}

// aheadOf is how far ahead of the service's clock a place's time may lie: a
// device's clock is not set right below that.
const aheadOf = protocol.MaxSkew * time.Millisecond

// timely reports whether a place can have been found at that time.
func timely(unixMilli int64, now time.Time) bool {
	return possible(unixMilli) && unixMilli <= now.Add(aheadOf).UnixMilli()
}

// withoutPlace is the outcome of a LOCATION_UPDATE that brought no place which
// could be kept.
func withoutPlace(given *protocol.Location, now time.Time) string {
	switch {
	case given == nil:
		return "the device reported no location"
	case !timely(given.At, now):
		return "the location that the device reported has an impossible time"
	}
	return "the location that the device reported cannot be kept"
}

// location is a place that the device reports, or nil for one whose time or
// place cannot be. The store keeps it only where the place was asked for.
func (l *Server) location(ctx context.Context, d agentdevice.Device, given *protocol.Location, now time.Time) *asset.Location {
	if given == nil {
		return nil
	}
	if !timely(given.At, now) {
		l.Log.WarnContext(ctx, "location with an impossible time dropped", "device", d.ID, "at", given.At)
		return nil
	}
	return enrollment.CleanLocation(&asset.Location{Latitude: given.Latitude, Longitude: given.Longitude,
		AccuracyMeters: given.AccuracyMeters, ReportedAt: time.UnixMilli(given.At)}, now, now)
}

// capabilities are those that the service knows, each once, in order; nil if
// the device says nothing of them.
func capabilities(offered []protocol.Capability) []protocol.Capability {
	if offered == nil {
		return nil
	}
	able := []protocol.Capability{}
	for _, c := range offered {
		switch c {
		case protocol.UserRestrictions, protocol.Wipe, protocol.Shutdown, protocol.Reboot, protocol.OwnerAPI, protocol.FreshLocation,
			protocol.Notify, protocol.Persistence, protocol.SilentInstall, protocol.Launch:
			able = append(able, c)
		}
	}
	slices.Sort(able)
	return slices.Compact(able)
}

// notApplied is a setting of the policy that the device does not have, in the
// words that platform devices use.
type notApplied struct {
	Setting string                `json:"settingName"`
	Reason  protocol.SettingState `json:"nonComplianceReason"`
	Detail  string                `json:"specificNonComplianceReason,omitempty"`
	ID      string                `json:"settingId,omitempty"`
}

// maxShort bounds the settings of a report that a device does not have: there
// are fewer settings than that.
const maxShort = 100

// compliance is what a policy report says, as members of a status report. What
// has no meaning on the device is no shortcoming, and what its agent cannot do or has
// not done yet does not make it uncompliant.
func compliance(r protocol.PolicyReport, now time.Time) (json.RawMessage, error) {
	short, compliant := []notApplied{}, true
	for _, s := range r.Settings {
		if len(short) == maxShort {
			break
		}
		if s.State == protocol.SettingFailed || s.State == protocol.RolledBack {
			compliant = false
		}
		if s.State != protocol.Applied && s.State != protocol.NotApplicable {
			missing := notApplied{Setting: s.ID, Reason: s.State, Detail: s.Detail}
			if known, has := policy.Lookup(s.ID); has {
				missing.ID = known.ID
			}
			short = append(short, missing)
		}
	}
	return json.Marshal(map[string]any{"policyCompliant": compliant, "nonComplianceDetails": short,
		"reportedAt": operation.Timestamp{Time: now}})
}

// KeepLog keeps the log that a command asked the device for, as lines of printable
// UTF-8. It implements agentapi.Service.
func (l *Server) KeepLog(ctx context.Context, d agentdevice.Device, commandID string, text []byte) error {
	lines := validate.CleanLines(string(text))
	err := l.Logs.KeepLog(ctx, d, agentdevice.Log{ID: commandID, At: l.Now(), Bytes: len(lines), Text: lines})
	if fault.CodeOf(err) == fault.NotFound {
		return &protocol.Refusal{Code: protocol.NotFound, Message: "no open command asks this device for its log"}
	}
	return err
}

// unproved says why a command that the device reports as done is not done; empty: it is
// done. withoutPlace is why this check-in brought no place; empty: it brought one.
func unproved(of command.Outstanding, withoutPlace string) string {
	switch {
	case of.Type == string(command.LocationUpdate):
		return withoutPlace
	case of.Type == string(command.UploadLog) && !of.Logged:
		return "the device sent no log"
	}
	return ""
}
