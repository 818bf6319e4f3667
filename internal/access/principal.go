package access

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// Kind says what sort of caller a principal is.
type Kind string

// The kinds of callers; the first three are those of a revision's savedBy.
const (
	APIKey     Kind = "API_KEY"
	Connection Kind = "CONNECTION"
	User       Kind = "USER"
	System     Kind = "SYSTEM" // the operator's command line, and the service itself
)

// Automated reports whether a program makes the calls of the kind: an API key or a connection.
func (k Kind) Automated() bool { return k == APIKey || k == Connection }

// Settings are a company's switches for AI agent access
// (contract 5.4). All are off for a new company.
type Settings struct {
	DeviceCommands      bool `json:"deviceCommands"`
	DestructiveCommands bool `json:"destructiveCommands"` // needs DeviceCommands
	PolicyChanges       bool `json:"policyChanges"`
	Provisioning        bool `json:"provisioning"`     // binds connections only
	OAuthConnections    bool `json:"oauthConnections"` // binds connections only

	Controls Controls `json:"-"` // bind everyone, whatever the switches say
	Stop     Stop     `json:"-"`
	// KeepActivity is how long entries of the activity log are kept.
	KeepActivity time.Duration `json:"-"`
}

// Principal is an authenticated caller, with what decides its rights.
type Principal struct {
	Kind        Kind
	ID          string // id of the key, the connection or the user
	Name        string // for people
	Prefix      string // of a key
	UserID      string // the person behind a connection
	CompanyID   string
	CompanySlug string
	Permissions Permission // of the key; of a connection: its scopes cut by its user's rights
	Settings    Settings   // of the company, read together with the principal
	Frozen      bool       // of a connection: set aside by an administrator, it may do nothing

	// Policies limits a user, and a connection of that user, to some policies
	// and their devices (contract 5.3). Nil means all.
	Policies []string
	// DevicesPerDay is that of a key; 0: any number.
	DevicesPerDay int
	// Rights are those of a user in the portal, as package account has them.
	Rights uint16

	// Version is that of the company's controls, read together with the principal: it
	// rises with everything that may change what one of the company's callers may do.
	Version int64
	// Expires is when the key, the token or the session runs out; zero: never.
	Expires time.Time
}

// BudgetKey names the budget that the principal spends (contract 8).
func (p Principal) BudgetKey() string { return string(p.Kind) + ":" + p.ID }

// Throttle counts calls and attempts, exactly, over all replicas. It fails as the database does.
type Throttle interface {
	// Spend counts one under key if fewer than limit were counted in the key's window,
	// opening a new window of the given length if none is open at now. spent reports whether
	// it was counted, used how many now are, and closes when the window ends.
	Spend(ctx context.Context, key string, limit int, window time.Duration,
		now time.Time) (used int, spent bool, closes time.Time, err error)
}

// Gate names the company setting that an operation needs.
type Gate string

// The gates of contract 5.4.
const (
	NoGate              Gate = ""
	DeviceCommands      Gate = "deviceCommands"
	DestructiveCommands Gate = "destructiveCommands"
	PolicyChanges       Gate = "policyChanges"
	ProvisioningGate    Gate = "provisioning"
	OAuthGate           Gate = "oauthConnections" // of Grant for every connection; no operation declares it
)

// Gates are the company's settings that Grant asks, in the order of the contract.
func Gates() []Gate {
	return []Gate{DeviceCommands, DestructiveCommands, PolicyChanges, OAuthGate, ProvisioningGate}
}

// Switch turns the setting of one of Gates on or off. Turning off device commands turns off the destructive ones too.
func (s *Settings) Switch(g Gate, on bool) {
	*s.gate(g) = on
	s.DestructiveCommands = s.DestructiveCommands && (on || g != DeviceCommands)
}

// On reports whether the setting of one of Gates is on.
func (s Settings) On(g Gate) bool { return *s.gate(g) }

func (s *Settings) gate(g Gate) *bool {
	return map[Gate]*bool{DeviceCommands: &s.DeviceCommands, DestructiveCommands: &s.DestructiveCommands,
		PolicyChanges: &s.PolicyChanges, OAuthGate: &s.OAuthConnections, ProvisioningGate: &s.Provisioning}[g]
}

// Title is the gate's name for people.
func (g Gate) Title() string { return g.words()[0] }

// Help says in a sentence what the gate allows while it is on.
func (g Gate) Help() string { return g.words()[1] }

func (g Gate) words() [2]string {
	return map[Gate][2]string{
		DeviceCommands: {"Device commands",
			"API keys and AI clients with the permission may lock, locate, message and restart devices."},
		DestructiveCommands: {"Destructive commands", "They may also wipe devices, reset or change screen locks and give up ownership."},
		PolicyChanges: {"Policy changes",
			"API keys and AI clients with the permission may propose changes of policies and apply them."},
		OAuthGate: {"AI clients by sign-in", "People may connect AI clients to their own account, without an API key."},
		ProvisioningGate: {"Enrollment by AI clients", "Connected AI clients may make QR codes that enroll devices. API keys with the " +
			"permission always may."},
	}[g]
}

// Grant reports nil if p may run an operation that needs the permissions and
// the company's gate, and a fault.Forbidden that says what is missing if not.
func Grant(p Principal, needs Permission, gate Gate) error {
	if p.Frozen {
		return fault.New(fault.Forbidden, "this connection is frozen: an administrator can thaw it in the portal, under Access")
	}
	if p.Kind == Connection && !p.Settings.OAuthConnections {
		return fault.New(fault.Forbidden,
			"the company has not enabled OAuth connections: an administrator can turn it on under AI agent access")
	}
	if missing := needs &^ p.Permissions; missing != 0 {
		return fault.New(fault.Forbidden, "missing permission: %s", missing)
	}
	if !p.Settings.open(gate, p.Kind) {
		return fault.New(fault.Forbidden, "the company setting %s is off: an administrator can turn it on under AI agent access", gate)
	}
	return nil
}

// open says whether the gate is open to a caller of the kind. A portal user
// and the service itself are not AI agents: the gates do not bind them.
func (s Settings) open(gate Gate, kind Kind) bool {
	if kind == User || kind == System {
		return true
	}
	switch gate {
	case DeviceCommands:
		return s.DeviceCommands
	case DestructiveCommands:
		return s.DeviceCommands && s.DestructiveCommands
	case PolicyChanges:
		return s.PolicyChanges
	case ProvisioningGate:
		return kind != Connection || s.Provisioning
	default:
		return gate == NoGate
	}
}

// MaySee reports whether a policy is within the principal's limits.
func (p Principal) MaySee(policyID string) bool {
	if p.Policies == nil {
		return true
	}
	return slices.Contains(p.Policies, policyID)
}
