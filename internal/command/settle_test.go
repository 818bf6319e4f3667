package command_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/test/expect"
)

// begun sends one command that the channel accepts under a name.
func (f *fixture) begun(a asset.Asset, t command.Type, ref string) command.Command {
	f.Helper()
	f.clock.Advance(time.Second)
	f.channel.answers(command.Receipt{Code: outcome.Accepted, Ref: ref})
	if _, err := f.execute(a, t); err != nil {
		f.Fatal(err)
	}
	return f.latest(a)
}

// lost sends one command whose answer is lost.
func (f *fixture) lost(a asset.Asset, t command.Type) command.Command {
	f.Helper()
	f.clock.Advance(time.Second)
	f.channel.answers(command.Receipt{Code: outcome.Unknown})
	if _, err := f.execute(a, t); err != nil {
		f.Fatal(err)
	}
	return f.latest(a)
}

func TestSettle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	at := f.clock.Now().Add(time.Minute)
	c := f.begun(a, command.Lock, "op-1")
	now, settled, err := f.service.Settle(f.ctx(), command.Feedback{Ref: "op-1", Succeeded: true, At: at})
	expect.Equal(t, "the first feedback", expect.Values{"error": {err, nil}, "settled": {settled, true},
		"state":      {now.State, command.Succeeded},
		"feedbackAt": {now.FeedbackAt.UTC(), at.UTC()}, "id": {now.ID, c.ID}})
	// Whatever comes later changes nothing.
	now, settled, err = f.service.Settle(f.ctx(), command.Feedback{CommandID: c.ID, Outcome: "no!", At: at.Add(time.Hour)})
	expect.Equal(t, "the second feedback", expect.Values{"error": {err, nil}, "settled": {settled, false},
		"state":          {now.State, command.Succeeded},
		"outcome is new": {now.Outcome == "no!", false}, "feedbackAt": {now.FeedbackAt.UTC(), at.UTC()}})
	if f.counter.finished["LOCK success"] != 1 || f.counter.finished["LOCK accepted"] != 1 {
		t.Errorf("counted %v", f.counter.finished)
	}
}

func TestSettle_CleansTextOfDevices(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.begun(f.enroll(fullyManaged), command.Reboot, "op-1")
	now, _, err := f.service.Settle(f.ctx(),
		command.Feedback{CommandID: c.ID, Outcome: "no\x00\x1b[31m\n\u202e way " + strings.Repeat("x", 1000), At: f.clock.Now()})
	if err != nil || now.State != command.Failed || !strings.HasPrefix(now.Outcome, "no[31m way x") || len(now.Outcome) > 500 {
		t.Errorf("%+v, %v", now, err)
	}
	c = f.begun(f.enroll(fullyManaged), command.Reboot, "op-2")
	now, _, err = f.service.Settle(f.ctx(), command.Feedback{CommandID: c.ID})
	if err != nil || now.Outcome == "" || !now.FeedbackAt.IsZero() {
		t.Errorf("a failure without a word: %+v, %v", now, err)
	}
}

func TestSettle_UnknownCommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	for _, feedback := range []command.Feedback{
		{CommandID: "nothing"}, {Ref: "nothing"}, {},
		{Ref: "nothing", Sighting: command.Observation{AssetID: a.ID, Type: command.Lock, IssuedAt: f.clock.Now()}},
		{Ref: "nothing", Sighting: command.Observation{AssetID: "nothing", Type: command.Lock, IssuedAt: f.clock.Now()}},
	} {
		if _, _, err := f.service.Settle(f.ctx(), feedback); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%+v: %v", feedback, err)
		}
	}
}

