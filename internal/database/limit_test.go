package database_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/limit"
	"github.com/musterhq/muster/internal/resource"
)

// setLimit changes the company's limit of destructive commands.
func (f *fixture) setLimit(devices, minutes int) access.DestructiveLimit {
	f.Helper()
	l := access.DestructiveLimit{Devices: devices, Window: time.Duration(minutes) * time.Minute}
	f.setControls(func(k *access.Controls) { k.DestructiveLimit = l })
	return l
}

// person adds a user, with a passkey of the time of the user where wanted.
func (f *fixture) person(name string, passkey bool) account.User {
	f.Helper()
	u := account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: name + "@acme.test", Name: name, Role: account.Admin,
		CreatedAt: f.clock.Now()}
	u.Rights, _ = u.Role.Rights()
	f.ok(f.db.CreateUser(f.Context(), u))
	if passkey {
		key := approvaltest.NewPasskey()
		keysOf.Store(key.ID, key)
		f.ok(f.db.AddPasskey(f.Context(), account.Passkey{ID: key.ID, UserID: u.ID, Name: "Key", Credential: key.Credential(),
			CreatedAt: f.clock.Now()}))
	}
	return u
}

func (f *fixture) fleet(size int) []asset.Asset {
	f.Helper()
	p := f.newPolicy("Fleet")
	all := make([]asset.Asset, size)
	for i := range all {
		all[i] = f.enroll(fmt.Sprint("d", i), p.ID)
	}
	return all
}

// use is one destructive command that was recorded.
type use struct {
	device int
	at     time.Time
}

// mostIn is the largest number of distinct devices in any window.
func mostIn(history []use, window time.Duration) int {
	most := 0
	for _, end := range history {
		devices := map[int]bool{}
		for _, u := range history {
			if !u.at.After(end.at) && u.at.After(end.at.Add(-window)) {
				devices[u.device] = true
			}
		}
		most = max(most, len(devices))
	}
	return most
}

// The store agrees, call by call and on both replicas, with a sliding window that
// a person can read, and no window of the history holds more than it may.
func TestBegin_DestructiveLimit(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.fleet(9)
		callers := []access.Actor{{Kind: access.APIKey, ID: "k1"}, {Kind: access.Connection, ID: "c1"},
			{Kind: access.User, ID: f.person("without", false).ID}, {Kind: access.User, ID: f.person("with", true).ID}}
		const age = 5 * time.Hour
		l, replicas, grown := f.setLimit(2, 10), []*database.DB{f.db, f.open(t)}, f.clock.Now().Add(age)
		f.setControls(func(k *access.Controls) { k.ApproverAge = age })
		kinds := []command.Type{command.WipeCompanyData, command.ResetScreenLock, command.ChangeScreenLockPassword,
			command.RelinquishOwnership}
		var history []use
		last := map[int]time.Time{}
		rapid.Check(f.T, func(r *rapid.T) {
			for range rapid.IntRange(1, 10).Draw(r, "calls") {
				f.clock.Advance(time.Duration(rapid.IntRange(0, 150_000).Draw(r, "pause")) * time.Millisecond)
				now, device := f.clock.Now(), rapid.IntRange(0, len(devices)-1).Draw(r, "device")
				c := f.intent(devices[device], rapid.SampledFrom(kinds).Draw(r, "type"))
				c.Actor = rapid.SampledFrom(callers).Draw(r, "caller")
				most := l.Devices
				if c.Actor.ID == callers[3].ID && !now.Before(grown) { // the passkey is old enough
					most += limit.Reserve
				}
				counting, counts := 0, false
				for d, at := range last {
					if at.After(now.Add(-l.Window)) {
						counting++
						counts = counts || d == device
					}
				}
				_, begun, err := rapid.SampledFrom(replicas).Draw(r, "replica").Begin(f.Context(), c, nil)
				if counts || counting < most {
					if err != nil || !begun {
						r.Fatalf("with %d devices of %d: %v", counting, most, err)
					}
					last[device] = now
					history = append(history, use{device, now})
					continue
				}
				refused := fault.From(err)
				if refused.Code != fault.RateLimited || begun {
					r.Fatalf("with %d devices of %d: begun %t, %v", counting, most, begun, err)
				}
				// At that time, and not a moment before, there is room.
				room := 0
				for _, at := range last {
					if at.After(now.Add(refused.RetryAfter - l.Window)) {
						room++
					}
				}
				before := 0
				for _, at := range last {
					if at.After(now.Add(refused.RetryAfter - time.Millisecond - l.Window)) {
						before++
					}
				}
				if room >= most || before < most || refused.RetryAfter <= 0 || refused.RetryAfter > l.Window {
					r.Fatalf("retry after %s: %d devices then, %d before, %d allowed", refused.RetryAfter, room, before, most)
				}
			}
		})
		if most := mostIn(history, l.Window); most > l.Devices+limit.Reserve {
			f.Errorf("%d devices in one window", most)
		}
	})
}

