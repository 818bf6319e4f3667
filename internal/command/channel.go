package command

import (
	"context"
	"github.com/musterhq/muster/internal/outcome"
	"time"

	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
)

// Channel carries commands to devices: the platform, the service for agents,
// push.
type Channel interface {
	// Prepare is asked before the intent is stored. A channel that keeps orders
	// in the service's own store until their devices fetch them returns the
	// delivery, and what it comes to once it is committed: intent, delivery and
	// outcome are one commit, and the store wakes the device. A receipt alone
	// says that nothing will be sent, and why; if its verdict is Unreachable, no
	// trace is kept. Nothing at all: the order goes by Send.
	Prepare(ctx context.Context, order Order) (*agentdevice.Delivery, *Receipt)
	// Send makes one attempt, without retries, to hand over an order whose
	// intent is durable. It never blocks longer than its own time limit, also
	// when ctx has none, and goes on when the caller has gone away.
	Send(ctx context.Context, order Order) Receipt
}

// Direct is embedded in channels that send every order themselves.
type Direct struct{}

// Prepare leaves the order to Send.
func (Direct) Prepare(context.Context, Order) (*agentdevice.Delivery, *Receipt) { return nil, nil }

// Order is all that a channel needs to carry out a command.
type Order struct {
	// Command is the intent as it is stored. Its Deadline, set from
	// Type.Lifetime, is what the channel must tell the device or the platform.
	Command Command
	Company company.Company
	AssetID string
	Device  asset.Device
	// Body is the command's own argument: nil, or one of the types of
	// arguments.go.
	Body any
}

// Receipt is the answer to an Order.
type Receipt struct {
	Code outcome.Code
	Ref  string // with Accepted: the channel's name of the command
	// Detail is for the caller: what happened and what to do.
	Detail string
	// Outcome is for the history; empty: Detail.
	Outcome string
	Cause   error // for the log
	// FeedbackAt is the time of the device's own word, with Done or Refused;
	// zero: the device itself has not spoken.
	FeedbackAt time.Time
}
