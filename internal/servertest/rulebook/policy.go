package rulebook

import (
	"fmt"
	"maps"
)

// Policy has the properties of a policy that the rules depend on.
type Policy struct {
	Agent    bool // an AGENT policy
	Used     bool // at least one device always has it
	Doubtful bool // it is not known whether the platform applied a change of it
	Version  int
	Values   map[string]string // by setting, of the settings that the test changes
	First    map[string]string // the Values of its first revision
}

// Proposal is one of the caller's proposals: settings get values, a policy returns to
// its first revision, or a copy of it is made under a new name.
type Proposal struct {
	Policy   string
	Values   map[string]string // the settings that get another value, with it
	Rollback bool              // to the first revision
	Copy     string            // the name of the copy; empty: no copy
	Base     int               // the policy's version when it was proposed
	Over     bool              // it cannot be applied any more
	Decision Decision
}

// high reports whether a change of the setting has HIGH impact. warned reports whether the value can cut a device off from
// its network, for which the service warns. Both know only the settings that the test changes.
func high(setting string) bool          { return setting == "FACTORY_RESET" }
func warned(setting, value string) bool { return setting == "CONFIGURE_WIFI" && value == "BLOCK" }

// moves predicts the refusals of change_device_policy that follow from the device and the two policies; zero: none.
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

// propose predicts the answer to update_policy_settings, create_policy and rollback_policy. Without a refusal it adds the
// proposal to the world.
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

// High reports whether the impact of a proposal is HIGH.
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

// risky reports whether a person must approve the proposal if ApplyApproval is RISKY.
func (w *World) risky(p *Proposal) bool {
	for setting, value := range p.Values {
		if warned(setting, value) {
			return true
		}
	}
	return w.High(p)
}

// apply predicts the answer to apply_policy_proposal, and changes the policy if the proposal is applied.
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

// Asks returns a key of what a person authorizes for a command: calls with the same key need one authorization. The versions
// of both policies are in the key, because a changed policy needs another one.
func (w *World) Asks(c Call) string {
	from := w.Devices[c.Device].Policy
	return fmt.Sprint(c.Tool, c.Device, from, w.Policies[from].Version, c.Policy, w.Policies[c.Policy].Version)
}
