package agentserver_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/operation"
)

// A device that was away while it was moved to another policy and back has what is assigned,
// and reports nothing new: its check-in settles both moves.
func TestCheckIn_MovedBackWhileAway(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	other := w.newPolicy("Other")
	moves := func() (states [2]command.Command) {
		t.Helper()
		all, _, err := w.db.History(t.Context(), w.company.ID, p.asset().ID, operation.PageRequest{Size: 10})
		if err != nil || len(all) < 2 {
			t.Fatal(all, err)
		}
		return [2]command.Command(all[:2])
	}
	p.send(command.ChangePolicy, command.PolicyRef(other.ID))
	p.send(command.ChangePolicy, command.PolicyRef(w.policy.ID))
	if now := moves(); now[0].State != command.Sent || now[1].State != command.Sent {
		t.Fatalf("before the device was in touch: %+v", now)
	}
	p.mustCheckIn()
	now := moves()
	if now[0].State != command.Succeeded || now[1].State != command.Failed || now[1].Outcome != "overtaken by a later change of policy" {
		t.Errorf("after the check-in: %+v", now)
	}

	p.send(command.ChangePolicy, command.PolicyRef(other.ID))
	p.mustCheckIn()
	if now = moves(); now[0].State != command.Sent && now[0].State != command.Succeeded || p.asset().Device.PolicyID != other.ID {
		t.Errorf("a move that is no move back: %+v", now)
	}
}

// A device is moved and reports it after the service's clock was set back by less than a minute.
func TestCheckIn_MovedAfterASmallStepBack(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	w.pass(30 * time.Second)
	p.mustCheckIn()
	w.pass(0)
	other := w.newPolicy("Other")
	p.send(command.ChangePolicy, command.PolicyRef(other.ID))
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Succeeded || p.asset().Device.PolicyID != other.ID {
		t.Errorf("the move ended %s %q, with the policy %s", c.State, c.Outcome, p.asset().Device.PolicyID)
	}
}

// lostAnswer applies what it is told, and loses the database's answer.
type lostAnswer struct{ agentserver.Observer }

// Observe implements agentserver.Observer.
func (l lostAnswer) Observe(ctx context.Context, o enrollment.Observation) (enrollment.Change, error) {
	_, err := l.Observer.Observe(ctx, o)
	return enrollment.Change{}, errors.Join(operation.ErrDoubt, err)
}

// A move whose answer was lost may have been kept: it is UNCONFIRMED until the device says that it has the policy.
func TestSend_MoveWhoseAnswerWasLost(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	real := w.link.Observer
	w.link.Observer = lostAnswer{real}
	if result := p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy("Other").ID)); result.Status != "UNCONFIRMED" {
		t.Errorf("the move is %+v", result)
	}
	w.link.Observer = real
	p.mustCheckIn()
	all, _, err := w.db.History(t.Context(), w.company.ID, p.asset().ID, operation.PageRequest{Size: 1})
	if err != nil || len(all) != 1 || all[0].State != command.Succeeded {
		t.Errorf("after the check-in: %+v, %v", all, err)
	}
}

// A move that the service never made, as it ended in between, is UNCONFIRMED for ten minutes. Then it has failed: the device
// has what is assigned.
func TestCheckIn_MoveThatWasNeverMade(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	other := w.newPolicy("Other")
	w.commands.Crash = func(step string) {
		if step == command.AfterIntent {
			runtime.Goexit()
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := w.commands.Execute(t.Context(), w.call,
			command.Request{Type: command.ChangePolicy, AssetID: p.assetID, Body: command.PolicyRef(other.ID)})
		t.Errorf("the service went on: %v", err)
	}()
	<-ended
	w.commands.Crash = nil
	if err := w.commands.Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Unconfirmed {
		t.Errorf("at once it is %s %q", c.State, c.Outcome)
	}
	w.commands.Now = func() time.Time { return time.Now().Add(11 * time.Minute) }
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Failed || c.Outcome != "the change was overtaken, or never made" {
		t.Errorf("after ten minutes it is %s %q", c.State, c.Outcome)
	}
	if has := p.asset().Device.PolicyID; has != w.policy.ID {
		t.Errorf("the device has the policy %s, want %s", has, w.policy.ID)
	}
}
