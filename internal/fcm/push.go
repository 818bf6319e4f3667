// Package fcm reaches companions, agents beside the platform's own management,
// through Firebase Cloud Messaging (contract 4.2 message, status-report,
// location-update; 7.1 "message never returns 502").
//
// A push carries no content: it says "there is something to fetch" and names the
// command, which waits for the companion in the database, signed for it alone.
// So what a person is told never passes through a third party, no text is too
// long for a push, and one journal keeps commands from running twice. The
// command is held back until the push service has answered: what was answered
// with "not sent" can never be shown after all.
package fcm

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/api/fcm/v1"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
)

// The limits of one attempt.
const (
	// callTimeout bounds one call of the push service, its token included.
	callTimeout = 15 * time.Second
	// hold is how long a command waits for the push service's answer before the
	// companion may have it anyway: longer than an attempt with its retries takes.
	hold = 60 * time.Second
	// retries and retryBudget bound what is tried again after "too many".
	retries     = 2
	retryBudget = 5 * time.Second
	// maxLife is the longest that FCM keeps a message.
	maxLife = 28 * 24 * time.Hour
)

// Store keeps companions and the commands on their way to them. Each method fails as the database
// does, and with the faults that it names.
type Store interface {
	// AgentOf returns the live device of an asset's enrollment, or fault.NotFound.
	AgentOf(ctx context.Context, assetID string, epoch int) (agentdevice.Device, error)
	// Deliver stores a delivery before it is pushed.
	Deliver(ctx context.Context, d agentdevice.Delivery) error
	// ReleaseDelivery lets a held delivery be offered.
	ReleaseDelivery(ctx context.Context, commandID string) error
	// EndDelivery removes a delivery; one that is gone is no error.
	EndDelivery(ctx context.Context, deviceID, commandID string, s agentdevice.State) error
	// DropPushToken forgets the device's token, unless another has come.
	DropPushToken(ctx context.Context, d agentdevice.Device) error
}

// Config is what a Push is made from.
type Config struct {
	// Endpoint is the address of FCM; empty: the real one. An endpoint is called
	// without authentication unless there are credentials.
	Endpoint        string
	CredentialsFile string
	Project         string // that of the credentials if empty

	Store Store
	// Otherwise takes status reports of devices whose companion is gone: the
	// platform.
	Otherwise command.Channel
	Now       func() time.Time
	Log       *slog.Logger
}

// Push is the channel to companions. It implements command.Channel.
type Push struct {
	command.Direct
	cfg   Config
	fcm   *fcm.Service
	token func() (string, error)
}

var _ command.Channel = (*Push)(nil)

// New makes a Push, or nil where neither credentials nor an endpoint say where
// to push: then nothing can be.
func New(cfg Config) (*Push, error) {
	if cfg.Endpoint == "" && cfg.CredentialsFile == "" {
		return nil, nil
	}
	cfg.Endpoint = strings.TrimRight(cfg.Endpoint, "/")
	p := &Push{cfg: cfg}
	return p, p.connect()
}

// Send pushes for one order. It goes on when the caller has gone away, within
// its own limit.
func (p *Push) Send(ctx context.Context, o command.Order) command.Receipt {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout+retryBudget+callTimeout)
	defer cancel()
	device, err := p.cfg.Store.AgentOf(ctx, o.AssetID, o.Device.Epoch)
	switch {
	case fault.CodeOf(err) == fault.NotFound || err == nil && (!device.IsCompanion() || device.PushToken == ""):
		return p.unreachable(ctx, o, "the device's companion app is not installed, or has no valid push token", err)
	case err != nil:
		return notSent("the service's own store failed", err)
	}
	args, err := json.Marshal(command.AgentArguments(o.Body))
	if err != nil {
		return notSent("the command cannot be written", err)
	}
	delivery := agentdevice.Delivery{CommandID: o.Command.ID, DeviceID: device.ID, Type: string(o.Command.Type), Args: args,
		CreatedAt: o.Command.CreatedAt, Deadline: o.Command.Deadline, HeldUntil: p.cfg.Now().Add(hold)}
	if err := p.cfg.Store.Deliver(ctx, delivery); err != nil {
		if errors.Is(err, operation.ErrDoubt) || errors.Is(err, context.DeadlineExceeded) {
			return command.Receipt{Code: outcome.Unknown, Detail: "the service could not tell whether the command was kept", Cause: err}
		}
		return notSent("the service's own store failed", err)
	}
	return p.conclude(ctx, o, device, p.push(ctx, o, device.PushToken))
}

