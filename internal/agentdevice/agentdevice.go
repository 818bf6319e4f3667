// Package agentdevice is the service's record of devices that Muster's own agent manages: their keys, states and
// enrollment tokens, and the commands on their way to them.
package agentdevice

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// State is the state of a device's enrollment.
//
//	ACTIVE ──wipe──► WIPE_PENDING ──erased, or silent after it set out──► DELETED
//	   │  ▲               │
//	   │  └──it failed────┘
//	   ├──relinquish──► RELINQUISH_PENDING ──released──► DELETED
//	   └──unenrolled, or superseded──► DELETED
type State string

// The states. The row of a DELETED device stays, with its key: the service answers the device's requests by a signed
// tombstone, which says that it is no longer managed.
const (
	Active            State = "ACTIVE"
	WipePending       State = "WIPE_PENDING"
	RelinquishPending State = "RELINQUISH_PENDING"
	Deleted           State = "DELETED"
)

// WakeTopic is the topic of wake-ups; ids are device ids.
const WakeTopic = "agent"

// EndTopic is the topic of hints that devices are no longer managed; ids are device ids.
const EndTopic = "agent-end"

// Device is an enrolled agent.
type Device struct {
	ID        string
	CompanyID string
	AssetID   string
	Epoch     int
	Role      protocol.Role
	Key       protocol.PublicKey
	// CommandAlgorithm is the algorithm of the command key that the device got when it enrolled. All its commands
	// are signed with this algorithm.
	CommandAlgorithm protocol.Algorithm
	LastSequence     int64  // of the request that is being answered
	Signature        string // of that request; not stored
	State            State
	Wiped            bool // DELETED by a wipe, or while one was open: a later contact is told to erase
	Superseded       bool // DELETED because another device has become its asset since
	Capabilities     []protocol.Capability
	Build            Build // the agent that runs on the device
	EnrolledAt       time.Time
	SeenAt           time.Time
	Silent           bool   // its asset is INACTIVE
	Open             int    // how many commands it has not finished
	PushToken        string // of FCM, for a companion; empty: it has none
	// PolicyID and PolicyVersion are the policy that the device is to have. A companion has none.
	PolicyID      string
	PolicyVersion int
	// HasIt: the device's last report has that policy, and the command that assigned it is still open, or it is not
	// known whether one assigned another. Only a check-in reads it.
	HasIt bool
}

// Build is a build of the agent, as the agent reports it.
type Build struct {
	Version string
	Package string // the package that its updates must be for; empty: it installs none
	Code    int64  // the version code
}

// Token is a one-time enrollment token, of a device or of a companion.
type Token struct {
	Hash      [sha256.Size]byte
	CompanyID string
	PolicyID  string
	// AssetID is the only asset that the token enrolls, or adds a companion to, while the asset's epoch is
	// Epoch; empty: the token is for any device.
	AssetID   string
	Epoch     int
	Code      string // the id of the enrollment code that has the token; empty: none is stored
	ExpiresAt time.Time
}

// Enrollment is a request to enroll a device with a token.
type Enrollment struct {
	Hash   [sha256.Size]byte // of the token
	Device Device
	// Again is the earliest time at which the same key may have spent the token: then the request is a
	// repetition, whose answer was lost, and gets the same answer.
	Again time.Time
	// Former is the device whose key, FormerKey, also signed the request; empty: none did.
	Former    string
	FormerKey protocol.PublicKey
	// Lost: the device reports that it was enrolled, and has lost its key or identity.
	Lost bool
}

// Ending is the end of a device.
type Ending struct {
	How How
	At  time.Time
	// SilentSince, with Erased: the device ends only if it started to erase itself before that
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
	// Final: the command has its result already, such as a message, which succeeds once it is stored. The
	// device's acknowledgment only ends the delivery.
	Final    bool
	Accepted time.Time // when the device reported that it has stored the command; zero: it has not
	// HeldUntil is when the delivery can be offered if the push that calls for it is not accepted
	// before; zero: at once.
	HeldUntil time.Time
	// Brings is the state that the delivery changes its device to; empty: the state stays.
	Brings State
	// LeaseUntil is when a new delivery can be offered, because Place sends it before; zero: at once.
	LeaseUntil time.Time
	// Place sends the command once it is committed. It is nil, and not stored, unless
	// LeaseUntil is set.
	Place Place
}

// Store keeps devices and tokens. Each method fails as the database does, and with the faults that it names.
type Store interface {
	// CreateAgentToken stores a token that one device can redeem until it expires.
	CreateAgentToken(ctx context.Context, t Token) error
	// DropAgentToken deletes a token that was not handed out.
	DropAgentToken(ctx context.Context, hash [sha256.Size]byte) error
	// AgentDevice returns a device in any state, or fault.NotFound.
	AgentDevice(ctx context.Context, id string) (Device, error)
	// AgentOf returns the device of an asset's enrollment that is not DELETED, or fault.NotFound.
	AgentOf(ctx context.Context, assetID string, epoch int) (Device, error)
	// Contact saves the sequence number of a device's request, and returns the device. It returns false, and
	// changes nothing, if the device is DELETED or has another key, or had a request with this number or
	// a higher one.
	Contact(ctx context.Context, id string, key protocol.PublicKey, sequence int64) (Device, bool, error)
	// UpdateAgent saves what a device reports of itself. It fails with fault.Refused if the key to replace is
	// not the device's.
	UpdateAgent(ctx context.Context, deviceID string, change Change) error
}

// DeliveryStore keeps commands on their way to devices. Each method fails as the database does, and with the faults
// that it names.
type DeliveryStore interface {
	// Offer returns up to limit deliveries of the device, oldest first, and leases them until a time. A device
	// that is to be wiped or released gets only that command, even if it is leased.
	Offer(ctx context.Context, d Device, until time.Time, limit int) ([]Delivery, error)
	// Accept notes that the device has stored a command of a type. It does nothing if that was noted before,
	// or if there is no such delivery.
	Accept(ctx context.Context, deviceID, commandID, kind string, at time.Time) error
	// DropExpired ends up to limit deliveries whose deadline has passed, and returns how many. A device that was
	// offered a command may still say for some minutes that it is done.
	DropExpired(ctx context.Context, limit int) (int, error)
	// EndDelivery ends a delivery, and changes the device's state unless s is empty.
	EndDelivery(ctx context.Context, deviceID, commandID string, s State) error
	// EndAgent ends a device with its deliveries and, unless it is a companion, the management of its asset. It
	// returns false, and changes nothing, if the device had ended before or must not end in this way. It fails with
	// fault.NotFound if its asset was deleted.
	EndAgent(ctx context.Context, d Device, e Ending) (bool, error)
	// Waiting returns up to limit devices for which something became due between
	// two times: a delivery was made or its lease ran out, another policy was
	// assigned, or the policy was saved.
	Waiting(ctx context.Context, after, until time.Time, limit int) ([]string, error)
	// Erased returns up to limit devices that started to erase themselves before a time and have been silent
	// since.
	Erased(ctx context.Context, before time.Time, limit int) ([]Device, error)
}

// Change is what a device changes about itself.
type Change struct {
	Capabilities []protocol.Capability // nil: unchanged
	Build        *Build                // nil: unchanged
	Key          *protocol.PublicKey
	Was          protocol.PublicKey // the key that Key replaces
}
