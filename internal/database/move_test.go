package database_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// moving is a command of a key that moves a device between two policies of version 1,
// which were compared and found equal.
func (f *fixture) moving(a asset.Asset, from, to policy.Policy) command.Command {
	f.Helper()
	c := f.asking(a, command.ChangePolicy, a.ID)
	c.PolicyID = to.ID
	c.Ask.Difference, c.Ask.Move = approval.Same, approval.Move{From: approval.Policy{ID: from.ID, Version: 1},
		To: approval.Policy{ID: to.ID, Version: 1}}
	return c
}

// loosening is a proposal of a key for a setting of high impact.
func loosening(p policy.Policy) proposal.Proposal {
	return proposal.Proposal{ID: resource.NewProposalID(), CompanyID: p.CompanyID, CompanySlug: p.CompanySlug,
		Capability: proposal.UpdateSettings, Status: proposal.Pending, Impact: proposal.Normal, Title: "t", Form: "which \x01",
		Fields:   []proposal.Field{{Label: "Factory reset from Settings", Value: "ALLOW", PreviousValue: "BLOCK"}},
		PolicyID: p.ID, TargetName: p.Name,
		BaseVersion: p.Version, Next: proposal.Next{PolicyID: p.ID, Name: p.Name, Document: []byte(`{"a":2}`)},
		Owner: access.Actor{Kind: access.APIKey, ID: "k1", Name: "ci"}}
}

func (f *fixture) loosening(p policy.Policy) proposal.Proposal {
	f.Helper()
	made, err := f.db.Propose(f.Context(), loosening(p), time.Hour)
	f.ok(err)
	return made
}

func claimOf(id string) proposal.Claim {
	return proposal.Claim{ID: id, Holder: "h", For: time.Minute, Confirmed: true}
}

func (f *fixture) claim(id string) proposal.Claimed {
	f.Helper()
	verdict, err := f.db.ClaimProposal(f.Context(), claimOf(id))
	f.ok(err)
	return verdict
}

func (f *fixture) finish(id, holder string, e proposal.Ending) {
	f.Helper()
	e.ID, e.Holder = id, holder
	_, held, err := f.db.FinishProposal(f.Context(), e)
	f.ok(err)
	equal(f, "held", held, true)
}

// A key or connection moves no device from or to a policy while a proposal about it is
// under way, whatever the policies differ in, until its outcome is known.
func TestBegin_MoveWaitsForAProposal(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(k *access.Controls) { k.ApplyApproval = access.ApproveRisky })
		ada := f.person("Ada", false).ID
		one, two, three := f.newPolicy("One"), f.newPolicy("Two"), f.newPolicy("Three")
		devices := []asset.Asset{f.enroll("d1", one.ID), f.enroll("d2", two.ID), f.enroll("d3", one.ID), f.enroll("d4", one.ID)}
		moves := []command.Command{f.moving(devices[0], one, two), f.moving(devices[1], two, one)} // to it, and from it
		refused := func(when string, want fault.Code) {
			f.Helper()
			for _, c := range moves {
				c.ID = resource.NewID()
				if why, err := f.db.WhyNot(f.Context(), c); fault.CodeOf(why) != want || err != nil {
					f.Errorf("%s: foreseen %v, %v, want %s", when, why, err, want)
				}
				if _, begun, err := f.db.Begin(f.Context(), c, nil); fault.CodeOf(err) != want || begun != (want == "") {
					f.Errorf("%s: begun %t, %v, want %s", when, begun, err, want)
				}
			}
		}
		earlier := f.moving(devices[2], one, two)
		earlier.IdempotencyRef = "r1"
		_, _, err := f.db.Begin(f.Context(), earlier, nil)
		f.ok(err)
		// Another device that uses the policy, so that the proposal needs a person, who has approved for the test.
		made := f.propose(two, access.Actor{Kind: access.User, ID: ada, UserID: ada, Name: "Ada"})
		equal(f, "claimed", f.claim(made.ID), proposal.Begun)
		refused("while it is applied", fault.Unavailable)
		if other, begun, err := f.db.Begin(f.Context(), f.moving(devices[3], one, three), nil); err != nil || !begun {
			f.Errorf("a move between other policies: %v, %v", other, err)
		}
		if again, begun, err := f.db.Begin(f.Context(), earlier, nil); err != nil || begun || again.ID != earlier.ID {
			f.Errorf("a repetition: %v, %t, %v", again.ID, begun, err)
		}
		person := f.intent(devices[3], command.ChangePolicy)
		person.Actor, person.PolicyID = access.Actor{Kind: access.User, ID: "u1"}, two.ID
		if _, begun, err := f.db.Begin(f.Context(), person, nil); err != nil || !begun {
			f.Errorf("a person's move: %t, %v", begun, err)
		}
		f.setControls(func(k *access.Controls) { k.ApplyApproval = access.ApproveNone })
		free := f.moving(devices[3], one, two)
		free.Ask = nil // as the service sends it then
		if _, begun, err := f.db.Begin(f.Context(), free, nil); err != nil || !begun {
			f.Errorf("with the rule off: %t, %v", begun, err)
		}
		f.setControls(func(k *access.Controls) { k.ApplyApproval = access.ApproveAll })

		f.finish(made.ID, "h", proposal.Ending{Status: proposal.Unconfirmed, LookIn: time.Second})
		refused("while the outcome is not known", fault.Unavailable)
		look := func(holder string, e proposal.Ending) {
			f.clock.Advance(time.Minute)
			_, taken, err := f.db.TakeOverProposal(f.Context(), made.ID, holder, time.Minute)
			f.ok(err)
			equal(f, "taken over", taken, true)
			f.finish(made.ID, holder, e)
		}
		look("blind", proposal.Ending{Status: proposal.Unconfirmed, LookIn: time.Second})
		refused("while the platform cannot be asked", fault.Unavailable)
		look("seeing", proposal.Ending{Status: proposal.Failed, Looked: true, LookIn: time.Second})
		refused("after it was reconciled", "")
	})
}

