// Package agentserver manages devices by Muster's own agent: it is their command
// channel, issues their enrollment tokens and answers their check-ins
// (docs/agent-protocol.md).
//
// What a device is told to do is durable before it is told, is told until the
// device confirms it, and is done once, because the device remembers. Whatever
// has power over a device is signed with a key that the database never sees.
package agentserver

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/rollout"
)

// Times of the protocol.
const (
	// lease is how long an offered command is not offered again.
	lease = 60 * time.Second
	// streamLease is lease for a command that goes out on a stream: shorter, because a
	// connection that is dead takes it as well, and the device then comes back soon.
	streamLease = 15 * time.Second
	// eraseGrace is how long after a device set out to erase itself silence
	// means that it did.
	eraseGrace = 15 * time.Minute
	// redeemAgain is how long the same token with the same key gets its answer
	// again.
	redeemAgain = time.Hour
	// CheckInEvery is how often an agent checks in without a wake-up.
	CheckInEvery = 15 * time.Minute
	// maxOffers is how many commands one check-in carries.
	maxOffers = 20
)

// Waker notifies replicas that a device has something to fetch.
type Waker interface {
	Notify(topic string, ids ...string)
}

// Streams are the wake streams that this replica holds.
type Streams interface {
	// Reserve returns a place in the queue of the device's stream; nil: there is no stream
	// here that takes commands, or no room in its queue.
	Reserve(c agentdevice.StreamCommand) agentdevice.Place
}

// Observer applies what devices say of themselves, and fails as enrollment.Service does.
type Observer interface {
	Observe(ctx context.Context, o enrollment.Observation) (enrollment.Change, error)
}

// Enroller enrolls devices: it redeems a token for a device, makes it its asset
// and ends the device that was that asset before, together. It fails with
// fault.Refused if the token, or the former device, does not allow that.
type Enroller interface {
	// EnrollAgent fails with agentdevice.ErrWaiting for a device that asks to be enrolled
	// again, until a person has decided, with fault.RateLimited while too many ask, and with
	// fault.Unavailable if it can pass soon, such as after an import.
	EnrollAgent(ctx context.Context, e agentdevice.Enrollment, o enrollment.Observation) (agentdevice.Device, error)
	// EndOrphans ends the commands that were kept for up to limit devices at the
	// moment at which they ended.
	EndOrphans(ctx context.Context, limit int) error
	agentdevice.AssetTokenStore
}

// Commands hears what became of commands: command.Service.
type Commands interface {
	// Settle makes a command final, and reports whether it was not yet. fault.NotFound if the
	// command was not sent here.
	Settle(ctx context.Context, f command.Feedback) (command.Command, bool, error)
	// PolicyApplied makes the changes of policy final which the device's report decides; it
	// fails as the database does.
	PolicyApplied(ctx context.Context, assetID, policyID string, m asset.Management, at time.Time) error
}

// Deliveries keeps commands on their way to devices.
type Deliveries interface {
	agentdevice.DeliveryStore
	// Visit is Store.Contact for a check-in: in the same step it leases to the device what is
	// due, as Offer does, and finds the commands about which the device says something. It
	// fails as the database does.
	Visit(ctx context.Context, v command.Visit) (command.Visited, bool, error)
}

// Directory finds policies, and notes contacts of devices.
type Directory interface {
	// Policy returns a policy of the company, also a deleted one, or fault.NotFound.
	Policy(ctx context.Context, companyID, id string) (policy.Policy, error)
	// TouchDevice notes, not at once, that a device was heard of.
	TouchDevice(assetID string, at time.Time)
}

// Signer signs what has power over devices.
type Signer struct {
	Key  protocol.PrivateKey
	ID   string
	Made time.Time
	// Former are the keys that signed before, youngest first. They sign nothing
	// any more but who followed them, for devices that were away in that time.
	Former []Signer
}

// succession are the announcements that lead from a key to the present one,
// oldest first; from an unknown one, those of every key. Nothing for the present
// key itself.
func (s Signer) succession(known string) ([]protocol.Envelope, error) {
	if known == s.ID {
		return nil, nil
	}
	var chain []protocol.Envelope
	follower := s
	for _, before := range s.Former {
		public, err := follower.Key.Public()
		if err != nil {
			return nil, err
		}
		sealed, err := protocol.Seal(before.Key, before.ID, protocol.KindKey,
			protocol.CommandKey{ID: follower.ID, Key: public, NotBefore: follower.Made.UnixMilli()})
		if err != nil {
			return nil, err
		}
		chain = append(chain, sealed)
		if before.ID == known {
			break
		}
		follower = before
	}
	slices.Reverse(chain)
	return chain, nil
}

// Server is the service's half of the agent's protocol.
type Server struct {
	Store      agentdevice.Store
	Enroller   Enroller
	Deliveries Deliveries
	Logs       agentdevice.LogStore
	Companions agentdevice.CompanionStore
	Directory  Directory
	Observer   Observer
	Commands   Commands
	Waker      Waker
	Streams    Streams        // nil: no command goes out on a stream
	Updates    rollout.Offers // nil: devices are offered no updates
	Signer     Signer         // for devices that were given an Ed25519 key
	ES256      Signer         // for devices that were given a P-256 key
	PublicURL  string
	// Pins are the keys of certificates by which new devices know the service;
	// none where the world's authorities vouch for it. Nil: none.
	Pins func() ([]string, error)
	// Since is when this replica began to listen, could not look last, or was suspended: that a device was silent
	// before says nothing. Sweep alone reads and moves it; zero: it always listened.
	Since time.Time
	// App is what codes have a device install; the zero App: nothing.
	App App
	// ShortNames has codes written with the setup wizard's short names.
	ShortNames bool
	Now        func() time.Time
	Log        *slog.Logger

	keys    keyring
	unknown unknowns
	looked  time.Time // when Sweep was called last; Sweep alone uses it
}

// App is the device-owner app that a code has Android's setup wizard install.
type App struct {
	Checksum string // of the certificate that signed it, as Android writes it
	Package  string // empty: that of a release
	// Location is another address to download it from than the service's own; empty:
	// that.
	Location string
}

// signer is who signs for devices that were given a key of the algorithm.
func (l *Server) signer(alg protocol.Algorithm) Signer {
	if alg == protocol.ES256 {
		return l.ES256
	}
	return l.Signer
}

// seal signs v for a device.
func (l *Server) seal(d agentdevice.Device, kind string, v any) (protocol.Envelope, error) {
	signer := l.signer(d.CommandAlgorithm)
	return protocol.Seal(signer.Key, signer.ID, kind, v)
}

// commandKey is the key that a new device trusts. It has the algorithm of the
// device's own.
func (l *Server) commandKey(alg protocol.Algorithm) (protocol.CommandKey, error) {
	signer := l.signer(alg)
	public, err := signer.Key.Public()
	return protocol.CommandKey{ID: signer.ID, Key: public, NotBefore: signer.Made.UnixMilli()}, err
}
