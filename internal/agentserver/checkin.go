package agentserver

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/validate"
)

// CheckIn authenticates a check-in as Authenticate does, takes what the device reports and
// gives it what it is to do. read returns what the request says; it is called once the
// signature is good, and before the sequence number is taken.
func (l *Server) CheckIn(ctx context.Context, r protocol.Request, signature string,
	read func() (protocol.CheckinRequest, error)) (protocol.CheckinResponse, error) {
	var request protocol.CheckinRequest
	var visited command.Visited
	d, err := l.admit(ctx, r, signature,
		func(ctx context.Context, device string, key protocol.PublicKey, sequence int64) (_ agentdevice.Device, taken bool, err error) {
			if request, err = read(); err != nil {
				return agentdevice.Device{}, false, err
			}
			visited, taken, err = l.Deliveries.Visit(ctx, l.visit(device, key, sequence, request))
			return visited.Device, taken, err
		})
	if err != nil {
		return protocol.CheckinResponse{}, err
	}
	d.Signature = signature
	visited.Device = d
	return l.hear(ctx, visited, request)
}

// visit is a check-in as the store sees it.
func (l *Server) visit(device string, key protocol.PublicKey, sequence int64, request protocol.CheckinRequest) command.Visit {
	v := command.Visit{Device: device, Key: key, Sequence: sequence, Lease: l.Now().Add(lease), Limit: maxOffers}
	for _, ack := range request.Acks[:min(len(request.Acks), maxAcks)] {
		v.Words = append(v.Words, ack.CommandID)
	}
	return v
}

// hear answers a check-in whose sequence number was taken. Reports come before
// acknowledgments: when a command reads SUCCESS, what it asked for can be read.
func (l *Server) hear(ctx context.Context, visited command.Visited, r protocol.CheckinRequest) (protocol.CheckinResponse, error) {
	d := visited.Device
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
	observe := l.observe
	if d.IsCompanion() {
		observe = l.hearCompanion
	}
	located, err := observe(ctx, d, r, now)
	if err != nil {
		return answer, err
	}
	lacking := ""
	if !located {
		lacking = withoutPlace(r.Location, now)
	}
	ended, full := false, len(visited.Offered) == maxOffers
	for _, ack := range r.Acks[:min(len(r.Acks), maxAcks)] {
		if !understood(ack.State) {
			continue // of a newer agent: what it means is not known here, so it is not confirmed
		}
		over, err := l.acknowledge(ctx, &visited, ack, lacking)
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
	if full && len(visited.Offered) < maxOffers { // the device is through with what was offered again
		if visited.Offered, err = l.Deliveries.Offer(ctx, d, now.Add(lease), maxOffers); err != nil {
			return answer, err
		}
	}
	if err := l.offer(visited, &answer); err != nil {
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
	if d.HasIt && r.Policy == nil { // it says nothing of its policy because that is what it reported last
		if err := l.Commands.PolicyApplied(ctx, d.AssetID, d.PolicyID, asset.Agent, now); err != nil {
			return false, err
		}
	}
	if r.Status == nil && r.Location == nil && r.Policy == nil && !d.Silent {
		l.Directory.TouchDevice(d.AssetID, now)
		return false, nil
	}
	o := enrollment.Observation{CompanyID: d.CompanyID, Device: d.ID, Management: asset.Agent, ReportedAt: now, ObservedAt: now}
	if r.Status != nil {
		o.StatusReport = statusReport(r.Status.Values, deviceTime(r.Status.At, now), func(name string) bool {
			return !enrollment.OwnMember(name)
		})
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
	return located, l.Commands.PolicyApplied(ctx, d.AssetID, o.AppliedPolicy, asset.Agent, now)
}

// maxAcks is how many acknowledgments of one check-in are applied. The agent
// repeats those that are not confirmed.
const maxAcks = 200

// maxOutcome bounds a device's outcome, in characters.
const maxOutcome = 500

func understood(s protocol.AckState) bool {
	return s == protocol.Accepted || s == protocol.Done || s == protocol.Failed
}

// acknowledge applies one word of the device about a command. Words about
// commands that are over, or that were never sent, change nothing. Without a
// place, for the reason withoutPlace, no LOCATION_UPDATE is done. It reports whether
// the device's management ended.
func (l *Server) acknowledge(ctx context.Context, visited *command.Visited, ack protocol.Ack, withoutPlace string) (bool, error) {
	d := visited.Device
	of, outstanding := visited.Outstanding[ack.CommandID]
	if !outstanding {
		return false, nil
	}
	if ack.State == protocol.Accepted {
		return false, l.accept(ctx, of)
	}
	done := ack.State == protocol.Done
	if lacking := unproved(of, withoutPlace); done && lacking != "" {
		done, ack.Outcome = false, lacking
	}
	if done && of.Type == string(command.WipeCompanyData) {
		// The device says that it has started. That it was erased, only its silence
		// tells: if it is heard of again, it is offered the wipe again.
		err := l.accept(ctx, of)
		return err == nil, err
	}
	delete(visited.Outstanding, ack.CommandID)
	visited.Offered = slices.DeleteFunc(visited.Offered, func(v agentdevice.Delivery) bool { return v.CommandID == ack.CommandID })
	ends := stateFor(command.Type(of.Type))
	// A message was final when it was kept, unless the service died over it:
	// then this word settles it.
	if err := l.settle(ctx, of, ack, done, ends == ""); err != nil || ends == "" {
		return false, err
	}
	if done {
		_, err := l.end(ctx, d, agentdevice.Ending{How: agentdevice.Released})
		return true, err
	}
	return false, l.Deliveries.EndDelivery(ctx, d.ID, ack.CommandID, agentdevice.Active) // the device stays
}

// accept notes once that the device has a command.
func (l *Server) accept(ctx context.Context, of command.Outstanding) error {
	if of.Accepted {
		return nil
	}
	return l.Deliveries.Accept(ctx, of.Device, of.Command.ID, of.Type, l.Now())
}

// settle makes the command final by the device's word, at a time that cannot
// be in the future. With ends, its delivery ends with it.
func (l *Server) settle(ctx context.Context, of command.Outstanding, ack protocol.Ack, done, ends bool) error {
	f := command.Feedback{CommandID: ack.CommandID, Succeeded: done, Outcome: ownWords(ack.Outcome), At: deviceTime(ack.At, l.Now())}
	if ends {
		f.Ends = &of
	}
	_, _, err := l.Commands.Settle(ctx, f)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// ownWords is a device's outcome. It never begins as those of canceled commands do: a wipe with
// such an outcome waits for no person.
func ownWords(outcome string) string {
	const canceled = "cancelled:"
	outcome = validate.Clean(outcome, maxOutcome)
	if len(outcome) >= len(canceled) && strings.EqualFold(outcome[:len(canceled)], canceled) {
		return "the device says: " + outcome
	}
	return outcome
}

// heldRetry is how soon a companion asks again for what is held, in seconds.
const heldRetry = 2

// offer adds the commands that the device is to carry out, signed for it alone.
func (l *Server) offer(visited command.Visited, answer *protocol.CheckinResponse) error {
	for _, one := range visited.Offered {
		sealed, err := l.sealCommand(visited.Device, one)
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
