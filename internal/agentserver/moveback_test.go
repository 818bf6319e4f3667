package agentserver_test

import (
	"testing"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/command"
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
