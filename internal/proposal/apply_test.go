package proposal_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

// A stale proposal can never be applied: it fails before a person is asked to
// confirm it (contract 4.3).
func TestApply_Stale(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 1)
		high, copied := r.propose(p, "FACTORY_RESET", "BLOCK"), r.propose(p, "CAMERA", "BLOCK")
		fromIt, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "Berlin", nil)
		r.ok(err)
		description := "only words"
		_, err = r.policies.Save(t.Context(), r.company.ID, p.ID, 1, policy.Edit{Description: &description}, operator())
		r.ok(err)
		for _, stale := range []proposal.Proposal{high, copied, fromIt} {
			_, err := r.service.Apply(t.Context(), r.key("k"), stale.ID, "")
			r.code(fault.StaleProposal, err)
			if got := r.proposal(stale.ID); got.Status != proposal.Failed || got.Failure != fault.StaleProposal {
				t.Errorf("stale ends %+v", got)
			}
			_, err = r.service.Apply(t.Context(), r.key("k"), stale.ID, "Warehouse")
			r.code(fault.NotPending, err)
		}
		if len(r.vendor.pushes) != 1 || r.policy(p.ID).Version != 2 {
			t.Error("a stale proposal changed something")
		}
	})
}

func (r *fixture) deletePolicy(id string) error {
	_, err := r.policies.Delete(r.Context(), r.company.ID, id)
	return err
}

func TestApply_PolicyDeleted(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made := r.propose(p, "CAMERA", "BLOCK")
	r.ok(r.deletePolicy(p.ID))
	_, err := r.apply(made)
	r.code(fault.NotFound, err)
	_, err = r.apply(made)
	r.code(fault.NotPending, err)
}

func TestApply_VendorFaults(t *testing.T) {
	const (
		unknown  = "it is not known whether the change was applied: read the proposal, and the policy's settings before you propose again"
		doubtful = "the proposal is UNCONFIRMED: it is not known whether it was applied: read the policy's settings before you " +
			"propose again"
	)
	each(t, func(_ *testing.T, r *fixture) {
		for _, test := range []struct {
			mood   answer
			code   fault.Code
			status proposal.Status
			after  string // CAMERA once both copies agree
			says   string
			again  string // what the next call is told
		}{
			{refuses, fault.Refused, proposal.Failed, policy.NotSet, "the platform refused the policy: too strict",
				"the proposal is FAILED: it failed: propose again"},
			{notReached, fault.Internal, proposal.Failed, policy.NotSet,
				"the change was not applied, nothing changed: the platform is not reached: propose again",
				"the proposal is FAILED: it failed: propose again"},
			{losesAnswer, fault.Internal, proposal.Unconfirmed, "BLOCK", unknown, doubtful},
			{losesRequest, fault.Internal, proposal.Unconfirmed, policy.NotSet, unknown, doubtful},
		} {
			r.part(string(test.mood), func(t *testing.T, r *fixture) {
				p := r.newPolicy(string(test.mood), 1)
				made := r.propose(p, "CAMERA", "BLOCK")
				r.vendor.next(test.mood)
				_, err := r.apply(made)
				r.code(test.code, err)
				r.says(test.says, err)
				if got := r.proposal(made.ID).Status; got != test.status {
					t.Errorf("the proposal is %s", got)
				}
				if now := r.policy(p.ID); now.Version != 1 || len(r.revisions(p.ID)) != 1 {
					t.Errorf("saved %+v", now)
				}
				_, err = r.apply(made)
				r.code(fault.NotPending, err)
				r.says(test.again, err)
				r.settle(p.ID)
				now := r.policy(p.ID)
				if got := value(t, now.Document, "CAMERA"); got != test.after {
					t.Errorf("CAMERA is %s", got)
				}
				if got := r.proposal(made.ID).Status; got != test.status {
					t.Errorf("settling made the proposal %s", got)
				}
				if test.after == "BLOCK" {
					if newest := r.revisions(p.ID)[0]; newest.Revision != 2 || newest.ProposalID != made.ID {
						t.Errorf("revision %+v", newest)
					}
					return
				}
				again := r.propose(now, "CAMERA", "BLOCK")
				_, err = r.apply(again)
				r.ok(err)
				r.settle(p.ID)
			})
		}
	})
}

