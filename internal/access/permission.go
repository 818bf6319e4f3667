// Package access decides who may do what.
//
// A Principal is the caller: an API key, an OAuth connection, a portal user.
// Grant is the whole rule (contract 5.2, 5.4, 5.5) and is pure. Load a
// principal together with its company's settings, in one read, so that Grant sees
// a consistent state.
package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/fault"
)

// Permission is a set of rights. Each bit has a name for keys and a scope for
// OAuth connections.
type Permission uint16

// The permissions of contract 5.2.
const (
	DevicesRead Permission = 1 << iota
	DevicesCommand
	DevicesCommandDestructive
	PoliciesRead
	PoliciesWrite
	Provisioning
)

// permissionNames is in the order of the bits.
var permissionNames = [...]struct{ name, scope, title, help string }{ //nolint:gochecknoglobals // a table that is never written to
	{"DEVICES_READ", "mcp:devices:read", "See devices", "See devices, their reports, locations and command history."},
	{"DEVICES_COMMAND", "mcp:devices:command", "Send commands",
		"Send commands: lock, message, lost mode, restart, power off, move to another policy, and clear the data of apps, which " +
			"cannot be undone."},
	{"DEVICES_COMMAND_DESTRUCTIVE", "mcp:devices:destructive", "Send destructive commands",
		"Wipe devices, remove or change screen locks, and give up ownership."},
	{"POLICIES_READ", "mcp:policies:read", "See policies", "See policies, their settings, revisions and proposals."},
	{"POLICIES_WRITE", "mcp:policies:write", "Change policies", "Propose changes of policies, and apply them as the company's approval " +
		"of policy changes allows."},
	{"PROVISIONING", "mcp:provisioning", "Enroll devices", "Create QR codes that enroll new devices, under any policy."},
}

// All is every permission there is.
const All = DevicesRead | DevicesCommand | DevicesCommandDestructive | PoliciesRead | PoliciesWrite | Provisioning

// Has reports whether p holds every right of q.
func (p Permission) Has(q Permission) bool { return p&q == q }

// Names returns the names of the rights in p, in a fixed order.
func (p Permission) Names() []string {
	return p.list(func(i int) string { return permissionNames[i].name })
}

// Scopes returns the OAuth scopes of the rights in p, in a fixed order.
func (p Permission) Scopes() []string {
	return p.list(func(i int) string { return permissionNames[i].scope })
}

// Title names what a single permission allows, in a few words.
func (p Permission) Title() string {
	return strings.Join(p.list(func(i int) string { return permissionNames[i].title }), ", ")
}

// Help says in a sentence what a single permission allows.
func (p Permission) Help() string {
	return strings.Join(p.list(func(i int) string { return permissionNames[i].help }), " ")
}

// Each returns the permissions or rights in a set one by one, in a fixed order.
func Each[S ~uint16](set S) (all []S) {
	for one := S(1); one != 0 && one <= set; one <<= 1 {
		if set&one != 0 {
			all = append(all, one)
		}
	}
	return all
}

// String joins the names with a comma.
func (p Permission) String() string { return strings.Join(p.Names(), ", ") }

func (p Permission) list(text func(int) string) []string { return Texts(p, len(permissionNames), text) }

// Texts returns a text of each permission or right in a set, given by its place among the first known ones; never nil.
func Texts[S ~uint16](set S, known int, text func(place int) string) []string {
	texts := []string{}
	for i := range known {
		if set&(1<<i) != 0 {
			texts = append(texts, text(i))
		}
	}
	return texts
}

// ParsePermissions reads names as keys carry them.
func ParsePermissions(names []string) (Permission, error) {
	p, unknown, ok := parse(names, Permission.Names)
	if !ok {
		return 0, fmt.Errorf("unknown permission %q: use one of %s", unknown, All)
	}
	return p, nil
}

// ParseScopes reads OAuth scopes and adds the reads that they imply
// (contract 5.5).
func ParseScopes(scopes []string) (Permission, error) {
	p, unknown, ok := parse(scopes, Permission.Scopes)
	if !ok {
		return 0, fmt.Errorf("unknown scope %q", unknown)
	}
	return p.WithImplied(), nil
}

// Writes reports whether the permissions allow more than reading.
func (p Permission) Writes() bool { return p&^(DevicesRead|PoliciesRead) != 0 }

// AllowsNothing reports whether no operation can be called with the rights alone:
// each takes the right to read devices or policies.
func (p Permission) AllowsNothing() bool { return p&(DevicesRead|PoliciesRead) == 0 }

// Preset is permissions that belong together, for a use.
type Preset struct {
	Name, Title string
	Permissions Permission
}

// Presets lists them; each allows more than the one before.
func Presets() []Preset {
	reads := DevicesRead | PoliciesRead
	return []Preset{
		{"read-only", "Read only", reads},
		{"help-desk", "Help desk", reads | DevicesCommand},
		{"assistant", "Assistant", reads | DevicesCommand | PoliciesWrite},
		{"automation", "Automation", reads | DevicesCommand | PoliciesWrite | Provisioning},
	}
}

// WithImplied adds the reads that a write scope implies.
func (p Permission) WithImplied() Permission {
	if p&(PoliciesWrite|Provisioning) != 0 {
		p |= PoliciesRead
	}
	if p&(DevicesCommand|DevicesCommandDestructive) != 0 {
		p |= DevicesRead
	}
	return p
}

// parse reads texts as of writes them of all permissions, in the order of the bits. ok is false at an unknown one.
func parse(texts []string, of func(Permission) []string) (p Permission, unknown string, ok bool) {
	all := of(All)
	for _, text := range texts {
		i := slices.Index(all, text)
		if i < 0 {
			return 0, text, false
		}
		p |= 1 << i
	}
	return p, "", true
}

// Replacement says what a user may do, and has confirmed, who replaces the device of an asset. If the asset has a managed
// device, that device leaves the asset, which takes the same rights as a destructive command. The operator's command line
// does not use a Replacement.
type Replacement struct {
	UserID string
	// MayDestroy: the user may send destructive commands to the device that leaves.
	MayDestroy bool
	// Named: the user typed the name of the asset whose device leaves, as a confirmation.
	Named bool
}

// Refusal returns nil if the user may let a managed device leave, and otherwise fault.Forbidden or
// fault.ConfirmationRequired.
func (r Replacement) Refusal() error {
	switch {
	case !r.MayDestroy:
		return fault.New(fault.Forbidden, "the asset has a managed device, which would leave it: that takes the permission to send "+
			"destructive commands")
	case !r.Named:
		return fault.New(fault.ConfirmationRequired,
			"the asset has a managed device, which would leave it: type the asset's name to confirm that")
	}
	return nil
}