// conclude settles the delivery by the result of the push.
func (p *Push) conclude(ctx context.Context, o command.Order, d agentdevice.Device, failed *failure) command.Receipt {
	if failed == nil {
		p.release(ctx, o)
		if o.Command.Type == command.NotificationMessage {
			return command.Receipt{Code: outcome.Done, Outcome: "accepted for delivery"}
		}
		return command.Receipt{Code: outcome.Accepted, Ref: "push/" + o.Command.ID}
	}
	if failed.code == outcome.Unknown {
		// The caller is told that it may arrive, so the companion may have it now.
		p.release(ctx, o)
		return command.Receipt{Code: outcome.Unknown, Cause: failed,
			Detail: "it is not known whether the push service took the message: do not send it again, look at the command history"}
	}
	if err := p.cfg.Store.EndDelivery(ctx, d.ID, o.Command.ID, ""); err != nil {
		return command.Receipt{Code: outcome.Unknown, Cause: errors.Join(failed, err),
			Detail: "the push failed, but the device may still fetch the command: do not send it again, look at the command history"}
	}
	switch failed.code {
	case outcome.Unreachable:
		if err := p.cfg.Store.DropPushToken(ctx, d); err != nil {
			p.cfg.Log.WarnContext(ctx, "a dead push token is still on record", "device", d.ID, "error", err)
		}
		p.cfg.Log.WarnContext(ctx, "a push token is no longer valid", "device", d.ID, "reason", failed.reason)
		return p.unreachable(ctx, o, "the device's push token is no longer valid: its companion app was removed or must be opened again",
			failed)
	case outcome.Missing:
		return p.unreachable(ctx, o, "the push service does not know this device", failed)
	case outcome.Refused:
		p.cfg.Log.ErrorContext(ctx, "the push service calls our message malformed", "error", failed)
		return command.Receipt{Code: outcome.Refused, Detail: "the push service refused this message", Cause: failed}
	case outcome.Denied:
		p.cfg.Log.ErrorContext(ctx, "the push service does not take our credentials", "error", failed)
	default: // it may pass
	}
	return notSent("the push service did not take it", failed)
}

// release lets the companion have the command. If that fails, the hold ends by
// itself.
func (p *Push) release(ctx context.Context, o command.Order) {
	if err := p.cfg.Store.ReleaseDelivery(ctx, o.Command.ID); err != nil {
		p.cfg.Log.WarnContext(ctx, "a pushed command waits longer than it should", "command", o.Command.ID, "error", err)
	}
}

// unreachable answers for a device that no push reaches. The platform still
// knows something to report of it.
func (p *Push) unreachable(ctx context.Context, o command.Order, why string, cause error) command.Receipt {
	if o.Command.Type == command.StatusReport {
		if _, refused := p.cfg.Otherwise.Prepare(ctx, o); refused != nil {
			return *refused
		}
		return p.cfg.Otherwise.Send(ctx, o)
	}
	return command.Receipt{Code: outcome.Unreachable, Detail: why, Cause: cause}
}

func notSent(detail string, err error) command.Receipt {
	return command.Receipt{Code: outcome.NotSent, Detail: "the command was not sent: " + detail + "; send it again",
		Outcome: detail, Cause: err}
}