// The policies are compared before: another version is another policy, also where nothing
// has to be authorized.
func TestBegin_EqualMoveIsWhatWasCompared(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setControls(func(k *access.Controls) { k.ApplyApproval = access.ApproveRisky })
		from, to := f.newPolicy("From"), f.newPolicy("To")
		move := f.moving(f.enroll("d1", from.ID), from, to)
		equal(f, "claimed", f.claim(f.loosening(to).ID), proposal.Begun)
		f.finish(f.loosened(to), "h", proposal.Ending{Save: true, Status: proposal.Succeeded})
		_, begun, err := f.db.Begin(f.Context(), move, nil)
		f.code(fault.Unavailable, err)
		equal(f, "begun", begun, false)
	})
}

// loosened is the proposal of a policy that is being applied.
func (f *fixture) loosened(p policy.Policy) string {
	f.Helper()
	all, err := f.db.CompanyProposals(f.Context(), proposal.Query{CompanyID: f.company.ID, PolicyID: p.ID, Limit: 1})
	f.ok(err)
	return all[0].ID
}

// A device that is on its way to a policy counts for the impact and the approval of what is
// applied to it, and is not one that uses it.
func TestClaim_CountsMovesUnderWay(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, rule := range []access.ApprovalRule{access.ApproveNone, access.ApproveRisky} {
			f.setControls(func(k *access.Controls) { k.ApplyApproval = rule })
			from, to := f.newPolicy("From "+string(rule)), f.newPolicy("To "+string(rule))
			phone := f.enroll("d-"+string(rule), from.ID)
			read, unread := f.loosening(to), f.loosening(to)
			equal(f, "impact before", read.Impact, proposal.Normal)
			move := f.moving(phone, from, to)
			_, _, err := f.db.Begin(f.Context(), move, nil)
			f.ok(err)
			moving, err := f.db.MovesTo(f.Context(), to.ID)
			f.ok(err)
			equal(f, "devices under way", moving, 1)
			read, err = f.db.Proposal(f.Context(), f.company.ID, read.ID)
			f.ok(err)
			if rule == access.ApproveNone {
				equal(f, "with the rule off", words(read.Impact, read.Devices, read.Moving), words(proposal.Normal, 0, 0))
				equal(f, "a claim with the rule off", f.claim(unread.ID), proposal.Begun)
				continue
			}
			equal(f, "while it is under way", words(read.Impact, read.Devices, read.Unapproved()), words(proposal.High, 0, true))
			equal(f, "the summary", read.Summary, "which 0 devices use and 1 device is being moved to")
			equal(f, "a claim", f.claim(unread.ID), proposal.NotApproved)
			_, _, err = f.db.Advance(f.Context(), move.ID,
				command.Transition{From: []command.State{command.Prepared}, To: command.Failed, Outcome: "no"})
			f.ok(err)
			another := f.loosening(to)
			equal(f, "after the move failed", another.Impact, proposal.Normal)
			equal(f, "a claim after the move failed", f.claim(another.ID), proposal.Begun)
		}
	})
}

