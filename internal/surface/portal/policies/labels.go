package policies

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// setting is what the catalog has about a setting.
func setting(id string) policy.Setting {
	s, _ := policy.Lookup(id)
	return s
}

// wide reports whether a setting's values need a list: four or more, or long.
func wide(s policy.Value) bool {
	const most, longest = 4, 24
	shown := s.AllowedValues
	if s.Value == policy.NotSet || s.Value == policy.Custom {
		shown = append(slices.Clone(shown), s.Value)
	}
	return len(shown) >= most || slices.ContainsFunc(shown, func(value string) bool { return len(frame.Word(value)) > longest })
}

// typeWord is a policy's type for people.
func typeWord(p policy.Policy) string {
	switch {
	case p.VROnly:
		return "Agent, VR only"
	case p.Type == policy.Agent:
		return "Agent"
	default:
		return "Platform"
	}
}

// held says how far the platform's copy has come.
func held(v *frame.Visit, p policy.Policy) (frame.Tone, string) {
	switch {
	case p.Type == policy.Agent:
		return frame.Idle, "Fetched by agents"
	case !p.Behind():
		return frame.OK, "Current"
	case p.Push.Error != "":
		return frame.Bad, "Not taken"
	case !v.Company.Connected():
		return frame.Idle, "Company not connected"
	default:
		return frame.Warn, "On its way"
	}
}

// originWord says what made a revision.
func originWord(r policy.Revision) string {
	words := map[policy.Origin]string{policy.FromProposal: "Proposal", policy.FromRollback: "Rollback", policy.FromCreate: "Created"}
	return cmp.Or(words[r.Origin], "Portal")
}

// authorWord says who saved a revision.
func authorWord(a policy.Author) string {
	return a.Name + map[string]string{"API_KEY": " (API key)", "CONNECTION": " (AI client)"}[a.Kind]
}

// unsetHelp explains a value that cannot be chosen.
func unsetHelp(value string) string {
	return frame.Either(value == policy.Custom, "The document holds something that the values here cannot express",
		"Left to the device's or the vendor's default")
}

// adviceTone says how an advice is meant.
func adviceTone(r proposal.Review) frame.Tone {
	switch {
	case r.Status == proposal.Succeeded:
		return frame.OK
	case r.Status == proposal.Expired || r.Approval.State == proposal.Declined:
		return frame.Idle
	case r.Status == proposal.Failed || r.Gone:
		return frame.Bad
	default:
		return frame.Warn
	}
}

// affected is how many devices applying concerns.
func affected(d details) int { return frame.Either(d.Creates(), 0, d.Policy.DeviceCount) }

// applyWords are those of the button that applies.
func applyWords(d details) string {
	what := frame.Count(len(d.Fields), "change", "changes")
	switch {
	case d.Creates():
		return "Create the policy"
	case d.Capability == proposal.RollBack:
		return "Roll back " + frame.Count(affected(d), "device", "devices")
	default:
		return "Apply " + what + " to " + frame.Count(affected(d), "device", "devices")
	}
}