// TestSettle_DeviceAnswersBeforeChannel: its word comes before the answer.
func TestSettle_DeviceAnswersBeforeChannel(t *testing.T) {
	t.Parallel()
	for _, succeeded := range []bool{true, false} {
		for _, v := range []outcome.Code{outcome.Accepted, outcome.Unknown} {
			f := newFixture(t)
			a := f.enroll(fullyManaged)
			f.channel.answer = func(ctx context.Context, o command.Order) command.Receipt {
				_, settled, err := f.service.Settle(ctx,
					command.Feedback{Ref: "op-1", Succeeded: succeeded, Outcome: "said so", At: f.clock.Now(),
						Sighting: command.Observation{AssetID: o.AssetID, Type: o.Command.Type, IssuedAt: f.clock.Now()}})
				if err != nil || !settled {
					t.Errorf("%v, %v", settled, err)
				}
				return command.Receipt{Code: v, Ref: "op-1"}
			}
			got, err := f.execute(a, command.Lock)
			row := f.latest(a)
			if succeeded {
				if err != nil || got.Status != "SUCCESS" || row.State != command.Succeeded {
					t.Errorf("%s: %+v, %v, %+v", v, got, err, row)
				}
				continue
			}
			if fault.CodeOf(err) != fault.Refused || strings.Contains(fault.From(err).Detail, "said so") {
				t.Errorf("%s: %+v, %v, want a refusal without the channel's words", v, got, err)
			}
			if row.State != command.Failed || row.Outcome != "said so" {
				t.Errorf("%s: %+v, want it failed with the channel's words", v, row)
			}
		}
	}
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, other := f.enroll(fullyManaged), f.enroll(fullyManaged)
	named := f.begun(a, command.Lock, "op-0")
	c := f.lost(a, command.Lock)
	for name, observation := range map[string]command.Observation{
		"another type":   {AssetID: a.ID, Type: command.Reboot, IssuedAt: c.CreatedAt},
		"another device": {AssetID: other.ID, Type: command.Lock, IssuedAt: c.CreatedAt},
		"before it":      {AssetID: a.ID, Type: command.Lock, IssuedAt: c.CreatedAt.Add(-command.ClockSkew - time.Second)},
		"long after it": {AssetID: a.ID, Type: command.Lock,
			IssuedAt: c.CreatedAt.Add(2*command.SendLimit + command.ClockSkew + time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := f.service.Adopt(f.ctx(), "op-1", observation); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		})
	}
	got, err := f.service.Adopt(f.ctx(), "op-1",
		command.Observation{AssetID: a.ID, Type: command.Lock, IssuedAt: c.CreatedAt.Add(3 * time.Second)})
	f.ok(err)
	adopted := got
	adopted.ID, adopted.State, adopted.Ref = c.ID, command.Unconfirmed, "op-1"
	if diff := cmp.Diff(adopted, got); diff != "" {
		t.Fatalf("adopted (-want +got):\n%s", diff)
	}
	if _, err := f.service.Adopt(f.ctx(), "op-2",
		command.Observation{AssetID: a.ID, Type: command.Lock, IssuedAt: c.CreatedAt}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("it was adopted twice: %v", err)
	}
	now, settled, err := f.service.Settle(f.ctx(), command.Feedback{Ref: "op-1", Succeeded: true, At: f.clock.Now()})
	if err != nil || !settled || now.ID != c.ID || now.State != command.Succeeded {
		t.Errorf("%+v, %v, %v", now, settled, err)
	}
	if still, err := f.db.Command(f.ctx(), named.ID); err != nil || still.State != command.Sent {
		t.Errorf("the other command is %+v, %v", still, err)
	}
}

func TestAdopt_TakesTheClosest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	first := f.lost(a, command.Lock)
	f.clock.Advance(30 * time.Second)
	second := f.lost(a, command.Lock)
	for _, c := range []command.Command{second, first} {
		got, err := f.service.Adopt(f.ctx(), "op-"+c.ID,
			command.Observation{AssetID: a.ID, Type: command.Lock, IssuedAt: c.CreatedAt.Add(2 * time.Second)})
		if err != nil || got.ID != c.ID {
			t.Errorf("%+v, %v, want %s", got, err, c.ID)
		}
	}
}

// TestChangePolicy_IsPending: from its acceptance on the device counts as
// using the new policy, and synchronizes until it reports it.
func TestChangePolicy_IsPending(t *testing.T) {
	t.Parallel()
	for v, moved := range map[outcome.Code]bool{outcome.Accepted: true, outcome.Unknown: false, outcome.Refused: false,
		outcome.NotSent: false} {
		f := newFixture(t)
		a := f.enroll(fullyManaged)
		f.channel.answers(command.Receipt{Code: v})
		_, _ = f.execute(a, command.ChangePolicy)
		now := f.asset(a.ID)
		if (now.Device.PolicyName == "Field") != moved || (now.Status == asset.Synchronizing) != moved {
			t.Errorf("%s: the device is %s under %s", v, now.Status, now.Device.PolicyName)
		}
		_, err := f.execute(now, command.ChangePolicy)
		if (fault.CodeOf(err) == fault.Unsupported) != moved {
			t.Errorf("%s: asked for the same again: %v", v, err)
		}
	}
}

