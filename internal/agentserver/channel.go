package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
)

// Prepare lays an order out for its device. It implements command.Channel.
func (l *Server) Prepare(ctx context.Context, o command.Order) (*agentdevice.Delivery, *command.Receipt) {
	if o.Command.Type == command.ChangePolicy { // a state, not an action: nothing to fetch
		return nil, nil
	}
	device, refused := l.device(ctx, o)
	if refused != nil {
		return nil, refused
	}
	if need := o.Command.Type.Row().Capability; need != "" && device.Capabilities != nil && !slices.Contains(device.Capabilities, need) {
		return nil, &command.Receipt{Code: outcome.Unreachable,
			Detail: fmt.Sprintf("this device cannot do that: it lacks the capability %s", need)}
	}
	args, err := json.Marshal(command.AgentArguments(o.Body))
	if err != nil {
		return nil, notSent(err)
	}
	held := &agentdevice.Delivery{CommandID: o.Command.ID, DeviceID: device.ID, Type: string(o.Command.Type), Args: args,
		CreatedAt: o.Command.CreatedAt,
		Deadline:  o.Command.Deadline, Final: o.Command.Type == command.NotificationMessage, Brings: stateFor(o.Command.Type)}
	l.reserve(device, held)
	if held.Final {
		return held, &command.Receipt{Code: outcome.Done, Outcome: "accepted for delivery"}
	}
	return held, accepted(device, o)
}

func accepted(d agentdevice.Device, o command.Order) *command.Receipt {
	return &command.Receipt{Code: outcome.Accepted, Ref: "agent/" + d.ID + "/" + o.Command.ID}
}

// device finds whom an order is for, or says why nothing can reach it.
func (l *Server) device(ctx context.Context, o command.Order) (agentdevice.Device, *command.Receipt) {
	device, err := l.Store.AgentOf(ctx, o.AssetID, o.Device.Epoch)
	if fault.CodeOf(err) == fault.NotFound {
		return device, &command.Receipt{Code: outcome.Gone, Detail: "the agent is no longer enrolled", Cause: err}
	}
	if err != nil {
		return device, notSent(err)
	}
	return device, nil
}

// notSent: nothing is kept that would ever reach the device.
func notSent(cause error) *command.Receipt {
	return &command.Receipt{Code: outcome.NotSent, Detail: "the service failed before the command was kept: it is safe to retry",
		Cause: cause}
}

// Send moves a device to another policy, the one order that is not prepared:
// the device takes it on when it is next in touch. It implements command.Channel.
func (l *Server) Send(ctx context.Context, o command.Order) command.Receipt {
	device, refused := l.device(ctx, o)
	if refused != nil {
		return *refused
	}
	to, ok := o.Body.(command.ChangePolicyBody)
	if !ok {
		return *notSent(errors.New("a change of policy without a policy"))
	}
	_, err := l.Observer.Observe(ctx, enrollment.Observation{CompanyID: device.CompanyID, Device: device.ID, Management: asset.Agent,
		PolicyID: to.Policy.ID, ObservedAt: l.Now()})
	switch {
	case errors.Is(err, operation.ErrDoubt):
		return command.Receipt{Code: outcome.Unknown, Detail: "the service could not tell whether the change was kept", Cause: err}
	case err != nil:
		return *notSent(err)
	}
	l.Waker.Notify(agentdevice.WakeTopic, device.ID)
	return *accepted(device, o)
}

// stateFor is the state that a command brings its device to.
func stateFor(t command.Type) agentdevice.State {
	switch t {
	case command.WipeCompanyData:
		return agentdevice.WipePending
	case command.RelinquishOwnership:
		return agentdevice.RelinquishPending
	default:
		return ""
	}
}