// A move is compared with the policies to which moves under way may bring the device first,
// as they are when it begins, and waits for changes of those.
func TestBegin_MoveAfterAMoveUnderWay(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ada := f.person("Ada", false).ID
		for _, rule := range []access.ApprovalRule{access.ApproveRisky, access.ApproveAll} {
			f.setControls(func(k *access.Controls) { k.ApplyApproval, k.ApproverAge = access.ApproveNone, 0 })
			a, b, c := f.newPolicy("A "+string(rule)), f.newPolicy("B "+string(rule)), f.newPolicy("C "+string(rule))
			phone := f.enroll("d-"+string(rule), a.ID)
			first := f.intent(phone, command.ChangePolicy)
			first.PolicyID = b.ID
			_, _, err := f.db.Begin(f.Context(), first, nil)
			f.ok(err)
			f.setControls(func(k *access.Controls) { k.ApplyApproval = rule })
			begin := func(when string, want fault.Code, onTheWay ...approval.Policy) {
				f.Helper()
				move := f.moving(phone, a, c)
				move.Ask.OnTheWay = onTheWay
				if why, err := f.db.WhyNot(f.Context(), move); fault.CodeOf(why) != want || err != nil {
					f.Errorf("%s: foreseen %v, %v, want %q", when, why, err, want)
				}
				_, begun, err := f.db.Begin(f.Context(), move, nil)
				if fault.CodeOf(err) != want || begun != (want == "") {
					f.Errorf("%s: begun %t, %v, want %q", when, begun, err, want)
				}
				if begun { // and ends, for the next
					_, _, err = f.db.Advance(f.Context(), move.ID,
						command.Transition{From: []command.State{command.Prepared}, To: command.Failed, Outcome: "no"})
					f.ok(err)
				}
			}
			step := func(id string, from, to command.State) {
				f.Helper()
				_, taken, err := f.db.Advance(f.Context(), id, command.Transition{From: []command.State{from}, To: to, Outcome: "o"})
				f.ok(err)
				equal(f, "taken", taken, true)
			}
			at := func(version int) approval.Policy { return approval.Policy{ID: b.ID, Version: version} }
			begin("not compared with the move under way", fault.Unavailable)
			begin("compared with it", "", at(1))
			step(first.ID, command.Prepared, command.Unconfirmed)
			begin("not compared with the move whose outcome is not known", fault.Unavailable)
			made := f.propose(b, access.Actor{Kind: access.User, ID: ada, UserID: ada, Name: "Ada"})
			equal(f, "claimed", f.claim(made.ID), proposal.Begun)
			begin("while that policy changes", fault.Unavailable, at(1))
			f.finish(made.ID, "h", proposal.Ending{Save: true, Status: proposal.Succeeded})
			begin("after that policy changed", fault.Unavailable, at(1))
			begin("compared with what it is now", "", at(2))
			back := f.moving(phone, a, b)
			back.Ask.Move.To.Version = 2
			_, begun, err := f.db.Begin(f.Context(), back, nil)
			f.ok(err)
			equal(f, "the same move again", begun, true)
			step(back.ID, command.Prepared, command.Failed)
			step(first.ID, command.Unconfirmed, command.Failed)
			begin("compared with a move that failed", fault.Unavailable, at(2))
			begin("after the move failed", "")
		}
	})
}

// A move that was sent and overtaken by a later one, by which the device got its policy, is
// not on its way any more.
func TestOnTheWay_OvertakenMovesDoNotCount(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a, b, c := f.newPolicy("A"), f.newPolicy("B"), f.newPolicy("C")
		phone := f.enroll("d1", a.ID)
		onTheWay := func(when string, want ...approval.Policy) {
			f.Helper()
			got, err := f.db.OnTheWay(f.Context(), phone.ID, "")
			f.ok(err)
			if !slices.Equal(got, want) {
				f.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		move := func(to policy.Policy) string {
			f.Helper()
			f.clock.Advance(time.Second)
			m := f.intent(phone, command.ChangePolicy)
			m.PolicyID = to.ID
			_, _, err := f.db.Begin(f.Context(), m, nil)
			f.ok(err)
			return m.ID
		}
		sent := func(id string, to policy.Policy) {
			f.Helper()
			_, _, err := f.db.Advance(f.Context(), id, command.Transition{From: []command.State{command.Prepared}, To: command.Sent})
			f.ok(err)
			f.ok(f.db.AssignPolicy(f.Context(), phone.ID, phone.Device.Epoch, to.ID))
		}
		first := move(b)
		onTheWay("recorded", approval.Policy{ID: b.ID, Version: 1})
		sent(first, b)
		onTheWay("sent: the device has it")
		second := move(c)
		onTheWay("the next recorded", approval.Policy{ID: c.ID, Version: 1})
		sent(second, c)
		onTheWay("the next sent")
		_, _, err := f.db.Advance(f.Context(), second, command.Transition{From: []command.State{command.Sent}, To: command.Succeeded})
		f.ok(err)
		onTheWay("the next succeeded")
		third := move(b)
		_, _, err = f.db.Advance(f.Context(), third,
			command.Transition{From: []command.State{command.Prepared}, To: command.Unconfirmed, Outcome: "o"})
		f.ok(err)
		onTheWay("not known", approval.Policy{ID: b.ID, Version: 1})
		sent(move(c), c)
		onTheWay("not known, and a later one sent", approval.Policy{ID: b.ID, Version: 1})
	})
}