func TestApply_UnknownCopy(t *testing.T) {
	each(t, func(_ *testing.T, r *fixture) {
		for mood, exists := range map[answer]bool{losesAnswer: true, losesRequest: false} {
			r.part(string(mood), func(t *testing.T, r *fixture) {
				p := r.newPolicy(string(mood), 0)
				made, err := r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "Copy "+string(mood), nil)
				r.ok(err)
				r.vendor.next(mood)
				_, err = r.apply(made)
				r.code(fault.Internal, err)
				r.settle(p.ID)
				created, err := r.db.Policy(t.Context(), r.company.ID, made.Next.PolicyID)
				if exists {
					r.ok(err)
					if created.Push.Version != 1 {
						t.Errorf("created %+v", created)
					}
					return
				}
				r.code(fault.NotFound, err)
				_, err = r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, "Copy "+string(mood), nil)
				r.ok(err)
			})
		}
	})
}

// While an outcome is doubtful the policy can be changed; what was saved then
// is what both sides have in the end.
func TestApply_ChangesWhileUnconfirmed(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		doubtful, next := r.propose(p, "CAMERA", "BLOCK"), r.propose(p, "SMS", "BLOCK")
		r.vendor.next(losesAnswer)
		_, err := r.apply(doubtful)
		r.code(fault.Internal, err)
		_, err = r.apply(next)
		r.ok(err)
		r.settle(p.ID)
		now := r.policy(p.ID)
		if now.Version != 2 || value(t, now.Document, "CAMERA") != policy.NotSet || value(t, now.Document, "SMS") != "BLOCK" {
			t.Errorf("saved %s", now.Document)
		}
	})
}

// A request that took effect long after its outcome was found to be nothing
// does not stay: the platform gets what is saved.
func TestApply_LateAnswer(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made := r.propose(p, "CAMERA", "BLOCK")
	r.vendor.next(losesRequest)
	_, err := r.apply(made)
	r.code(fault.Internal, err)
	r.clock.Advance(2 * time.Second)
	r.ok(r.reconciler.Settle(t.Context()))
	r.vendor.PushUnsaved(t.Context(), r.company, policy.Policy{ID: p.ID, Document: made.Next.Document})
	r.settle(p.ID)
	if got := value(t, []byte(r.vendor.holds(p.ID)), "CAMERA"); got != policy.NotSet {
		t.Errorf("the platform has CAMERA %s", got)
	}
}

func TestApply_BlocksOtherSaves(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		made, other := r.propose(p, "CAMERA", "BLOCK"), r.propose(p, "SMS", "BLOCK")
		second, _ := r.replica(r.open())
		waiting := make(chan error, 1)
		r.vendor.before = func(policy.Policy) {
			r.vendor.mu.Lock()
			r.vendor.before = nil
			r.vendor.mu.Unlock()
			if got := r.proposal(made.ID).Status; got != proposal.Executing {
				t.Errorf("%s while being applied", got)
			}
			_, err := r.policies.Save(t.Context(), r.company.ID, p.ID, 1, policy.Edit{Changes: set("SMS", "BLOCK")}, operator())
			r.code(fault.Unavailable, err)
			r.code(fault.Unavailable, r.deletePolicy(p.ID))
			_, err = r.apply(made)
			r.code(fault.NotPending, err)
			go func() {
				_, err := second.Apply(t.Context(), r.key("k"), other.ID, "")
				waiting <- err
			}()
		}
		_, err := r.apply(made)
		r.ok(err)
		r.code(fault.StaleProposal, <-waiting)
	})
}

// Applying waits for the policy's lease, not forever.
func TestApply_LeaseRunsOut(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made := r.propose(p, "CAMERA", "BLOCK")
	if got, err := r.db.Lease(t.Context(), policy.LeaseKey(p.ID), "pusher", time.Hour); !got || err != nil {
		t.Fatal(err)
	}
	r.service.LeaseWait = 100 * time.Millisecond
	_, err := r.apply(made)
	r.code(fault.Internal, err)
	if got := r.proposal(made.ID); got.Status != proposal.Failed || len(r.vendor.pushes) != 1 {
		t.Errorf("%+v, %d pushes", got, len(r.vendor.pushes))
	}
}

