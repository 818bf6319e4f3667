package devices

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// deviation is a setting that a device has not applied, in the words of the catalog.
type deviation struct {
	Tone  frame.Tone
	Label string
	Path  string // of the platform's policy, for a setting without a label
	App   string
	Why   string
	Next  string // what follows
	Since time.Time
}

// reason is why a setting is not applied, and what follows.
type reason struct{ why, next string }

// platformReasons are those of the platform.
func platformReasons() map[string]reason {
	return map[string]reason{
		"API_LEVEL": {"The device's version of Android does not have this setting.", "It has no effect until Android is updated."},
		"MANAGEMENT_MODE": {"The way in which the device is managed does not have this setting.",
			"It has no effect on this device, unless the device is enrolled in another way."},
		"USER_ACTION": {"The person who uses the device has not done what the setting needs.",
			"It takes effect when they do it. Send them a message, or ask them."},
		"INVALID_VALUE":     {"The value in the policy is not valid.", "It has no effect on any device until the policy is corrected."},
		"APP_NOT_INSTALLED": {"The app that the setting needs is not installed.", "It takes effect when the app is installed."},
		"UNSUPPORTED": {"Android Device Policy on the device does not have this setting.",
			"It has no effect until that app is updated."},
		"APP_INSTALLED": {"An app that the policy blocks is installed.", "The device reports this until the app is uninstalled."},
		"PENDING":       {"The device has not applied it yet.", "The platform expects the device to apply it shortly."},
		"APP_INCOMPATIBLE": {"The app does not support the setting.",
			"It has no effect on this app until a version that supports it is installed."},
		"APP_NOT_UPDATED": {"The app is older than the policy demands.", "The device reports this until the app is updated."},
		"OS_NOT_PERMITTED": {"The policy does not permit the device's version of Android.",
			"The device reports this until Android is updated or the policy is changed."},
		"DEVICE_INCOMPATIBLE": {"The device does not meet the policy's requirements.", "It has no effect on this device."},
		"APP_SIGNING_CERT_MISMATCH": {"The app is signed with another certificate than the policy names.",
			"It has no effect on this app until the certificate in the policy or the app is replaced."},
		"PROJECT_NOT_PERMITTED": {"Google does not permit the setting for the Cloud project of this service.",
			"It has no effect on any device until Google permits it for the project."},
	}
}

// agentReasons are the states of a setting that our agent reports.
func agentReasons() map[string]reason {
	return map[string]reason{
		string(protocol.Pending): {"The device does not show it yet.", "The agent checks it again by itself."},
		string(protocol.Unsupported): {"The device, or our agent on it, cannot do this.",
			"It has no effect on this device. This alone does not make the device non-compliant."},
		string(protocol.SettingFailed): {"Our agent could not set it.", "The agent tries again by itself."},
		string(protocol.RolledBack): {"It cut the device off from the network, so our agent took it back.",
			"The agent does not try again until the policy changes."},
	}
}

// unknownReason stands for one that is in no table: the device's own words are not shown.
var unknownReason = reason{"The device gave a reason that Muster does not know.", //nolint:gochecknoglobals // never written to
	"What follows is not known. The status report on the overview has the reason."}

// reasonOf is why a setting is not applied, of a device of some management.
func reasonOf(m asset.Management, code string) reason {
	known := frame.Either(m == asset.Agent, agentReasons(), platformReasons())
	return cmp.Or(known[code], unknownReason)
}

// labelOf is what the catalog calls the setting of a detail; empty: it is not in the catalog.
func labelOf(m asset.Management, d noncompliance) string {
	id := d.SettingName
	if m == asset.Platform {
		id = policy.SettingAt(cmp.Or(d.FieldPath, d.SettingName))
	}
	if s, known := policy.Lookup(id); known {
		return s.Label
	}
	switch id, name := id, d.SettingName; {
	case id == policy.SystemUpdateID, name == "systemUpdate":
		return "System updates"
	case m == asset.Agent:
		return ""
	case name == "passwordRequirements", name == "passwordPolicies":
		return "Screen lock"
	case name == "applications":
		return "Apps"
	case name == "openNetworkConfiguration":
		return "Wi-Fi networks"
	}
	return ""
}

// maxPath bounds a path of the platform's policy that is shown.
const maxPath = 100

// deviations are the settings that a device has not applied, those that make it
// non-compliant first.
func deviations(d device) []deviation {
	if d.Device == nil {
		return nil
	}
	m := d.Device.Management
	var bad, rest []deviation
	for _, n := range d.Report.NonComplianceDetails {
		why := reasonOf(m, n.Reason)
		found := deviation{Tone: frame.Bad, Label: labelOf(m, n), Why: why.why, Next: why.next, Since: n.Since,
			App: frame.Plain(n.PackageName)}
		if found.Label == "" {
			found.Label = "A setting that is not in the catalog"
			found.Path = shortened(frame.Plain(cmp.Or(n.FieldPath, n.SettingName)), maxPath)
		}
		if m == asset.Agent && n.Reason != string(protocol.SettingFailed) && n.Reason != string(protocol.RolledBack) {
			found.Tone = frame.Idle
			rest = append(rest, found)
			continue
		}
		bad = append(bad, found)
	}
	return slices.Concat(bad, rest)
}

func shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// consequence says what follows when the device does not follow the policy.
func consequence(p policy.Policy) string {
	const goes = "The device goes on with all other settings, and takes commands. "
	rules := policy.Enforcement(p.Document)
	if p.ID == "" || len(rules) == 0 {
		return goes + "Muster itself neither blocks nor erases it; the list “Not compliant” shows it."
	}
	text := goes + "The policy has enforcement rules of the platform: "
	for i, r := range rules {
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("blocked after %s, erased after %s", frame.Count(r.BlockAfterDays, "day", "days"),
			frame.Count(r.WipeAfterDays, "day", "days"))
	}
	return text + "."
}
