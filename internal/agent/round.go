package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// hasUnsent reports whether the service lacks something that the agent knows.
func (a *Agent) hasUnsent() bool {
	return len(a.acks()) > 0 || a.unreported() || a.report != nil || a.location != nil || a.updates.unsent()
}

// round checks in once and runs the commands that need no further request. afterward runs
// the others, and applies the policy and the update that the answer assigns.
func (a *Agent) round(ctx context.Context) (next time.Duration, afterward func() error, err error) {
	request, err := a.compose(ctx)
	if err != nil {
		return 0, nil, err
	}
	a.gate.pass(ctx, a)
	var answer protocol.CheckinResponse
	began := a.after(0)
	sequence, err := a.sendCheckIn(ctx, &request, &answer)
	a.pace.reach(err == nil)
	if err != nil {
		if full := a.unanswered(ctx, request.BootID, began); full != nil { // it holds back nothing else
			a.options.Log.WarnContext(ctx, "cannot write down what was rolled back", "error", full)
		}
		return 0, nil, a.refused(ctx, err)
	}
	a.clockUnverified, a.erasing = false, time.Time{} // a wipe can be taken back
	if err := a.delivered(request, answer, began); err != nil {
		return 0, nil, err
	}
	if err := a.accept(ctx, protocol.CheckinResponse{Keys: answer.Keys, Commands: append(a.unopened, answer.Commands...)}); err != nil {
		return 0, nil, err
	}
	a.unopened = nil
	afterward = func() error {
		late := a.execute(ctx, true) // what cannot reach the service holds back neither policy nor update
		if _, away := errors.AsType[unreached](late); late != nil && !away || a.goingDown(request.BootID) {
			return late
		}
		err := a.follow(ctx, answer, sequence, false)
		if err != nil {
			err = fmt.Errorf("cannot apply the policy: %w", err)
		}
		return cmp.Or(a.update(ctx, request, answer, sequence), err, late)
	}
	seconds := min(max(answer.NextSeconds, int(minNext/time.Second)), int(maxNext/time.Second))
	return time.Duration(seconds) * time.Second, afterward, a.execute(ctx, false)
}

// compose gathers what the service does not know yet.
func (a *Agent) compose(ctx context.Context) (protocol.CheckinRequest, error) {
	boot, err := a.options.Device.BootID(ctx)
	if err != nil {
		return protocol.CheckinRequest{}, err
	}
	if a.report == nil && (a.applied.Policy.ID != "" && !a.applied.Reported || a.troublesUnsent) {
		// What the policy lets the device report has changed with it.
		if _, err := a.collect(ctx, false); err != nil {
			a.options.Log.WarnContext(ctx, "cannot report with the policy", "error", err)
		}
	}
	request := protocol.CheckinRequest{AgentVersion: a.options.Version, BootID: boot, KeyID: a.link.newestKey(), Acks: a.someAcks(),
		Status: a.report, Location: a.location, Build: a.updates.build(), Update: a.updates.report()}
	if a.applied.Policy.ID != "" && (!a.applied.Reported || a.report != nil) { // a status report is about it, too
		request.Policy = &protocol.PolicyReport{PolicyRef: a.applied.Policy, Settings: a.applied.Settings}
	}
	can, err := a.options.Device.Capabilities(ctx)
	if err != nil {
		return request, err
	}
	if a.confirmed == nil || !slices.Equal(a.confirmed, can) {
		request.Capabilities = can
	}
	return request, nil
}

// acks are the acknowledgments that the service has not confirmed.
func (a *Agent) acks() []protocol.Ack {
	var acks []protocol.Ack
	for _, e := range a.journal.Entries(Done) {
		acks = append(acks, protocol.Ack{CommandID: e.Command.ID, State: e.Result, Outcome: e.Outcome, At: e.At})
	}
	for _, e := range a.journal.Entries(Received) {
		if asksFirst(e.Command.Type) && !e.Accepted {
			acks = append(acks, protocol.Ack{CommandID: e.Command.ID, State: protocol.Accepted, At: e.At})
		}
	}
	return acks
}

