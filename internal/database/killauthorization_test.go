package database_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/signature"
)

// asks lets a caller send one of the calls, or the first of them be the person, who
// approves the newest authorization of a call that waits.
func (k *killing) asks(by account.User, passkey string) func(int, *rand.Rand) {
	output := func(got wipeAnswer, lost bool) any { return stepped{got.Done, lost} }
	return func(caller int, random *rand.Rand) {
		to, call := random.IntN(2), random.IntN(callsOf)
		o := k.order(call)
		o.Digest = fmt.Sprint("d", call)
		if caller > 0 {
			k.ask(caller, to, o, step{call, false}, output)
			return
		}
		all, err := k.db.Authorizations(k.Context(), k.company.ID, nil, 1000)
		if err != nil {
			k.Error(err)
		}
		for _, a := range all {
			if a.Digest != o.Digest || a.State != approval.Waiting {
				continue
			}
			o.Decides = &wipeDecision{a.ID, by.ID, passkey, k.sign(by, k.document(a.ID, by, signature.Approve, nil))}
			k.ask(caller, to, o, step{call, true}, output)
			return
		}
	}
}

// eachOnce checks what is in the database: each used authorization has one command, and
// each command one used authorization, of the same device.
func (k *killing) eachOnce() {
	k.Helper()
	begun := map[string]string{} // device of a command
	for _, a := range k.devices {
		commands, _, err := k.db.History(k.Context(), k.company.ID, a.ID, operation.PageRequest{Size: 1000})
		k.ok(err)
		for _, c := range commands {
			begun[c.ID] = a.ID
		}
	}
	all, err := k.db.Authorizations(k.Context(), k.company.ID, nil, 1000)
	k.ok(err)
	for _, a := range all {
		if used := a.State == approval.Used; used != (a.CommandID != "") || used && begun[a.CommandID] != a.AssetID {
			k.Errorf("%s authorization of %s has the command %q", a.State, a.AssetID, a.CommandID)
		}
		delete(begun, a.CommandID)
	}
	for id := range begun {
		k.Errorf("command %s has no used authorization", id)
	}
}

// passed counts the calls that were answered with a command, and those that may have
// begun one, and compares them with the commands that there are.
func (k *killing) passed() {
	k.Helper()
	answered, lost, there := 0, 0, 0
	for _, o := range k.history {
		switch out := o.Output.(stepped); {
		case o.Input.(step).approve:
		case out.lost:
			lost++
		case out.done:
			answered++
		}
	}
	for _, a := range k.devices {
		_, n, err := k.db.History(k.Context(), k.company.ID, a.ID, operation.PageRequest{Size: 1})
		k.ok(err)
		there += int(n)
	}
	if answered == 0 || there < answered || there > answered+lost {
		k.Errorf("%d commands; %d were answered, %d lost", there, answered, lost)
	}
}

// Each approval lets exactly one command pass, and everything that callers and the
// person were answered has one order, over two replicas that are killed with SIGKILL
// while they decide.
func TestBegin_AuthorizationIsLinearizableWithKills(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k := &killing{fixture: f, devices: f.fleet(callsOf)}
		f.destructiveApproval()
		f.setLimit(0, 0)
		ada := f.person("Ada", true)
		k.rounds(6, k.asks(ada, f.key(ada).ID), func() {})
		k.linearizable(authorizing())
		k.eachOnce()
		k.passed()
	})
}
