package proposal_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

// What clients do with one policy. Applying is two steps, as seen from outside:
// the claim, after which others find the proposal not pending and cannot save
// the policy, and the end, which saves it or does not.
type action string

const (
	reads     action = "read the version"
	proposes  action = "propose"
	saves     action = "save"
	savesLate action = "save an old version"
	isBusy    action = "save, and find it being changed"
	claims    action = "claim"
	applies   action = "end by saving"
	gaveUp    action = "end without saving"
	findsOld  action = "apply, and find it stale"
	findsDone action = "apply, and find it not pending"
)

// step is an action with what was seen.
type step struct {
	policy   string
	action   action
	proposal int // its number on the policy
	version  int // read, expected, or proposed on
}

const mostProposals = 64

// world is a policy as one sequence of steps makes it.
type world struct {
	version int
	stage   [mostProposals]byte // of each proposal: 0 pending, 1 claimed, 2 ended
}

func (w world) changing() bool {
	for _, s := range w.stage {
		if s == 1 {
			return true
		}
	}
	return false
}

// take returns the world after a step, and false if the step cannot be.
func (w world) take(s step) (world, bool) {
	switch i := s.proposal; s.action {
	case reads, proposes:
		return w, w.version == s.version
	case saves:
		ok := w.version == s.version && !w.changing()
		w.version++
		return w, ok
	case savesLate:
		return w, w.version != s.version
	case isBusy:
		return w, w.changing()
	case claims:
		ok := w.stage[i] == 0 && w.version == s.version && !w.changing()
		w.stage[i] = 1
		return w, ok
	case applies:
		ok := w.stage[i] == 1 && w.version == s.version
		w.version, w.stage[i] = w.version+1, 2
		return w, ok
	case gaveUp:
		ok := w.stage[i] == 1
		w.stage[i] = 2
		return w, ok
	case findsOld:
		ok := w.stage[i] == 0 && w.version != s.version
		w.stage[i] = 2
		return w, ok
	default:
		return w, w.stage[i] != 0
	}
}

func oneOrder() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, o := range history {
				id := o.Input.(step).policy
				parts[id] = append(parts[id], o)
			}
			var all [][]porcupine.Operation
			for _, part := range parts {
				all = append(all, part)
			}
			return all
		},
		Init: func() any { return world{version: 1} },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := state.(world).take(input.(step))
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}
}

// clients are many callers on two replicas.
type clients struct {
	*fixture
	replicas []*proposal.Service
	policies []string

	mu      sync.Mutex
	began   time.Time
	history []porcupine.Operation
	made    map[string][]proposal.Proposal // by policy
	dead    []killed
}

// killed is an apply whose process ended: what it did is found out later.
type killed struct {
	step step
	id   string
	call int64
}

func (c *clients) now() int64 { return int64(time.Since(c.began)) }

func (c *clients) record(s step, call int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, porcupine.Operation{Input: s, Call: call, Return: c.now()})
}

// act lets one client do one thing.
func (c *clients) act(random *rand.Rand) {
	s := c.replicas[random.IntN(len(c.replicas))]
	id := c.policies[random.IntN(len(c.policies))]
	call := c.now()
	switch random.IntN(8) {
	case 0:
		c.record(step{policy: id, action: reads, version: c.policy(id).Version}, call)
	case 1:
		c.save(random, id)
	case 2, 3:
		c.proposeOne(s, random, id)
	default:
		c.applyOne(s, random, id)
	}
}

func (c *clients) save(random *rand.Rand, id string) {
	expected := c.policy(id).Version
	call := c.now()
	description := fmt.Sprint(random.Uint64())
	_, err := c.fixture.policies.Save(c.Context(), c.company.ID, id, expected, policy.Edit{Description: &description}, operator())
	s := step{policy: id, version: expected}
	switch fault.CodeOf(err) {
	case "":
		s.action = saves
	case fault.StaleProposal:
		s.action = savesLate
	case fault.Unavailable:
		s.action = isBusy
	default:
		c.Errorf("a save ends %v", err)
		return
	}
	c.record(s, call)
}

func (c *clients) proposeOne(s *proposal.Service, random *rand.Rand, id string) {
	values := []string{"DISABLED", "ENABLED", "USER_CHOICE"}
	call := c.now()
	made, err := s.ProposeChanges(c.Context(), c.key("k"), id, set("WIFI_STATE", values[random.IntN(3)]))
	if fault.CodeOf(err) == fault.Refused {
		return
	}
	if err != nil {
		c.Error(err)
		return
	}
	c.mu.Lock()
	c.made[id] = append(c.made[id], made)
	c.mu.Unlock()
	c.record(step{policy: id, action: proposes, version: made.BaseVersion}, call)
}

// applyOne applies one of the newest proposals of a policy; now and then its
// process ends on the way.
func (c *clients) applyOne(s *proposal.Service, random *rand.Rand, id string) {
	c.mu.Lock()
	all := c.made[id]
	c.mu.Unlock()
	if len(all) == 0 {
		return
	}
	i := max(0, len(all)-1-random.IntN(3))
	p, st := all[i], step{policy: id, proposal: i, version: all[i].BaseVersion}
	if random.IntN(6) == 0 {
		c.die(s, p, st, []string{proposal.BeforeClaim, proposal.AfterClaim, proposal.AfterPush, proposal.AfterOutcome}[random.IntN(4)])
		return
	}
	call := c.now()
	_, err := s.Apply(c.Context(), c.key("k"), p.ID, "")
	c.ended(st, call, err)
}