// Sweep ends what only silence can end, devices that set out to erase themselves
// and fell silent, drops deliveries that came too late, and hints again to devices that may have missed a hint:
// what is due is due for SweepEvery at least, and not for so long that a device
// which is switched off would be hinted at forever. It must not run twice at once.
func (l *Server) Sweep(ctx context.Context) (err error) {
	now := l.looks()
	defer func() {
		if err != nil {
			l.Since = l.Now()
		}
	}()
	if err := l.endErased(ctx, now); err != nil {
		return err
	}
	if err := l.Enroller.EndOrphans(ctx, sweepBatch); err != nil {
		return err
	}
	for dropped := dropBatch; dropped == dropBatch; {
		if dropped, err = l.Deliveries.DropExpired(ctx, dropBatch); err != nil {
			return err
		}
	}
	until := l.Now().Add(-SweepEvery / 3)
	waiting, err := l.Deliveries.Waiting(ctx, until.Add(-hintFor), until, sweepBatch)
	if err == nil && len(waiting) > 0 {
		l.Waker.Notify(agentdevice.WakeTopic, waiting...)
	}
	return err
}

// looks returns the time at which this replica looks. Where it did not look for long, it was
// suspended, with its machine or alone, or the clock was ahead: it listens again from now on.
func (l *Server) looks() time.Time {
	now := l.Now().Round(0) // without the monotonic clock, which stands still with a machine
	if !l.looked.IsZero() && now.Sub(l.looked) > suspendedAfter || l.Since.After(now) {
		l.Since = now
	}
	l.looked = now
	return now
}

// endErased ends devices that set out to erase themselves and fell silent: while this replica
// listened, for a service that is down hears no device.
func (l *Server) endErased(ctx context.Context, now time.Time) error {
	silentSince := now.Add(-eraseGrace)
	if silentSince.Before(l.Since) {
		return nil
	}
	gone, err := l.Deliveries.Erased(ctx, silentSince, sweepBatch)
	for _, d := range gone {
		if _, err := l.end(ctx, d, agentdevice.Ending{How: agentdevice.Erased, SilentSince: silentSince}); err != nil {
			return err
		}
	}
	return err
}

const (
	// SweepEvery is how often Sweep is to be called.
	SweepEvery = 15 * time.Second
	// suspendedAfter is how long after a Sweep the next one means that the replica was suspended.
	suspendedAfter = 4 * SweepEvery
	// hintFor is how long a device is hinted at that does not come.
	hintFor    = 2 * time.Minute
	sweepBatch = 5000
	dropBatch  = 250
)

// end ends a device's management, and with it the open commands of its asset.
func (l *Server) end(ctx context.Context, d agentdevice.Device, e agentdevice.Ending) (bool, error) {
	e.At = l.Now()
	return l.Deliveries.EndAgent(ctx, d, e)
}

// maxStreamArgs is the limit of the arguments of a command that goes out on a stream, in
// bytes: its envelope is larger, and must stay below protocol.MaxStreamCommand.
const maxStreamArgs = protocol.MaxStreamCommand / 2

// reserve has a new delivery go out on the device's wake stream, if this replica holds one
// that takes commands and has room. The delivery then counts as offered from its insertion
// on, so that no stop cancels what may have been written. If it is lost, the device is
// hinted at, and is offered it at a check-in once the lease has ended.
//
// What ends the relation goes by check-ins alone: the device asks before it obeys, and from
// then on is offered nothing else.
func (l *Server) reserve(d agentdevice.Device, v *agentdevice.Delivery) {
	if l.Streams == nil || d.State != agentdevice.Active || v.Brings != "" || len(v.Args) > maxStreamArgs {
		return
	}
	until, sent := v.CreatedAt.Add(streamLease), *v
	v.Place = l.Streams.Reserve(agentdevice.StreamCommand{
		DeviceID: d.ID, Until: until,
		Seal: func() (protocol.Envelope, error) { return l.sealCommand(d, sent) },
		Lost: func() { l.Waker.Notify(agentdevice.WakeTopic, d.ID) },
	})
	if v.Place != nil {
		v.LeaseUntil = until
	}
}
