package database_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/test/replica"
)

// wipesOn makes this test program a replica that begins and decides what it is asked
// to, until it is killed.
const wipesOn = "MUSTER_TEST_WIPES_ON"

// wipeOrder asks a replica for a wipe, for a person's decision about one, or for what
// else the tests with kills name.
type wipeOrder struct {
	At      int64 // Unix milliseconds: the replicas' clock
	Company string
	Asset   string
	Epoch   int
	Digest  string        // of what a person would authorize; empty: nothing
	Decides *wipeDecision // nil: wipe
	Merges  string        // the asset whose device a person makes that of Asset
	By      access.Replacement
	Moves   *command.Command
	Claims  *proposal.Claim
	Admits  *credential // a request is let in, and stays open
	Ends    *ended      // an open request writes
	Changes *control
}

type wipeDecision struct {
	ID, User, Passkey string
	Signed            signature.Signed
}

// wipeAnswer is what came of it; Error: it is not known what did.
type wipeAnswer struct {
	Done    bool
	Version int64 // of the company's controls, by which a request was let in
	Error   string
}

// refusals are the codes by which nothing was done.
var refusals = []fault.Code{fault.RateLimited, fault.Refused, fault.Unavailable, fault.Forbidden, fault.Unauthorized, fault.NotFound}

type wiper = replica.Replica[wipeOrder, wipeAnswer]

