package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/slice"
)

// spelledOut is how many settings a summary names before it counts them.
const spelledOut = 3

func summarizeCopy(source policy.Policy, newName string, moves []policy.Move) string {
	then := ""
	if len(moves) > 0 {
		then = " and in the copy " + settings(moves)
	}
	return fmt.Sprintf("Creates the policy %q as a copy of %q%s; 0 devices use it until devices are moved to it.",
		newName, source.Name, then)
}

func summarizeRollback(p policy.Policy, revision int, d policy.Diff) string {
	var what []string
	if len(d.Moves) > 0 {
		what = append(what, settings(d.Moves))
	}
	if d.Name != nil {
		what = append(what, fmt.Sprintf("changes its name to %q", d.Name[1]))
	}
	if len(d.Others) > 0 {
		what = append(what, "also changes what no setting names: "+others(d.Others))
	}
	return fmt.Sprintf("Returns the policy %q, which %s, to revision %d: %s%s.",
		p.Name, devicesHere, revision, strings.Join(what, "; "), warnings(d.Moves))
}

// A summary is kept as a form, because devices come and go while a proposal is
// pending: devicesHere stands for their number, and what is between two
// withDevices is said only if there are any. Names are quoted, so neither
// character occurs otherwise.
const (
	devicesHere = "\x01"
	withDevices = "\x02"
)

// summarize completes the form of a summary.
func summarize(form string, devices, moving int) string {
	parts := strings.Split(strings.ReplaceAll(form, devicesHere, use(devices, moving)), withDevices)
	if devices+moving == 0 {
		for i := 1; i < len(parts); i += 2 {
			parts[i] = ""
		}
	}
	return strings.Join(parts, "")
}

// use says how many devices use a policy, and how many are moved to it.
func use(devices, moving int) string {
	sentence := phrase.Count(devices, "device uses", "devices use")
	if moving > 0 {
		sentence += " and " + phrase.Count(moving, "device is", "devices are") + " being moved to"
	}
	return sentence
}

// settings says which settings get which values, or counts them.
func settings(moves []policy.Move) string {
	if len(moves) > spelledOut {
		return fmt.Sprintf("changes %d settings", len(moves))
	}
	return "sets " + phrase.List(slice.Map(moves, func(m policy.Move) string { return m.Setting.Label + " to " + m.To }))
}

// warnings are the consequences that a list of settings does not show.
func warnings(moves []policy.Move) string {
	text := ""
	for _, m := range moves {
		switch {
		case m.Setting.ID == "VENDOR_STORE_MODE" && m.From == "BLACKLIST" && m.To != policy.Custom:
			text += "; its devices will uninstall every app that the policy does not list"
		case m.Setting.ID == "CONFIGURE_WIFI" && m.To == "BLOCK":
			text += "; fully managed devices will forget every Wi-Fi network that the policy does not configure, and may become unreachable"
		}
	}
	if text == "" {
		return ""
	}
	return withDevices + text + withDevices
}

// plainWords are members of the vendor's policy that people know by another
// name. It is never written to.
var plainWords = map[string]string{ //nolint:gochecknoglobals // a table that is never written to
	"applications":               "apps",
	"openNetworkConfiguration":   "Wi-Fi and network configurations",
	"passwordPolicies":           "password rules",
	"passwordRequirements":       "password rules (older form)",
	"kioskCustomization":         "kiosk mode",
	"kioskCustomLauncherEnabled": "the kiosk launcher",
	"systemUpdate":               "system updates",
	"permissionGrants":           "permission grants",
	"personalUsagePolicies":      "personal use",
	"policyEnforcementRules":     "enforcement rules",
	"maximumTimeToLock":          "the time until the screen locks",
	"alwaysOnVpnPackage":         "the always-on VPN",
}

// others names members of a document that no setting names.
func others(members []string) string {
	var named []string
	for _, member := range members {
		first, _, _ := strings.Cut(member, ".")
		if word := cmp.Or(plainWords[first], member); !slices.Contains(named, word) {
			named = append(named, word)
		}
	}
	const most = 8
	if len(named) > most {
		named = append(named[:most-1], fmt.Sprintf("%d more", len(named)-most+1))
	}
	return phrase.List(named)
}

// ImpactOf is the impact rule: HIGH when the policy has a
// device and the change is a rollback, moves a high-impact setting, or the
// policy has 50 devices. A new policy has no devices.
func ImpactOf(c Capability, devices int, changesHighImpact bool) Impact {
	if c == CreatePolicy || devices == 0 {
		return Normal
	}
	if c == RollBack || devices >= HighImpactDevices || changesHighImpact {
		return High
	}
	return Normal
}

// reasons says in plain words what makes a proposal's impact HIGH.
func reasons(p Proposal, devices int, moves []policy.Move) []string {
	if p.Impact != High {
		return nil
	}
	var why []string
	if p.Capability == RollBack {
		why = append(why, "it returns to an earlier revision")
	}
	for _, m := range moves {
		if m.Setting.HighImpact {
			why = append(why, "it changes "+m.Setting.Label)
		}
	}
	switch {
	case devices >= HighImpactDevices:
		why = append(why, fmt.Sprintf("%d or more devices use the policy", HighImpactDevices))
	case len(why) == 0: // an impact never falls
		why = append(why, fmt.Sprintf("%d or more devices used the policy after it was proposed", HighImpactDevices))
	}
	return why
}
