// Package rulebook is the contract's rules about commands and policy changes once more, written from the
// documents alone and as small as they allow: it predicts what a call is answered. Its rows are those of
// test/spec. It imports nothing of the service, so that a mistake there is not repeated here.
package rulebook

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/test/spec"
)

// World is a company, one caller and its devices, at one moment.
type World struct {
	DeviceCommands, DestructiveCommands bool // settings
	PolicyChanges, Provisioning         bool
	ApplyApproval                       string
	RequireReason                       string
	Stopped                             bool
	Limit                               int             // of distinct devices; 0: off
	Counts                              map[string]bool // devices in the limit's window
	Rights                              map[string]bool
	Spent                               int // of the ten in the caller's window
	Devices                             map[string]Device
	PerDay                              int             // of distinct devices that the key commands; 0: any
	Commanded                           map[string]bool // devices of the key's day
	Approval                            bool            // persons authorize destructive commands
	Asked                               map[string]Decision
	Policies                            map[string]Policy
	Names                               map[string]bool // of policies, that copies may not have
	Proposals                           []*Proposal     // of the caller, which names them by their places
	Elsewhere                           bool            // the key calls from outside its networks
	Barred                              bool            // a connection that is frozen, or that the company does not let in
	Ended                               bool            // the key is revoked, the connection has ended, or its user is disabled
}

// Device is what the rules look at of a device.
type Device struct {
	Enrolled, Agent, CompanyOwned, FullyManaged, Push bool
	Policy                                            string
}

// Call is one call of one operation.
type Call struct {
	Tool, Device           string
	Policy, Setting, Value string // the policy to read, to change, or to move the device to
	Name                   string // of the copy
	Revision               int    // to return to: the first, or none
	Proposal               int
	Confirmed              bool // the policy's name is sent with it
	Reason                 bool
	Malformed              bool // an argument that the tool does not know
}

// Answer is a status, with the code of an error.
type Answer struct {
	Status int
	Code   string
	Person bool // a person has to authorize it first
}

// Destructive reports whether a tool is a command that the company's limit counts.
func Destructive(tool string) bool { return spec.CommandOf(tool).Destructive() }

func early(tool string) bool { return spec.Find(tool).Family == spec.FirstFour }

// Predict says what a call is answered, and makes the world what it is afterwards.
func (w *World) Predict(c Call) Answer {
	if refused := w.entry(); refused.Status != 0 {
		return refused
	}
	if spec.Find(c.Tool).Effect == spec.Reading {
		return w.read(c)
	}
	if refused := w.admit(c); refused.Status != 0 {
		return refused
	}
	return w.carryOut(c)
}

// entry answers for a caller who is not let in.
func (w *World) entry() Answer {
	switch {
	case w.Elsewhere, w.Ended:
		return Answer{Status: 401, Code: "unauthorized"}
	case w.Barred:
		return Answer{Status: 403, Code: "forbidden"}
	}
	return Answer{}
}

// admit answers for a call that is refused before it is looked up what it is for. It
// spends the budget.
func (w *World) admit(c Call) Answer {
	if early(c.Tool) && w.Rights["DEVICES_COMMAND"] { // the budget comes first
		if refused := w.spend(); refused.Status != 0 {
			return refused
		}
	}
	if refused := w.permission(c); refused.Status != 0 {
		return refused
	}
	if c.Malformed || w.lacksReason(c) {
		return Answer{Status: 400, Code: "invalid_arguments"}
	}
	if !early(c.Tool) {
		return w.spend()
	}
	return Answer{}
}

func (w *World) spend() Answer {
	if w.Spent >= 10 {
		return Answer{Status: 429, Code: "rate_limited"}
	}
	w.Spent++
	return Answer{}
}

// lacksReason reports whether a call must give its reason and does not.
func (w *World) lacksReason(c Call) bool {
	return !c.Reason && (w.RequireReason == "ALL" || w.RequireReason == "DESTRUCTIVE" && Destructive(c.Tool))
}

// carryOut answers for a call that is admitted.
func (w *World) carryOut(c Call) Answer {
	switch c.Tool {
	case "update_policy_settings", "create_policy", "rollback_policy":
		return w.propose(c)
	case "apply_policy_proposal":
		return w.apply(c)
	case "create_provisioning_qr_code":
		return w.lookup(c, 201)
	case "update_asset": // of any asset, whatever its device can do
		if _, found := w.Devices[c.Device]; !found {
			return Answer{Status: 404, Code: "not_found"}
		}
		return Answer{Status: 200}
	}
	return w.command(c)
}

// command answers for a command that is admitted.
func (w *World) command(c Call) Answer {
	d, found := w.Devices[c.Device]
	if found && c.Tool == "change_device_policy" {
		if refused := w.moves(c); refused.Status != 0 {
			return refused
		}
	}
	switch {
	case !found:
		return Answer{Status: 404, Code: "not_found"}
	case !d.Enrolled, !spec.CommandOf(c.Tool).Takes(spec.Device{Agent: d.Agent, CompanyOwned: d.CompanyOwned,
		FullyManaged: d.FullyManaged, Push: d.Push}):
		return Answer{Status: 409, Code: "unsupported"}
	case w.PerDay > 0 && !w.Commanded[c.Device] && len(w.Commanded) >= w.PerDay:
		return Answer{Status: 429, Code: "rate_limited"}
	}
	if Destructive(c.Tool) {
		if w.Limit > 0 && !w.Counts[c.Device] && len(w.Counts) >= w.Limit {
			return Answer{Status: 429, Code: "rate_limited"}
		}
		if w.Approval && !w.authorized(c) {
			return Answer{Status: 403, Code: "forbidden", Person: true}
		}
		w.Counts[c.Device] = true
	}
	if c.Tool == "change_device_policy" {
		if w.ApplyApproval != "OFF" && (w.Policies[d.Policy].Doubtful || w.Policies[c.Policy].Doubtful) {
			return Answer{Status: 503, Code: "unavailable"}
		}
		if w.differ(w.Policies[d.Policy], w.Policies[c.Policy]) && !w.authorized(c) {
			return Answer{Status: 403, Code: "forbidden", Person: true}
		}
		d.Policy = c.Policy
		w.Devices[c.Device] = d
	}
	w.Commanded[c.Device] = true
	return Answer{Status: 200}
}

// permission answers for a call that changes something, and that the caller may not make.
func (w *World) permission(c Call) Answer {
	open := map[string]bool{"deviceCommands": w.DeviceCommands, "destructiveCommands": w.DeviceCommands && w.DestructiveCommands,
		"policyChanges": w.PolicyChanges, "provisioning": w.Provisioning}
	if !w.has(c.Tool) || !open[spec.Find(c.Tool).Gate] || w.Stopped {
		return Answer{Status: 403, Code: "forbidden"}
	}
	return Answer{}
}

// has reports whether the caller has the permissions of an operation.
func (w *World) has(tool string) bool {
	return !slices.ContainsFunc(strings.Fields(spec.Find(tool).Permissions), func(right string) bool { return !w.Rights[right] })
}