// What is no destructive command is not counted and not refused; a refusal leaves
// a line in the activity log, and no command; another company has its own limit.
func TestBegin_LimitLeavesOthersAlone(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.fleet(3)
		f.setLimit(1, 60)
		f.begin(devices[1], command.Reboot)
		f.begin(devices[0], command.WipeCompanyData)
		f.begin(devices[2], command.Lock)
		refused := f.intent(devices[1], command.WipeCompanyData)
		refused.IdempotencyRef = "r1"
		_, begun, err := f.db.Begin(f.Context(), refused, nil)
		f.code(fault.RateLimited, err)
		if begun {
			f.Error("begun")
		}
		if _, err := f.db.Command(f.Context(), refused.ID); fault.CodeOf(err) != fault.NotFound {
			f.Errorf("the refused command is there: %v", err)
		}
		entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Outcome: activity.Refused},
			activity.Cursor{}, 10)
		f.ok(err)
		if len(entries) != 1 {
			f.Fatalf("entries of refusals = %+v", entries)
		}
		refusal := entries[0]
		refusal.Action, refusal.Target.ID, refusal.Actor.ID = activity.Command("WIPE_COMPANY_DATA"), devices[1].ID, "k1"
		equal(f, "the entry of the refusal", entries[0], refusal)
		// A repetition of a request whose command there is finds it, whatever the limit says now.
		done := f.intent(devices[0], command.WipeCompanyData)
		done.IdempotencyRef = "r0"
		if _, begun, err := f.db.Begin(f.Context(), done, nil); err != nil || !begun {
			f.Fatalf("a second command to the same device: %t, %v", begun, err)
		}
		f.setLimit(0, 0)
		f.begin(devices[1], command.WipeCompanyData)
		f.setLimit(1, 60) // what was done without a limit counts
		again := f.intent(devices[2], command.WipeCompanyData)
		_, _, err = f.db.Begin(f.Context(), again, nil)
		f.code(fault.RateLimited, err)
		again.IdempotencyRef = "r0"
		if stored, begun, err := f.db.Begin(f.Context(), again, nil); err != nil || begun || stored.ID != done.ID {
			f.Errorf("a repetition over the limit: %v, %t, %v", stored.ID, begun, err)
		}
	})
}

// wiping is one attempt, at a time, with what came of it. lost: the caller was
// gone before the answer; it may have counted or not.
type wiping struct {
	device int
	at     int64
}

type wiped struct{ begun, lost bool }

const (
	fleetOf    = 6
	limitOf    = 3
	limitWidth = 10 * time.Minute
)

// lastWiped is when each device got its last command; 0: never.
type lastWiped [fleetOf]int64

func (l lastWiped) after(in wiping) (lastWiped, bool) {
	devices := 0
	for _, at := range l {
		if at > in.at-limitWidth.Milliseconds() {
			devices++
		}
	}
	if devices >= limitOf && l[in.device] <= in.at-limitWidth.Milliseconds() {
		return l, false
	}
	l[in.device] = max(l[in.device], in.at)
	return l, true
}

func wipes() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{lastWiped{}} },
		Step: func(state, input, output any) []any {
			next, begun := state.(lastWiped).after(input.(wiping))
			switch got := output.(wiped); {
			case got.lost:
				return []any{state, next}
			case got.begun == begun:
				return []any{next}
			default:
				return nil
			}
		},
	}).ToModel()
}

// Many callers on two replicas wipe devices, some cut off in the middle: there is
// one order of everything that they were answered, in which no window ever holds
// more devices than the limit.
func TestBegin_LimitIsLinearizable(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices := f.fleet(fleetOf)
		f.setLimit(limitOf, int(limitWidth.Minutes()))
		replicas := []*database.DB{f.db, f.open(t)}
		var mu sync.Mutex
		var history []porcupine.Operation
		var tick atomic.Int64
		for round := range 12 {
			now := f.clock.Now()
			var callers sync.WaitGroup
			for caller := range 6 {
				random := rand.New(rand.NewPCG(uint64(round), uint64(caller)))
				callers.Go(func() {
					in := wiping{random.IntN(fleetOf), now.UnixMilli()}
					ctx, cancel := context.WithCancel(f.Context())
					if random.IntN(6) == 0 {
						time.AfterFunc(time.Duration(random.IntN(1500))*time.Microsecond, cancel)
					}
					called := tick.Add(1)
					_, begun, err := replicas[random.IntN(2)].Begin(ctx, f.intent(devices[in.device], command.WipeCompanyData), nil)
					out, returned := wiped{begun: begun}, tick.Add(1)
					cancel()
					if err != nil && fault.CodeOf(err) != fault.RateLimited {
						out.lost, returned = true, 1<<40 // its effect may come at any time from now on
					}
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: caller, Input: in, Output: out, Call: called, Return: returned})
					mu.Unlock()
				})
			}
			callers.Wait()
			f.clock.Advance(2 * time.Minute)
		}
		if result := porcupine.CheckOperationsTimeout(wipes(), history, time.Minute); result != porcupine.Ok {
			f.Errorf("%s: there is no order of %d attempts", result, len(history))
		}
	})
}

// A device whose last command left the window counts again, once, also for a key that has
// a limit of its own. Nothing is kept of devices that have left every window.
func TestBegin_CountsADeviceAgain(t *testing.T) {
	withCompany(t, func(f *fixture) {
		devices, l := f.fleet(3), f.setLimit(2, 60)
		key, _ := f.newKey("ci", access.DevicesCommandDestructive)
		for _, after := range []time.Duration{0, access.MaxLimitWindow + time.Second, access.MaxLimitWindow, 0} {
			f.clock.Advance(after)
			for n, a := range devices {
				c := f.intent(a, command.ResetScreenLock)
				c.Actor.ID, c.DevicesPerDay = key.ID, 2
				_, begun, err := f.db.Begin(f.Context(), c, nil)
				if want := n < l.Devices; begun != want || err == nil != want {
					f.Errorf("device %d, %s later: begun %t, %v", n, after, begun, err)
				}
			}
		}
	})
}