// delivered notes what has reached the service with a check-in that began at a moment, by the
// clock of this start of the machine, in milliseconds.
func (a *Agent) delivered(request protocol.CheckinRequest, answer protocol.CheckinResponse, began int64) error {
	a.crash("before confirm")
	if err := a.confirm(answer.Acked); err != nil {
		return err
	}
	if request.Capabilities != nil {
		a.confirmed = request.Capabilities
	}
	a.updates.delivered(request.Update, answer.UpdateTold)
	a.troublesUnsent = a.troublesUnsent && request.Status == nil
	a.report, a.location = nil, nil
	holds := a.holds(began)
	if holds {
		a.applied.Guard = nil
	}
	if request.Policy != nil && request.Policy.PolicyRef == a.applied.Policy {
		a.applied.Reported = true
	}
	if holds || request.Policy != nil {
		if err := a.store.save(appliedFile, a.applied); err != nil { // it holds back nothing else: the next start reports it again
			a.options.Log.Warn("cannot write down what the service has of the policy", "error", err)
		}
	}
	return nil
}

// confirm notes in the journal the commands whose acknowledgments the service has. It fails
// with ErrEnded, and deletes what the agent keeps, if one of them ended the enrollment.
func (a *Agent) confirm(acked []string) error {
	var entries []Entry
	over := false
	for _, id := range acked {
		e, ok := a.journal.Entry(id)
		switch {
		case ok && e.Stage == Done:
			over = over || asksFirst(e.Command.Type) && e.Result == protocol.Done
			e.Stage = Confirmed
		case ok && e.Stage == Received && asksFirst(e.Command.Type):
			e.Accepted = true
		default:
			continue
		}
		e.At = a.link.serviceTime().UnixMilli()
		entries = append(entries, e)
	}
	if len(entries) > 0 {
		if err := a.journal.Write(entries...); err != nil {
			return err
		}
	}
	if over { // the service knows: nothing is left to be sent
		return ended(a.store.destroy())
	}
	return nil
}

// accept takes the keys and commands of an answer, the latter into the journal.
// What is not signed by the service, or not for this device, is dropped; what is
// known already is not run again.
func (a *Agent) accept(ctx context.Context, answer protocol.CheckinResponse) error {
	if err := a.link.learn(answer.Keys); err != nil {
		a.options.Log.WarnContext(ctx, "keys that the service announced are not trusted", "error", err)
	}
	var entries []Entry
	for _, envelope := range answer.Commands {
		var c protocol.Command
		if err := a.link.open(envelope, protocol.KindCommand, &c); err != nil {
			a.options.Log.WarnContext(ctx, "a command that the service did not sign is dropped", "error", err)
			continue
		}
		if c.DeviceID != a.link.deviceID() || c.ID == "" {
			a.options.Log.WarnContext(ctx, "a command for another device is dropped")
			continue
		}
		if e, known := a.journal.Entry(c.ID); known {
			switch {
			case e.Stage != Confirmed:
				continue
			case reports(c.Type): // the service has forgotten, also what was reported
				e = Entry{Command: c, Stage: Received, At: e.At}
			default: // the service has forgotten: acknowledge it again
				e.Stage = Done
			}
			entries = append(entries, e)
			continue
		}
		if e, ok := a.received(ctx, c); ok {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	a.crash("before received")
	return a.journal.Write(entries...)
}

// received is the entry of a new command. One that cannot be kept has failed, and
// holds back no other.
func (a *Agent) received(ctx context.Context, c protocol.Command) (Entry, bool) {
	e := Entry{Command: c, Stage: Received, At: a.link.serviceTime().UnixMilli()}
	if !keeps(e) {
		e.Command = protocol.Command{ID: c.ID, Type: c.Type}
		e.Stage, e.Result, e.Outcome = Done, protocol.Failed, "the device cannot keep this command: it is too large"
	}
	if !keeps(e) {
		a.options.Log.WarnContext(ctx, "a command that cannot be kept is dropped", "id", oneLine(c.ID))
		return e, false
	}
	return e, true
}
