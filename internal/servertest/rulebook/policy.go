package rulebook

import (
	"fmt"
	"maps"
)

// Policy is what the rules look at of a policy.
type Policy struct {
	Agent    bool // it is for agents
	Used     bool // by one device at least, always
	Doubtful bool // it is not known whether a change of it was applied
	Version  int
	Values   map[string]string // of some settings
	First    map[string]string // those that it had at its first revision
}

// Proposal is one of the caller's proposals: settings get values, a policy returns to
// its first revision, or a copy of it is made under a new name.
type Proposal struct {
	Policy   string
	Values   map[string]string
	Rollback bool
	Copy     string
	Base     int // the policy's version
	Over     bool
	Decision Decision
}

// high are the settings of high impact among those that are proposed, and warned the
// values that can cut a device off.
func high(setting string) bool          { return setting == "FACTORY_RESET" }
func warned(setting, value string) bool { return setting == "CONFIGURE_WIFI" && value == "BLOCK" }

// moves answers for a change of a device's policy, as far as the policies decide.
func (w *World) moves(c Call) Answer {
	to, found := w.Policies[c.Policy]
	d := w.Devices[c.Device]
	switch {
	case !found:
		return Answer{Status: 404, Code: "not_found"}
	case !d.Enrolled, to.Agent != d.Agent, d.Policy == c.Policy:
		return Answer{Status: 409, Code: "unsupported"}
	}
	return Answer{}
}

// differ reports whether a person has to authorize a move between two policies.
func (w *World) differ(from, to Policy) bool {
	if maps.Equal(from.Values, to.Values) {
		return false
	}
	if w.ApplyApproval == "ALL" {
		return true
	}
	for setting, value := range to.Values {
		if was := from.Values[setting]; was != value && (high(setting) || warned(setting, was) || warned(setting, value)) {
			return w.ApplyApproval == "RISKY"
		}
	}
	return false
}

// propose answers for update_policy_settings, create_policy and rollback_policy.
func (w *World) propose(c Call) Answer {
	p, found := w.Policies[c.Policy]
	made := &Proposal{Policy: c.Policy, Values: map[string]string{}, Base: p.Version, Decision: Waiting}
	switch c.Tool {
	case "create_policy":
		made.Copy = c.Name
	case "rollback_policy":
		found = found && c.Revision == 1
		made.Rollback = true
		for setting, value := range p.First {
			if p.Values[setting] != value {
				made.Values[setting] = value
			}
		}
	default:
		if p.Values[c.Setting] != c.Value {
			made.Values[c.Setting] = c.Value
		}
	}
	switch {
	case !found:
		return Answer{Status: 404, Code: "not_found"}
	case p.Agent:
		return Answer{Status: 409, Code: "unsupported"}
	case made.Copy != "" && w.Names[made.Copy], made.Copy == "" && len(made.Values) == 0:
		return Answer{Status: 422, Code: "refused"}
	}
	w.Proposals = append(w.Proposals, made)
	return Answer{Status: 201}
}

// High reports whether the impact of a proposal is HIGH, and risky whether a person
// approves it under RISKY.
func (w *World) High(p *Proposal) bool {
	if p.Copy != "" || !w.Policies[p.Policy].Used {
		return false
	}
	for setting := range p.Values {
		if high(setting) {
			return true
		}
	}
	return p.Rollback
}

func (w *World) risky(p *Proposal) bool {
	for setting, value := range p.Values {
		if warned(setting, value) {
			return true
		}
	}
	return w.High(p)
}

// apply answers for apply_policy_proposal.
func (w *World) apply(c Call) Answer {
	if c.Proposal < 0 || c.Proposal >= len(w.Proposals) {
		return Answer{Status: 404, Code: "not_found"}
	}
	one := w.Proposals[c.Proposal]
	on := w.Policies[one.Policy]
	person := w.ApplyApproval == "ALL" || w.ApplyApproval == "RISKY" && w.risky(one)
	switch {
	case one.Over || one.Decision == Declined:
		return Answer{Status: 409, Code: "not_pending"}
	case one.Base != on.Version:
		one.Over = true
		return Answer{Status: 409, Code: "stale_proposal"}
	case person && one.Decision != Authorized:
		return Answer{Status: 422, Code: "confirmation_required", Person: true}
	case w.High(one) && !c.Confirmed:
		return Answer{Status: 422, Code: "confirmation_required"}
	}
	one.Over = true
	if one.Copy != "" {
		if w.Names[one.Copy] {
			return Answer{Status: 422, Code: "refused"}
		}
		w.Names[one.Copy] = true
		return Answer{Status: 200}
	}
	on.Version++
	on.Values = maps.Clone(on.Values)
	maps.Copy(on.Values, one.Values)
	w.Policies[one.Policy] = on
	return Answer{Status: 200}
}

// Asks names what a person decides about, of a command.
func (w *World) Asks(c Call) string {
	from := w.Devices[c.Device].Policy
	return fmt.Sprint(c.Tool, c.Device, from, w.Policies[from].Version, c.Policy, w.Policies[c.Policy].Version)
}