// A caller who has gone away does not stop what was begun.
func TestApply_CallerDisconnects(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made := r.propose(p, "CAMERA", "BLOCK")
	ctx, cancel := context.WithCancel(t.Context())
	r.vendor.before = func(policy.Policy) { cancel() }
	if _, err := r.service.Apply(ctx, r.key("k"), made.ID, ""); err != nil {
		t.Error(err)
	}
	if got := r.proposal(made.ID).Status; got != proposal.Succeeded {
		t.Errorf("the proposal is %s", got)
	}
}

// Of any number of applies at once, on two replicas, one wins.
func TestApply_Concurrent(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		made := r.propose(p, "CAMERA", "BLOCK")
		second, _ := r.replica(r.open())
		services := []*proposal.Service{r.service, second}
		var all sync.WaitGroup
		codes := make([]fault.Code, 20)
		for i := range codes {
			all.Go(func() {
				_, err := services[i%2].Apply(t.Context(), r.key("k"), made.ID, "")
				codes[i] = fault.CodeOf(err)
			})
		}
		all.Wait()
		slices.Sort(codes)
		if codes[0] != "" || slices.ContainsFunc(codes[1:], func(c fault.Code) bool { return c != fault.NotPending }) {
			t.Errorf("ended in %q", codes)
		}
		if len(r.revisions(p.ID)) != 2 || len(r.vendor.pushes) != 2 {
			t.Errorf("%d revisions, %d pushes", len(r.revisions(p.ID)), len(r.vendor.pushes))
		}
	})
}

// Two proposals of one version: one is applied, the other is stale, and the
// vendor gets one document.
func TestPropose_Concurrent(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		second, _ := r.replica(r.open())
		services := []*proposal.Service{r.service, second}
		var made []proposal.Proposal
		for i := range 8 {
			s := policy.Catalog()[i+5]
			made = append(made, r.propose(p, s.ID, s.Allowed[1]))
		}
		var all sync.WaitGroup
		codes := make([]fault.Code, len(made))
		for i := range made {
			all.Go(func() {
				_, err := services[i%2].Apply(t.Context(), r.key("k"), made[i].ID, "")
				codes[i] = fault.CodeOf(err)
			})
		}
		all.Wait()
		slices.Sort(codes)
		if codes[0] != "" || slices.ContainsFunc(codes[1:], func(c fault.Code) bool { return c != fault.StaleProposal }) {
			t.Errorf("ended in %q", codes)
		}
		if len(r.vendor.pushes) != 2 {
			t.Errorf("%d pushes", len(r.vendor.pushes))
		}
		r.settle(p.ID)
	})
}

// A repeated call under one Idempotency-Key finds what the first one did.
func TestApply_Repeated(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 1)
		keyed := func(ref string) operation.Call {
			call := r.key("k")
			call.IdempotencyRef = ref
			return call
		}
		first, err := r.service.ProposeChanges(t.Context(), keyed("1"), p.ID, set("CAMERA", "BLOCK"))
		r.ok(err)
		again, err := r.service.ProposeChanges(t.Context(), keyed("1"), p.ID, set("CAMERA", "BLOCK"))
		r.ok(err)
		if fmt.Sprint(again.View()) != fmt.Sprint(first.View()) && again.ID != first.ID {
			t.Errorf("repeated as %+v", again)
		}
		if repeated, err := r.db.Propose(t.Context(), func() proposal.Proposal { p := first; p.ID += "x"; return p }(),
			time.Minute); err != nil || repeated.ID != first.ID {
			t.Errorf("a second one was made: %+v, %v", repeated, err)
		}
		for range 2 {
			done, err := r.service.Apply(t.Context(), keyed("2"), first.ID, "")
			r.ok(err)
			if done.Status != proposal.Succeeded || done.Version != 2 {
				t.Errorf("applied %+v", done)
			}
		}
		again, err = r.service.ProposeChanges(t.Context(), keyed("1"), p.ID, set("CAMERA", "BLOCK"))
		if r.ok(err); again.ID != first.ID { // nothing would change any more
			t.Errorf("repeated once it was applied as %+v", again)
		}
		_, err = r.service.Apply(t.Context(), keyed("3"), first.ID, "")
		r.code(fault.NotPending, err)
		other := r.key("k2")
		other.IdempotencyRef = "1"
		_, err = r.service.ProposeChanges(t.Context(), other, "nowhere", set("CAMERA", "BLOCK"))
		r.code(fault.NotFound, err) // it does not get what another made
		refused := r.propose(r.policy(p.ID), "SMS", "BLOCK")
		r.vendor.next(refuses)
		for range 2 {
			_, err := r.service.Apply(t.Context(), keyed("4"), refused.ID, "")
			r.code(fault.Refused, err)
		}
	})
}

