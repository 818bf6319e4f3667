package account

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
)

// Right is a set of rights, one bit each: what a portal user may do.
type Right uint16

// The rights. Contract 5.3 defines EditPolicies and ProvisionDevices.
const (
	ViewDevices Right = 1 << iota
	CommandDevices
	DestroyDevices // the four destructive commands
	ViewPolicies
	EditPolicies
	ProvisionDevices
	ManageKeys
	ManageUsers
	ManageCompany // settings for AI agent access, the platform's binding, sign-in
	ViewActivity
	// AllPolicies is what a user who is not limited to policies may do besides: see Held. It is given with User.Policies, and
	// stands after the rights that are given one by one.
	AllPolicies
)

// rightNames is in the order of the bits.
var rightNames = [...]struct { //nolint:gochecknoglobals // a table that is never written to
	name, words, help string
	permission        access.Permission // of operations; 0: none
}{
	{"view-devices", "see devices", "See devices, their reports, places and command history.", access.DevicesRead},
	{"command-devices", "send commands to devices", "Send commands to devices: lock, message, lost mode, restart and the like.",
		access.DevicesCommand},
	{"destroy-devices", "send destructive commands", "Wipe devices, reset or change screen locks, give up ownership, and authorize API " +
		"keys and AI clients to do so.", access.DevicesCommandDestructive},
	{"view-policies", "see policies", "See policies, their settings and revisions.", access.PoliciesRead},
	{"edit-policies", "edit policies", "Change policies, and decide on the changes that API keys and AI clients propose.",
		access.PoliciesWrite},
	{"provision-devices", "enroll devices", "Make codes that enroll devices, and let known devices enroll again.", access.Provisioning},
	{"manage-keys", "manage API keys and connections", "Make and revoke API keys, and end the connections of AI clients.", 0},
	{"manage-users", "manage users", "Invite users, change what they may do, and disable them.", 0},
	{"manage-company", "manage company settings",
		"Change the company's settings: AI access, limits, approval, stop, sign-in and the platform.", 0},
	{"view-activity", "see the activity log", "See what every caller did, with its details.", 0},
	{"all-policies", "see all policies and devices", "", 0},
}

// Has reports whether r holds every right of q.
func (r Right) Has(q Right) bool { return r&q == q }

// Names returns the names of the rights, in a fixed order.
func (r Right) Names() []string {
	return r.list(func(i int) string { return rightNames[i].name })
}

// Words says in a few words what the rights let a person do: "see devices, see policies".
func (r Right) Words() string {
	return strings.Join(r.list(func(i int) string { return rightNames[i].words }), ", ")
}

// Help says in a sentence what a single right lets a person do.
func (r Right) Help() string {
	return strings.Join(r.list(func(i int) string { return rightNames[i].help }), " ")
}

func (r Right) list(text func(int) string) []string { return access.Texts(r, len(rightNames), text) }

// ParseRights reads names.
func ParseRights(names []string) (Right, error) {
	var r Right
	all, _ := Admin.Rights()
	for _, name := range names {
		i := slices.Index(all.Names(), name)
		if i < 0 {
			return 0, fmt.Errorf("unknown right %q: use one of %s", name, strings.Join(all.Names(), ", "))
		}
		r |= 1 << i
	}
	return r, nil
}

// Permissions are the permissions of operations that the rights amount to: who
// may change something may also look at it.
func (r Right) Permissions() access.Permission {
	var p access.Permission
	for i, right := range rightNames {
		if r&(1<<i) != 0 {
			p |= right.permission
		}
	}
	return p.WithImplied()
}

// RightsFor returns the rights that amount to permissions.
func RightsFor(p access.Permission) (all Right) {
	for i, right := range rightNames {
		if p&right.permission != 0 {
			all |= 1 << i
		}
	}
	return all
}

// Role is a named set of rights to start from.
type Role string

// The roles.
const (
	Admin    Role = "admin"    // everything
	Manager  Role = "manager"  // devices with destructive commands, policies, enrollment, activity log
	Operator Role = "operator" // devices, without the destructive commands
	Viewer   Role = "viewer"   // sees devices and policies, changes nothing
)

// Rights returns the rights of the role; false for an unknown role.
func (r Role) Rights() (Right, bool) {
	look := ViewDevices | ViewPolicies
	switch r {
	case Admin:
		return AllPolicies - 1, true
	case Manager:
		return look | CommandDevices | DestroyDevices | EditPolicies | ProvisionDevices | ViewActivity, true
	case Operator:
		return look | CommandDevices, true
	case Viewer:
		return look, true
	}
	return 0, false
}

// Roles are all of them, the one with the most rights first.
func Roles() []Role { return []Role{Admin, Manager, Operator, Viewer} }

// Title is the role's name for people.
func (r Role) Title() string { return r.words()[0] }

// Help says in a sentence what the role lets a person do.
func (r Role) Help() string { return r.words()[1] }

func (r Role) words() [2]string {
	return map[Role][2]string{
		Admin:    {"Administrator", "Everything, including users and company settings."},
		Manager:  {"Manager", "Devices, destructive commands, policies, enrollment and the activity log."},
		Operator: {"Operator", "Devices without destructive commands. Can view policies."},
		Viewer:   {"Viewer", "Can view devices and policies."},
	}[r]
}
