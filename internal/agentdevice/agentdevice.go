// Package agentdevice is a device with Muster's own agent as the service knows
// it: its key and sequence, where it stands, and the commands on their way to it.
package agentdevice

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// State is where a device stands with the service.
//
//	ACTIVE ──wipe──► WIPE_PENDING ──erased, or silent after it set out──► DELETED
//	   │  ▲               │
//	   │  └──it failed────┘
//	   ├──relinquish──► RELINQUISH_PENDING ──released──► DELETED
//	   └──unenrolled, or superseded──► DELETED
type State string

// The states. A DELETED device's row stays: its key proves who asks, and the
// answer is a signed tombstone.
const (
	Active            State = "ACTIVE"
	WipePending       State = "WIPE_PENDING"
	RelinquishPending State = "RELINQUISH_PENDING"
	Deleted           State = "DELETED"
)

// WakeTopic is the topic of wake-ups; ids are device ids.
const WakeTopic = "agent"

// EndTopic is the topic of hints that devices are no longer managed; ids are
// theirs.
const EndTopic = "agent-end"

// Device is an enrolled agent.
type Device struct {
	ID        string
	CompanyID string
	AssetID   string
	Epoch     int
	Role      protocol.Role
	Key       protocol.PublicKey
	// CommandAlgorithm is that of the command key which the device was given when
	// it enrolled: all that it obeys is signed so for as long as it is enrolled.
	CommandAlgorithm protocol.Algorithm
	// LastSequence is that of the request in which the device is in contact now, and
	// Signature its signature; that is not stored.
	LastSequence int64
	Signature    string
	State        State
	Wiped        bool // DELETED by a wipe, or while one was open: a later contact is told to erase
	Superseded   bool // DELETED because another device has become its asset since
	Capabilities []protocol.Capability
	// Build is the agent that runs on the device.
	Build      Build
	EnrolledAt time.Time
	SeenAt     time.Time
	// Silent: the inventory has given it up as INACTIVE.
	Silent bool
	// Open counts the commands that the device has not had or not finished.
	Open int
	// PushToken is where FCM reaches a companion; empty: nowhere.
	PushToken string
	// PolicyID and PolicyVersion are what the device is to have; read together
	// with it. A companion has none.
	PolicyID      string
	PolicyVersion int
	// HasIt: by its last report the device has the policy, and a change of policy to it is open;
	// read with its check-in.
	HasIt bool
}

// Build is a build of the agent, as it says of itself.
type Build struct {
	Version string
	Package string // what its updates are built for; empty: it takes none
	Code    int64
}

// Token is a one-time enrollment token, of a device or of a companion.
type Token struct {
	Hash      [sha256.Size]byte
	CompanyID string
	PolicyID  string
	// AssetID is the one asset that the token enrolls or a companion is for, while it
	// is at Epoch; empty: the token is for any device.
	AssetID   string
	Epoch     int
	Code      string // the enrollment code that it is of; empty: none is kept
	ExpiresAt time.Time
}

// Enrollment is a request to enroll a device with a token.
type Enrollment struct {
	Hash   [sha256.Size]byte // of the token
	Device Device
	// Again is since when the token may have been spent for the same key: an
	// answer that was lost is given again.
	Again time.Time
	// Former is the device whose key, FormerKey, signed the request as well;
	// empty: none did.
	Former    string
	FormerKey protocol.PublicKey
	// Lost: the device says that it was enrolled, and has lost its key or identity.
	Lost bool
}

// Ending is the end of a device.
type Ending struct {
	How How
	At  time.Time
	// SilentSince, with Erased: the device ends only if it set out before that
	// time and has been silent since.
	SilentSince time.Time
}

// How is the way in which a device ends. The activity log shows it.
type How string

// The ways.
const (
	Unenrolled How = "the device unenrolled itself" // not while a wipe is open
	Released   How = "the device was released by a command"
	Erased     How = "the device started to erase itself and has been silent since"
	Replaced   How = "the device that it accompanies ended, or has a newer companion"
)