// away is a database that is away when a proposal is to end, so many times.
type away struct {
	*database.DB
	times int
}

func (a *away) FinishProposal(ctx context.Context, e proposal.Ending) (proposal.Proposal, bool, error) {
	if a.times--; a.times >= 0 {
		return proposal.Proposal{}, false, errAway()
	}
	return a.DB.FinishProposal(ctx, e)
}

// What the platform took does not become doubtful because the database was away for a moment.
func TestApply_EndsWhenTheDatabaseIsBack(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		made := r.propose(r.newPolicy("Warehouse", 0), "CAMERA", "BLOCK")
		store := &away{r.db, 2}
		r.service.Store = store
		applied, err := r.service.Apply(t.Context(), r.key("k"), made.ID, made.TargetName)
		r.ok(err)
		if applied.Status != proposal.Succeeded {
			t.Errorf("the proposal is %s: %s", applied.Status, applied.Outcome)
		}
		if store.times != -1 {
			t.Errorf("the proposal was ended %d times after the database was back", -store.times)
		}
	})
}

// crash is the panic that stands for the end of a process.
type crash struct{ step string }

// dies applies a proposal on a replica that ends at a step.
func (r *fixture) dies(p proposal.Proposal, step string) {
	r.Helper()
	dying, _ := r.replica(r.db)
	dying.Crash = func(at string) {
		if at == step {
			panic(crash{step})
		}
	}
	defer func() {
		if cause := recover(); cause != nil && cause != (crash{step}) {
			panic(cause)
		}
	}()
	_, _ = dying.Apply(r.Context(), r.key("k"), p.ID, p.TargetName)
	r.Errorf("outlived %s", step)
}

// Whenever the process ends, the proposal ends truthfully and both copies
// agree: with the change if the proposal says so, without it otherwise.
func TestApply_CrashAtEveryStep(t *testing.T) {
	each(t, func(_ *testing.T, r *fixture) {
		for i, test := range []struct {
			step string
			mood answer
			deaf bool
			want proposal.Status
			done bool
		}{
			{proposal.BeforeClaim, takes, false, proposal.Pending, false},
			{proposal.AfterClaim, takes, false, proposal.Failed, false},
			{proposal.AfterClaim, takes, true, proposal.Unconfirmed, false},
			{proposal.AfterPush, takes, false, proposal.Succeeded, true},
			{proposal.AfterPush, takes, true, proposal.Unconfirmed, true},
			{proposal.AfterPush, losesAnswer, false, proposal.Succeeded, true},
			{proposal.AfterPush, losesRequest, false, proposal.Failed, false},
			{proposal.AfterPush, refuses, false, proposal.Failed, false},
			{proposal.AfterPush, notReached, false, proposal.Failed, false},
			{proposal.AfterOutcome, takes, false, proposal.Succeeded, true},
			{proposal.AfterOutcome, losesAnswer, false, proposal.Unconfirmed, true},
			{proposal.AfterOutcome, losesRequest, false, proposal.Unconfirmed, false},
			{proposal.AfterOutcome, refuses, false, proposal.Failed, false},
		} {
			for _, copied := range []bool{false, true} {
				name := fmt.Sprintf("%s, vendor %s, deaf %v, copy %v", test.step, test.mood, test.deaf, copied)
				r.part(name, func(t *testing.T, r *fixture) {
					p := r.newPolicy(fmt.Sprintf("Warehouse %d %v", i, copied), 0)
					made := r.propose(p, "CAMERA", "BLOCK")
					if copied {
						var err error
						made, err = r.service.ProposeCopy(t.Context(), r.key("k"), p.ID, fmt.Sprintf("Berlin %d", i),
							set("CAMERA", "BLOCK"))
						r.ok(err)
					}
					r.vendor.next(test.mood)
					r.dies(made, test.step)
					r.vendor.next("")

					// The lease of the dead is respected until it ends.
					r.ok(r.reconciler.Settle(t.Context()))
					if test.step == proposal.AfterClaim && r.proposal(made.ID).Status != proposal.Executing {
						t.Fatal("a lease that may still be used was taken over")
					}
					r.vendor.deaf = test.deaf
					r.clock.Advance(time.Minute)
					r.ok(r.reconciler.Settle(t.Context()))
					if got := r.proposal(made.ID).Status; got != test.want {
						t.Fatalf("the proposal is %s, want %s", got, test.want)
					}
					r.vendor.deaf = false
					r.settle(p.ID)
					r.agrees(made, test.done)
					if got := r.proposal(made.ID).Status; got != test.want && test.want != proposal.Pending {
						t.Fatalf("the proposal became %s", got)
					}
				})
			}
		}
	})
}