func wipeUntilKilled(url string) error {
	var clock atomic.Int64
	db, err := database.Open(context.Background(),
		database.Options{URL: url, Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
	if err != nil {
		return err
	}
	return replica.Serve(func(o wipeOrder) wipeAnswer {
		clock.Store(o.At)
		if o.Admits != nil {
			return o.Admits.admit(db)
		}
		done, err := o.obey(db)
		_, unauthorized := errors.AsType[*approval.Refusal](err)
		if err == nil || unauthorized || slices.Contains(refusals, fault.CodeOf(err)) {
			return wipeAnswer{Done: done}
		}
		return wipeAnswer{Error: err.Error()}
	})
}

func (o wipeOrder) obey(db *database.DB) (done bool, err error) {
	switch {
	case o.Ends != nil:
		return o.Ends.write(db, o)
	case o.Changes != nil:
		return true, o.Changes.apply(db, o)
	case o.Merges != "":
		err := db.MergeAssets(context.Background(), o.Company, o.Asset, o.Merges, &o.By)
		return err == nil, err
	case o.Moves != nil:
		o.Moves.Ask.Verifier = approvaltest.Verifier()
		_, done, err = db.Begin(context.Background(), *o.Moves, nil)
		return done, err
	case o.Claims != nil:
		o.Claims.Verifier = approvaltest.Verifier()
		verdict, err := db.ClaimProposal(context.Background(), *o.Claims)
		return verdict == proposal.Begun, err
	}
	if d := o.Decides; d != nil {
		err := db.Decide(context.Background(), approval.Decision{CompanyID: o.Company, Kind: approval.CallKind, ID: d.ID, UserID: d.User,
			PasskeyID: d.Passkey,
			Signed:    d.Signed, Verifier: approvaltest.Verifier()})
		return err == nil, err
	}
	a := asset.Asset{ID: o.Asset, CompanyID: o.Company, Device: &asset.Device{Epoch: o.Epoch}}
	c := intentAt(a, command.WipeCompanyData, time.UnixMilli(o.At))
	if o.Digest != "" {
		c.Ask = askOf(c, o.Digest)
	}
	_, done, err = db.Begin(context.Background(), c, nil)
	return done, err
}

// killing is a history over two replicas that are killed.
type killing struct {
	*fixture
	devices  []asset.Asset
	replicas [2]*wiper
	mu       sync.Mutex
	history  []porcupine.Operation
	tick     atomic.Int64
	lost     int
}

// later is the end of what was cut off: its effect may come at any time from its begin on.
const later = 1 << 40

// ask asks a replica, and notes what came of it as output says.
func (k *killing) ask(caller, to int, o wipeOrder, input any, output func(got wipeAnswer, lost bool) any) wipeAnswer {
	if k.replicas[to].Ended() {
		to = 1 - to
	}
	called := k.tick.Add(1)
	got, answered := k.replicas[to].Ask(o)
	returned, lost := k.tick.Add(1), !answered || got.Error != ""
	k.mu.Lock()
	defer k.mu.Unlock()
	if lost {
		k.lost++
		returned = later
	}
	k.history = append(k.history, porcupine.Operation{ClientId: caller, Input: input, Output: output(got, lost),
		Call: called, Return: returned})
	return got
}

// order is that of a wipe of a device.
func (k *killing) order(device int) wipeOrder {
	a := k.devices[device]
	return wipeOrder{At: k.clock.Now().UnixMilli(), Company: k.company.ID, Asset: a.ID, Epoch: a.Device.Epoch}
}

func (k *killing) wipe(caller int, random *rand.Rand) {
	to, device := random.IntN(2), random.IntN(fleetOf)
	o := k.order(device)
	k.ask(caller, to, o, wiping{device, o.At}, func(got wipeAnswer, lost bool) any { return wiped{got.Done, lost} })
}

func (k *killing) start() *wiper { return replica.Start[wipeOrder, wipeAnswer](k.T, wipesOn+"="+k.url) }

// rounds lets six callers act, and kills a replica while they do. Another takes its place.
func (k *killing) rounds(n int, act func(caller int, random *rand.Rand), after func()) {
	k.replicas = [2]*wiper{k.start(), k.start()}
	for round := range n {
		var callers sync.WaitGroup
		for caller := range 6 {
			random := rand.New(rand.NewPCG(uint64(round), uint64(caller)))
			callers.Go(func() {
				for range 3 {
					act(caller, random)
				}
			})
		}
		killed := round % 2
		time.Sleep(time.Duration(rand.N(12000)) * time.Microsecond) // in the midst of it
		k.replicas[killed].Kill(k.T)
		callers.Wait()
		k.replicas[killed] = k.start()
		after()
	}
	for _, r := range k.replicas {
		r.Kill(k.T)
	}
}

// linearizable checks that there is one order of everything that was answered.
func (k *killing) linearizable(model porcupine.Model) {
	k.Helper()
	if result := porcupine.CheckOperationsTimeout(model, k.history, time.Minute); result != porcupine.Ok {
		k.Errorf("%s: there is no order of %d attempts", result, len(k.history))
	}
	if k.Logf("%d attempts, %d lost", len(k.history), k.lost); k.lost*2 > len(k.history) {
		k.Error("most attempts were lost: this proves nothing")
	}
}

// never checks what is in the database: no window has more devices than the limit.
func (k *killing) never() {
	k.Helper()
	var uses []wiping
	for i, a := range k.devices {
		commands, _, err := k.db.History(k.Context(), k.company.ID, a.ID, operation.PageRequest{Size: 1000})
		k.ok(err)
		for _, c := range commands {
			uses = append(uses, wiping{i, c.CreatedAt.UnixMilli()})
		}
	}
	for _, end := range uses {
		within := map[int]bool{}
		for _, u := range uses {
			if u.at <= end.at && u.at > end.at-limitWidth.Milliseconds() {
				within[u.device] = true
			}
		}
		if len(within) > limitOf {
			k.Errorf("%d devices in one window, the limit is %d", len(within), limitOf)
		}
	}
	if len(uses) == 0 {
		k.Error("nothing was wiped")
	}
}

// The limit holds, and is linearizable, over two replicas that are killed with
// SIGKILL while they decide.
func TestBegin_LimitIsLinearizableWithKills(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k := &killing{fixture: f, devices: f.fleet(fleetOf)}
		f.setLimit(limitOf, int(limitWidth.Minutes()))
		k.rounds(10, k.wipe, func() { k.clock.Advance(2 * time.Minute) })
		k.linearizable(wipes())
		k.never()
	})
}