// ended notes what an apply that was answered did.
func (c *clients) ended(s step, call int64, err error) {
	switch fault.CodeOf(err) {
	case "":
		s.action = claims
		c.record(s, call)
		s.action = applies
	case fault.Refused:
		s.action = claims
		c.record(s, call)
		s.action = gaveUp
	case fault.StaleProposal:
		s.action = findsOld
	case fault.NotPending:
		s.action = findsDone
	default:
		c.Errorf("an apply ends %v", err)
		return
	}
	c.record(s, call)
}

// die applies on a replica that ends at a step, if it comes there.
func (c *clients) die(s *proposal.Service, p proposal.Proposal, st step, at string) {
	dying := *s
	dying.Crash = func(now string) {
		if now == at {
			panic(crash{at})
		}
	}
	call, died, err := c.now(), true, error(nil)
	func() {
		defer func() {
			if cause := recover(); cause != nil && cause != (crash{at}) {
				panic(cause)
			}
		}()
		_, err = dying.Apply(c.Context(), c.key("k"), p.ID, "")
		died = false
	}()
	if !died {
		c.ended(st, call, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = append(c.dead, killed{st, p.ID, call})
}

// bury lets the keepers of both replicas settle what the dead left behind, and
// notes the result. Nothing else is at work.
func (c *clients) bury(keepers []*proposal.Reconciler) {
	for range 3 {
		c.clock.Advance(13 * time.Second)
		var all sync.WaitGroup
		for _, k := range keepers {
			all.Go(func() {
				if err := k.Settle(c.Context()); err != nil {
					c.Error(err)
				}
			})
		}
		all.Wait()
	}
	wins := map[string]bool{} // several may have died at one proposal
	for _, d := range c.dead {
		status := c.proposal(d.id).Status
		if status == proposal.Pending || wins[d.id] || c.settledBy(d) {
			continue
		}
		wins[d.id] = true
		s := d.step
		s.action = claims
		c.record(s, d.call)
		if s.action = gaveUp; status == proposal.Succeeded {
			s.action = applies
		}
		c.record(s, d.call)
	}
	c.dead = nil
}

// settledBy says whether the history holds already who ended the proposal.
func (c *clients) settledBy(d killed) bool {
	for _, o := range c.history {
		s := o.Input.(step)
		if s.policy == d.step.policy && s.proposal == d.step.proposal && (s.action == claims || s.action == findsOld) {
			return true
		}
	}
	return false
}

// TestProposals_Linearizable runs many clients on two replicas of one database, some of
// which die, against a vendor that refuses now and then: there is one order of
// everything that they saw.
func TestProposals_Linearizable(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		other, reconciler := r.replica(r.open())
		r.service.LeaseWait, other.LeaseWait = 20*time.Second, 20*time.Second
		c := &clients{fixture: r, replicas: []*proposal.Service{r.service, other}, began: time.Now(),
			made: map[string][]proposal.Proposal{}}
		var count sync.Mutex
		n := 0
		r.vendor.before = func(policy.Policy) {
			count.Lock()
			defer count.Unlock()
			if n++; n%7 == 0 {
				r.vendor.next(refuses)
			}
		}
		for i := range 2 {
			c.policies = append(c.policies, r.newPolicy(fmt.Sprintf("Warehouse %d", i), 0).ID)
		}
		const rounds, callers, calls = 5, 5, 8
		for round := range rounds {
			var all sync.WaitGroup
			for client := range callers {
				random := rand.New(rand.NewPCG(uint64(round), uint64(client)))
				all.Go(func() {
					for range calls {
						c.act(random)
					}
				})
			}
			// A dead one's lease is waited for: the keepers are at work then,
			// and time goes on once no live process can be overtaken.
			finished := make(chan struct{})
			go func() { all.Wait(); close(finished) }()
			c.keepAlive(finished, []*proposal.Reconciler{r.reconciler, reconciler})
			c.bury([]*proposal.Reconciler{r.reconciler, reconciler})
		}
		if len(c.history) < rounds*callers*calls/2 {
			t.Errorf("only %d operations", len(c.history))
		}
		result, info := porcupine.CheckOperationsVerbose(oneOrder(), c.history, time.Minute)
		if result != porcupine.Ok {
			path := t.TempDir() + "/history.html"
			_ = porcupine.VisualizePath(oneOrder(), info, path)
			t.Errorf("%s: there is no order of %d operations", result, len(c.history))
		}
		r.vendor.before = nil
		r.settle(c.policies...)
	})
}

// keepAlive lets time pass slowly, in which the leases of the dead run out; a
// living one's is renewed by real time, and no push takes that long.
func (c *clients) keepAlive(finished chan struct{}, keepers []*proposal.Reconciler) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
			c.clock.Advance(time.Second)
			for _, k := range keepers {
				if err := k.Settle(c.Context()); err != nil {
					c.Error(err)
				}
			}
		}
	}
}