// Delivery is a command on its way to a device.
type Delivery struct {
	CommandID string
	DeviceID  string
	Type      string // a command's type
	Args      json.RawMessage
	CreatedAt time.Time
	Deadline  time.Time // zero: none
	// Number orders the deliveries of a device that were made in the same
	// millisecond; the store sets it.
	Number int64
	// Final: the command is over for the caller (a message counts as delivered
	// once it is durable); the device's word only ends the delivery.
	Final    bool
	Accepted time.Time // when the device said that it has it; zero: it has not
	// HeldUntil keeps a delivery from being offered before the push that calls
	// for it was accepted; zero: it is offered at once.
	HeldUntil time.Time
	// Brings is the state that the delivery brings its device to; empty: as it was.
	Brings State
	// LeaseUntil is how long a new delivery is not offered, because Place sends it; zero:
	// it is offered at once.
	LeaseUntil time.Time
	// Place sends the command once it is committed. It is nil, and not stored, unless
	// LeaseUntil is set.
	Place Place
}

// Store keeps devices, tokens and deliveries. Find methods return
// fault.NotFound.
type Store interface {
	// CreateAgentToken stores a token that one device can redeem until it expires.
	CreateAgentToken(ctx context.Context, t Token) error
	// DropAgentToken deletes a token that was not handed out.
	DropAgentToken(ctx context.Context, hash [sha256.Size]byte) error
	// AgentDevice returns a device in any state, or fault.NotFound.
	AgentDevice(ctx context.Context, id string) (Device, error)
	// AgentOf returns the live device of an asset's enrollment.
	AgentOf(ctx context.Context, assetID string, epoch int) (Device, error)
	// Contact notes a request of a live device that has the key: it takes the
	// sequence number if it is higher than any before, and returns the device as
	// it then is. false: something of that does not hold, and nothing changed.
	Contact(ctx context.Context, id string, key protocol.PublicKey, sequence int64) (Device, bool, error)
	// UpdateAgent changes what a device says of itself; fault.Refused if the key to be
	// replaced is not the device's.
	UpdateAgent(ctx context.Context, deviceID string, change Change) error
}

// DeliveryStore keeps commands on their way to devices.
type DeliveryStore interface {
	// Offer leases up to limit deliveries of the device, oldest first; a device
	// that is to be wiped or released is offered only that, lease or not.
	Offer(ctx context.Context, d Device, until time.Time, limit int) ([]Delivery, error)
	// Accept notes that the device has a command of a type. Nothing happens if it was noted
	// before, or if there is no such delivery.
	Accept(ctx context.Context, deviceID, commandID, kind string, at time.Time) error
	// DropExpired ends up to limit deliveries whose deadline has passed, and says how many.
	DropExpired(ctx context.Context, limit int) (int, error)
	// EndDelivery ends a delivery and brings the device to the state if it is not empty.
	EndDelivery(ctx context.Context, deviceID, commandID string, s State) error
	// EndAgent ends a device with its deliveries and, unless it is a companion,
	// the management of its asset. false: the device had ended before, or may
	// not end so, and nothing changed.
	EndAgent(ctx context.Context, d Device, e Ending) (bool, error)
	// Waiting returns up to limit devices for which something became due between
	// two times: a delivery was made or its lease ran out, another policy was
	// assigned, or the policy was saved.
	Waiting(ctx context.Context, after, until time.Time, limit int) ([]string, error)
	// Erased returns up to limit devices that set out to erase themselves before
	// a time and have been silent since.
	Erased(ctx context.Context, before time.Time, limit int) ([]Device, error)
}

// Change is what a device changes about itself.
type Change struct {
	Capabilities []protocol.Capability // nil: unchanged
	Build        *Build                // nil: unchanged
	Key          *protocol.PublicKey
	Was          protocol.PublicKey // the key that Key replaces
}
