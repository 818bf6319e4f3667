package agentserver

import (
	"context"
	"maps"
	"slices"
	"time"

	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

// CheckIn takes what the device reports and gives it what it is to do. Reports
// come before acknowledgments: when a command reads SUCCESS, what it asked for
// can be read.
func (l *Server) CheckIn(ctx context.Context, d agentdevice.Device, r protocol.CheckinRequest) (protocol.CheckinResponse, error) {
	now := l.Now()
	answer := protocol.CheckinResponse{ServerTime: now.UnixMilli(), NextSeconds: int(CheckInEvery / time.Second)}
	if able := capabilities(r.Capabilities); able != nil && (d.Capabilities == nil || !slices.Equal(able, d.Capabilities)) {
		if err := l.Store.UpdateAgent(ctx, d.ID, agentdevice.Change{Capabilities: able}); err != nil {
			return answer, err
		}
	}
	var err error
	if r.KeyID != "" { // an agent that does not say knows but one
		if answer.Keys, err = l.signer(d.CommandAlgorithm).succession(r.KeyID); err != nil {
			return answer, err
		}
	}
	hear := l.observe
	if d.IsCompanion() {
		hear = l.hearCompanion
	}
	located, err := hear(ctx, d, r, now)
	if err != nil {
		return answer, err
	}
	lacking := ""
	if !located {
		lacking = withoutPlace(r.Location, now)
	}
	ended := false
	for _, ack := range r.Acks[:min(len(r.Acks), maxAcks)] {
		if !understood(ack.State) {
			continue // of a newer agent: what it means is not known here, so it is not confirmed
		}
		over, err := l.acknowledge(ctx, d, ack, lacking)
		if err != nil {
			return answer, err
		}
		ended = ended || over
		answer.Acked = append(answer.Acked, ack.CommandID)
	}
	if ended {
		return answer, nil
	}
	if answer.Assignment, err = l.assignment(d, now); err != nil {
		return answer, err
	}
	if err := l.update(ctx, d, r, now, &answer); err != nil {
		return answer, err
	}
	if err := l.offer(ctx, d, now, &answer); err != nil {
		return answer, err
	}
	if d.Open > len(r.Acks)+len(answer.Commands) {
		// The rest is leased to an answer that the device may not have seen.
		answer.NextSeconds = int(lease / time.Second)
		if d.IsCompanion() {
			// Or held until the push that called for it is answered, at any moment.
			answer.NextSeconds = heldRetry
		}
	}
	return answer, nil
}

// observe applies what the device says of itself. Without any news it only
// notes, together with others, that the device was heard of; one that had
// fallen silent is back at once. It reports whether a place was taken over.
func (l *Server) observe(ctx context.Context, d agentdevice.Device, r protocol.CheckinRequest, now time.Time) (located bool, err error) {
	if d.AssetID == "" {
		return false, nil
	}
	if r.Status == nil && r.Location == nil && r.Policy == nil && !d.Silent {
		l.Directory.TouchDevice(d.AssetID, now)
		return false, nil
	}
	o := enrollment.Observation{CompanyID: d.CompanyID, Device: d.ID, Management: asset.Agent, ReportedAt: now, ObservedAt: now}
	if r.Status != nil {
		o.StatusReport = statusReport(r.Status.Values, said(r.Status.At, now), func(name string) bool { return !enrollment.OwnMember(name) })
		o.Specifications = maps.Clone(r.Status.Specifications)
	}
	o.Location = l.location(ctx, d, r.Location, now)
	if r.Policy != nil && r.Policy.ID == d.PolicyID {
		o.AppliedPolicy, o.AppliedVersion = r.Policy.ID, r.Policy.Version
		if o.Compliance, err = compliance(*r.Policy, now); err != nil {
			return false, err
		}
	}
	change, err := l.Observer.Observe(ctx, o)
	if fault.CodeOf(err) == fault.InvalidArguments {
		l.Log.WarnContext(ctx, "a report that cannot be kept is dropped", "device", d.ID, "error", err)
		return false, nil
	}
	located = change.Applied && o.Location != nil
	if err != nil || !change.Applied || o.AppliedPolicy == "" {
		return located, err
	}
	return located, l.Commands.PolicyApplied(ctx, d.AssetID, o.AppliedPolicy, now)
}

// maxAcks is how many acknowledgments of one check-in are applied. The agent
// repeats those that are not confirmed.
const maxAcks = 200

func understood(s protocol.AckState) bool {
	return s == protocol.Accepted || s == protocol.Done || s == protocol.Failed
}

// acknowledge applies one word of the device about a command. Words about
// commands that are over, or that were never sent, change nothing. Without a
// place, for the reason withoutPlace, no LOCATION_UPDATE is done. It reports whether
// the device's management ended.
func (l *Server) acknowledge(ctx context.Context, d agentdevice.Device, ack protocol.Ack, withoutPlace string) (bool, error) {
	if ack.State == protocol.Accepted {
		_, err := l.Deliveries.Accept(ctx, d.ID, ack.CommandID, l.Now())
		if fault.CodeOf(err) == fault.NotFound {
			err = nil
		}
		return false, err
	}
	delivery, err := l.Deliveries.Accept(ctx, d.ID, ack.CommandID, time.Time{})
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	done := ack.State == protocol.Done
	if done {
		lacking, err := l.unproved(ctx, d, delivery, withoutPlace)
		if err != nil {
			return false, err
		}
		if lacking != "" {
			done, ack.Outcome = false, lacking
		}
	}
	if done && delivery.Type == string(command.WipeCompanyData) {
		// The device says that it has started. That it was erased, only its silence
		// tells: if it is heard of again, it is offered the wipe again.
		_, err := l.Deliveries.Accept(ctx, d.ID, ack.CommandID, l.Now())
		return err == nil, err
	}
	// A message was final when it was kept, unless the service died over it:
	// then this word settles it.
	if err := l.settle(ctx, ack, done); err != nil {
		return false, err
	}
	if ends := stateFor(command.Type(delivery.Type)); ends != "" && done {
		_, err := l.end(ctx, d, agentdevice.Ending{How: agentdevice.Released})
		return true, err
	}
	state := agentdevice.State("")
	if stateFor(command.Type(delivery.Type)) != "" { // it failed: the device stays
		state = agentdevice.Active
	}
	return false, l.Deliveries.EndDelivery(ctx, d.ID, ack.CommandID, state)
}

// settle makes the command final by the device's word, at a time that cannot
// be in the future.
func (l *Server) settle(ctx context.Context, ack protocol.Ack, done bool) error {
	_, _, err := l.Commands.Settle(ctx, command.Feedback{CommandID: ack.CommandID, Succeeded: done, Outcome: ack.Outcome, At: said(ack.At, l.Now())})
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// heldRetry is how soon a companion asks again for what is held, in seconds.
const heldRetry = 2

// offer adds the commands that the device is to carry out, signed for it alone.
func (l *Server) offer(ctx context.Context, d agentdevice.Device, now time.Time, answer *protocol.CheckinResponse) error {
	if d.Open == 0 && d.State == agentdevice.Active {
		return nil
	}
	due, err := l.Deliveries.Offer(ctx, d, now.Add(lease), maxOffers)
	if err != nil {
		return err
	}
	for _, one := range due {
		sealed, err := l.sealCommand(d, one)
		if err != nil {
			return err
		}
		answer.Commands = append(answer.Commands, sealed)
	}
	return nil
}

// sealCommand signs a command for the device that is to carry it out.
func (l *Server) sealCommand(d agentdevice.Device, v agentdevice.Delivery) (protocol.Envelope, error) {
	order := protocol.Command{DeviceID: d.ID, ID: v.CommandID, Type: v.Type, Args: v.Args, NotBefore: v.CreatedAt.UnixMilli()}
	if !v.Deadline.IsZero() {
		order.Deadline = v.Deadline.UnixMilli()
	}
	return l.seal(d, protocol.KindCommand, order)
}