// agrees demands that the change was saved once, or not at all, and that the
// platform has what is saved.
func (r *fixture) agrees(p proposal.Proposal, done bool) {
	r.Helper()
	saved, err := r.db.Policy(r.Context(), r.company.ID, p.Next.PolicyID)
	if p.Creates() && !done {
		r.code(fault.NotFound, err)
		return
	}
	r.ok(err)
	of := 0
	for _, revision := range r.revisions(saved.ID) {
		if revision.ProposalID == p.ID {
			of++
		}
	}
	if is := value(r, saved.Document, "CAMERA") == "BLOCK"; is != done || of > 1 || done && of != 1 {
		r.Fatalf("saved %v, %d revisions of the proposal", is, of)
	}
	if r.vendor.holds(saved.ID) != string(saved.Document) {
		r.Fatal("the copies differ")
	}
}

// A service that starts alone with its database need not wait for the leases of
// the dead.
func TestReconciler_StartAlone(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made, next := r.propose(p, "CAMERA", "BLOCK"), r.propose(p, "SMS", "BLOCK")
	r.dies(made, proposal.AfterPush)
	r.ok(r.db.EndProposalLeases(t.Context()))
	r.ok(r.reconciler.Settle(t.Context()))
	if got := r.proposal(made.ID).Status; got != proposal.Succeeded {
		t.Errorf("the proposal is %s", got)
	}
	_, err := r.apply(next)
	r.code(fault.StaleProposal, err)
}

// A process that stalled for longer than its lease finds the proposal settled
// without it, and what it sent by then does not stay.
func TestReconciler_Stalled(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p := r.newPolicy("Warehouse", 0)
		made := r.propose(p, "CAMERA", "BLOCK")
		r.vendor.before = func(policy.Policy) {
			r.vendor.before = nil
			r.clock.Advance(time.Minute)
			r.ok(r.reconciler.Settle(t.Context()))
			if got := r.proposal(made.ID).Status; got != proposal.Failed {
				t.Errorf("taken over as %s", got)
			}
			r.vendor.sending = map[string]bool{}
		}
		_, err := r.apply(made)
		r.code(fault.Internal, err)
		if got := r.proposal(made.ID).Status; got != proposal.Failed || r.policy(p.ID).Version != 1 {
			t.Errorf("the proposal became %s", got)
		}
		if value(t, []byte(r.vendor.holds(p.ID)), "CAMERA") != "BLOCK" {
			t.Error("it sent nothing: the test proves nothing")
		}
		r.settle(p.ID)
	})
}

// The store's own word: what is not PENDING cannot be claimed.
func TestApply_OnlyPendingIsClaimed(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		for m, status := range map[answer]proposal.Status{takes: proposal.Succeeded, refuses: proposal.Failed,
			losesRequest: proposal.Unconfirmed} {
			p := r.newPolicy(string(m), 0)
			made := r.propose(p, "CAMERA", "BLOCK")
			r.vendor.next(m)
			_, _ = r.apply(made)
			claim := proposal.Claim{ID: made.ID, Holder: "h", For: time.Minute}
			if verdict, err := r.db.ClaimProposal(t.Context(), claim); verdict != proposal.NotPending || err != nil {
				t.Errorf("%s: claimed as %s, %v", status, verdict, err)
			}
			if got := r.proposal(made.ID).Status; got != status {
				t.Errorf("%s, want %s", got, status)
			}
		}
	})
}
