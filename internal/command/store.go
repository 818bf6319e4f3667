package command

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
)

// Transition is one transition of a command.
type Transition struct {
	From    []State // the states it may leave; anything else: not taken
	To      State
	Ref     string // set when not empty
	Outcome string // set when not empty
	// ClearOutcome removes the outcome before, where there is no new one.
	ClearOutcome bool
	Feedback     time.Time // set when not zero
	Deadline     time.Time // set when not zero
	// Ends is the delivery that ends with the step, whether or not it is taken; without the
	// delivery it is not. Nil: none.
	Ends *Outstanding
}

// of is a command that was not stored yet as the step leaves it.
func (s Transition) of(c Command) Command {
	c.State, c.Ref, c.Outcome, c.FeedbackAt = s.To, s.Ref, s.Outcome, s.Feedback
	return c
}

// Store keeps commands. Find methods return fault.NotFound.
type Store interface {
	// Begin commits a command's intent and, if it is not nil, what is held for
	// its device, together. A second intent with the same IdempotencyRef is not
	// made: the first is returned instead. A destructive command beyond the
	// company's limit is not made either: fault.RateLimited. One that a person must
	// authorize is made if they have, and uses the authorization up; if not, a
	// *authorization.Refusal says where they can. operation.ErrDoubt: it is not known whether
	// anything was committed.
	Begin(ctx context.Context, c Command, held *agentdevice.Delivery) (stored Command, begun bool, err error)
	// WhyNot returns why Begin would refuse the command now, by the same decision, or
	// nil. It changes nothing.
	WhyNot(ctx context.Context, c Command) (refused, err error)
	// Advance makes a step if the command is in one of its From states, and
	// reports the command as it then is, and whether the step was taken. What
	// success changes on the asset changes with it: lost mode, the end of the
	// device's management. fault.NotFound without the command.
	Advance(ctx context.Context, id string, s Transition) (Command, bool, error)
	// CommandByRef returns the command that its channel calls ref, or fault.NotFound.
	CommandByRef(ctx context.Context, ref string) (Command, error)
	// History returns an asset's commands, newest first (ties by id), and the total.
	History(ctx context.Context, companyID, assetID string, page operation.PageRequest) ([]Command, int64, error)
	// OpenOf returns the commands of an asset that are not final.
	OpenOf(ctx context.Context, assetID string) ([]Command, error)
	// OnTheWay returns the policies, in the order of their ids, to which open commands
	// may still bring a device that does not have them, except one.
	OnTheWay(ctx context.Context, assetID, except string) ([]approval.Policy, error)
}

// Finder finds commands by what they have become. The database implements it
// beside Store. Each method fails as the database does, and with the faults that it names.
type Finder interface {
	// CommandByIdempotencyRef returns the command that a request with this
	// reference began, or fault.NotFound.
	CommandByIdempotencyRef(ctx context.Context, companyID, ref string) (Command, error)
	// Abandoned returns up to limit commands in PREPARED, oldest first, that
	// were created before a time, or whose sender is known to be dead.
	Abandoned(ctx context.Context, before time.Time, limit int) ([]Command, error)
	// Overdue returns up to limit commands in SENT or UNCONFIRMED that end
	// without a word from the device, earliest deadline first.
	Overdue(ctx context.Context, e Expiry, limit int) ([]Command, error)
}

// Expiry says which commands are overdue: those whose deadline is earlier than Before. One about which
// the platform is to be asked again by AskedAt is overdue only if its deadline is earlier than Unasked.
type Expiry struct{ AskedAt, Before, Unasked time.Time }

// Inventory is what the service needs to know of assets and policies. Each method fails as the
// database does, and with the faults that it names.
type Inventory interface {
	// Asset returns an asset of the company, or fault.NotFound.
	Asset(ctx context.Context, companyID, id string) (asset.Asset, error)
	// CommandTarget returns an asset without what no command needs: what people and the
	// device say of it, and its policy's name. fault.NotFound if the company has none.
	CommandTarget(ctx context.Context, companyID, id string) (asset.Asset, error)
	// Policy returns a policy of the company, also a deleted one, or fault.NotFound.
	Policy(ctx context.Context, companyID, id string) (policy.Policy, error)
	// AssignPolicy notes that a device is to have another policy: it counts as
	// using it from now on and is SYNCHRONIZING until it reports it. A device
	// that was enrolled again since epoch, or is no longer enrolled, is left alone.
	// fault.NotFound without the asset.
	AssignPolicy(ctx context.Context, assetID string, epoch int, policyID string) error
	// MarkDeleted ends a device's management: status DELETED, no managed
	// device, every open command of it final (contract 3.4). A device that was
	// enrolled again since epoch is left alone. fault.NotFound without the asset.
	MarkDeleted(ctx context.Context, assetID string, epoch int, at time.Time) error
}

// Visit is a check-in of a device with Muster's agent.
type Visit struct {
	Device   string
	Key      protocol.PublicKey // that signed the request
	Sequence int64
	Words    []string  // the commands about which the device says something
	Lease    time.Time // until when what is offered is not offered again
	Limit    int       // how many commands are offered at most
}

// Visited is what the store knows of a device that checks in.
type Visited struct {
	Device agentdevice.Device
	// Offered are the commands that are leased to the device with this check-in, oldest first.
	Offered []agentdevice.Delivery
	// Outstanding are those of Visit.Words that the device has not finished, by their ids.
	Outstanding map[string]Outstanding
}

// Outstanding is a command that was kept for its device, which has not finished it. Such a
// command is never given to another asset or caller.
type Outstanding struct {
	Command  Command
	Device   string // that it was delivered to
	Type     string // of the delivery
	Accepted bool   // the device said that it has it
	Logged   bool   // the log that it asks for is kept
}