func TestPolicyApplied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	office, field := f.policies["Office"], f.policies["Field"]
	move, lock := f.begun(a, command.ChangePolicy, ""), f.begun(a, command.Lock, "op-1")
	f.ok(f.service.PolicyApplied(f.ctx(), a.ID, office.ID, asset.Platform, f.clock.Now())) // still the old one
	if c, _ := f.db.Command(f.ctx(), move.ID); c.State != command.Sent {
		t.Fatalf("settled by the old policy: %+v", c)
	}
	at := f.clock.Now().Add(time.Minute)
	f.ok(f.service.PolicyApplied(f.ctx(), a.ID, field.ID, asset.Platform, at))
	for id, want := range map[string]command.State{move.ID: command.Succeeded, lock.ID: command.Sent} {
		t.Run(id, func(t *testing.T) {
			if c, err := f.db.Command(f.ctx(), id); err != nil || c.State != want || c.Type == command.ChangePolicy &&
				!c.FeedbackAt.Equal(at) {
				t.Errorf("%+v, %v, want %s", c, err, want)
			}
		})
	}
}

func TestPolicyApplied_EndsOlderChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	intent := func(id string, to string, state command.State) {
		f.clock.Advance(time.Second)
		c := command.Command{ID: id, CompanyID: a.CompanyID, AssetID: a.ID, Epoch: a.Device.Epoch, Type: command.ChangePolicy, State: state,
			CreatedAt: f.clock.Now(), PolicyID: to}
		if _, _, err := f.db.Begin(f.ctx(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	office, field := f.policies["Office"].ID, f.policies["Field"].ID
	intent("c1", field, command.Sent)
	intent("c2", office, command.Unconfirmed)
	intent("c3", field, command.Sent)
	f.ok(f.service.PolicyApplied(f.ctx(), a.ID, office, asset.Platform, f.clock.Now()))
	for id, want := range map[string]command.State{"c1": command.Failed, "c2": command.Succeeded, "c3": command.Sent} {
		t.Run(id, func(t *testing.T) {
			if c, err := f.db.Command(f.ctx(), id); err != nil || c.State != want {
				t.Errorf("%s is %+v, %v, want %s", id, c, err, want)
			}
		})
	}
}

// Only where the service alone assigns policies, a change that is not known to be made has failed, and not at once.
func TestPolicyApplied_ChangeNeverMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	office, field := f.policies["Office"].ID, f.policies["Field"].ID
	for id, state := range map[string]command.State{"c1": command.Unconfirmed, "c2": command.Sent} {
		c := command.Command{ID: id, CompanyID: a.CompanyID, AssetID: a.ID, Epoch: a.Device.Epoch, Type: command.ChangePolicy, State: state,
			CreatedAt: f.clock.Now(), PolicyID: field}
		if _, _, err := f.db.Begin(f.ctx(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		passes time.Duration
		m      asset.Management
		want   command.State
	}{
		{9 * time.Minute, asset.Agent, command.Unconfirmed},
		{2 * time.Minute, asset.Platform, command.Unconfirmed},
		{0, asset.Agent, command.Failed},
	} {
		f.clock.Advance(step.passes)
		f.ok(f.service.PolicyApplied(f.ctx(), a.ID, office, step.m, f.clock.Now()))
		lost, err := f.db.Command(f.ctx(), "c1")
		f.ok(err)
		sent, err := f.db.Command(f.ctx(), "c2")
		f.ok(err)
		if lost.State != step.want || sent.State != command.Sent {
			t.Errorf("of %s after %s: %s and %s, want %s and SENT", step.m, step.passes, lost.State, sent.State, step.want)
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	accepted, unsure := f.begun(a, command.Reboot, "op-1"), f.lost(a, command.Reboot)
	move := f.begun(a, command.ChangePolicy, "")
	if want := accepted.CreatedAt.Add(command.Reboot.Lifetime(asset.Platform)); !accepted.Deadline.Equal(want) {
		t.Fatalf("the deadline is %s, want %s", accepted.Deadline, want)
	}
	f.clock.Advance(time.Hour)
	f.ok(f.service.Sweep(f.ctx()))
	if c, _ := f.db.Command(f.ctx(), accepted.ID); c.State != command.Sent {
		t.Errorf("expired before the grace is over: %+v", c)
	}
	f.clock.Advance(6 * time.Minute)
	f.ok(f.service.Sweep(f.ctx()))
	if c, _ := f.db.Command(f.ctx(), unsure.ID); c.State != command.Unconfirmed {
		t.Errorf("expired before the platform was asked: %+v", c)
	}
	f.ok(f.db.SetPolled(f.ctx(), unsure.ID, f.clock.Now().Add(time.Hour)))
	f.ok(f.service.Sweep(f.ctx()))
	for _, id := range []string{accepted.ID, unsure.ID} {
		c, err := f.db.Command(f.ctx(), id)
		if err != nil || c.State != command.Failed || !strings.HasPrefix(c.Outcome, "expired: ") || !c.FeedbackAt.IsZero() {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if c, err := f.db.Command(f.ctx(), move.ID); err != nil || c.State != command.Sent {
		t.Errorf("a change of policy waits forever: %+v, %v", c, err)
	}
	if _, settled, err := f.service.Settle(f.ctx(), command.Feedback{Ref: "op-1", Succeeded: true, At: f.clock.Now()}); settled ||
		err != nil {
		t.Errorf("a final state changed: %v", err)
	}
	if f.counter.finished["REBOOT expired"] != 2 {
		t.Errorf("counted %v", f.counter.finished)
	}
}

func TestSweep_TakesBatches(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	for range 450 {
		if _, _, err := f.db.Begin(f.ctx(), f.intent(a), nil); err != nil {
			t.Fatal(err)
		}
	}
	f.clock.Advance(time.Hour)
	f.ok(f.service.Sweep(f.ctx()))
	left, err := f.db.Abandoned(f.ctx(), f.clock.Now(), 1000)
	if err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v", len(left), err)
	}
}

// TestSweep_EndsBeforeChannelAnswers: an attempt that took too long was
// made UNCONFIRMED; what the channel knows in the end still counts.
func TestSweep_EndsBeforeChannelAnswers(t *testing.T) {
	t.Parallel()
	for v, want := range map[outcome.Code]struct {
		state command.State
		code  fault.Code
	}{
		outcome.Accepted: {command.Unconfirmed, ""}, outcome.Unknown: {command.Unconfirmed, ""},
		outcome.Broken: {command.Unconfirmed, fault.Internal},
		outcome.Done:   {command.Succeeded, ""}, outcome.Refused: {command.Failed, fault.Refused},
		outcome.NotSent: {command.Failed, fault.Unavailable},
	} {
		f := newFixture(t)
		a := f.enroll(fullyManaged)
		f.channel.answer = func(ctx context.Context, _ command.Order) command.Receipt {
			f.clock.Advance(time.Hour)
			f.ok(f.service.Sweep(ctx))
			return command.Receipt{Code: v, Ref: "op-1"}
		}
		got, err := f.execute(a, command.Lock)
		row := f.latest(a)
		if row.State != want.state || fault.CodeOf(err) != want.code || err == nil && got.Status != want.state.Status() {
			t.Errorf("%s: %+v, %v, %+v", v, got, err, row)
		}
		if v == outcome.Accepted && (row.Ref != "op-1" || got.Detail == "") {
			t.Errorf("the name is lost: %+v", row)
		}
	}
}

// overtaken is a store in which another call moves a command before the first step.
type overtaken struct {
	command.Store
	moves func()
}

func (s *overtaken) Advance(ctx context.Context, id string, step command.Transition) (command.Command, bool, error) {
	if move := s.moves; move != nil {
		s.moves = nil
		move()
	}
	return s.Store.Advance(ctx, id, step)
}

// The channel's word comes once: it finds its command also where that moves at the same
// moment, because the sweeper takes it for lost or its sender gives it its name.
func TestAdopt_OfOneThatMoves(t *testing.T) {
	t.Parallel()
	for to, ref := range map[command.State]string{command.Unconfirmed: "", command.Sent: "op-1"} {
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			a := f.enroll(fullyManaged)
			f.channel.answer = func(_ context.Context, o command.Order) command.Receipt { // while it is PREPARED
				s := &overtaken{Store: f.db, moves: func() {
					_, taken, err := f.db.Advance(f.ctx(), o.Command.ID,
						command.Transition{From: []command.State{command.Prepared}, To: to, Ref: ref})
					if f.ok(err); !taken {
						t.Error("it was not moved")
					}
				}}
				got, err := f.newService(s).Adopt(f.ctx(), "op-1",
					command.Observation{AssetID: a.ID, Type: command.Lock, IssuedAt: o.Command.CreatedAt})
				if err != nil || got.ID != o.Command.ID || got.Ref != "op-1" || got.State != to {
					t.Errorf("%+v, %v", got, err)
				}
				return command.Receipt{Code: outcome.Unknown}
			}
			if _, err := f.execute(a, command.Lock); err != nil {
				t.Error(err)
			}
		})
	}
}
