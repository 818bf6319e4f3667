package command_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"pgregory.net/rapid"
)

// lifecycle drives the service with whatever may happen to it, in any order,
// and knows what must hold then.
type lifecycle struct {
	*fixture
	device  asset.Asset
	repeats int               // requests with an Idempotency-Key
	finals  map[string]string // final rows as they were first seen
	refs    int
}

// TestLifecycle: final states never change, no command is sent twice, none
// that was accepted is lost, and in the end all are final or UNCONFIRMED.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rapid.Check(t, func(t *rapid.T) {
		f.channel, f.push = &channel{sent: map[string]int{}}, &channel{sent: map[string]int{}}
		f.service = f.newService(f.db)
		l := &lifecycle{fixture: f, finals: map[string]string{}}
		l.device = l.enroll(rapid.SampledFrom([]kind{fullyManaged, companyWork, agentManaged}).Draw(t, "device"))
		t.Repeat(map[string]func(*rapid.T){
			"":       l.check,
			"send":   l.send,
			"die":    l.die,
			"settle": l.settle,
			"adopt":  l.adopt,
			"sweep":  func(t *rapid.T) { l.ok(l.service.Sweep(l.ctx())) },
			"wait": func(t *rapid.T) {
				l.clock.Advance(time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second)
			},
			"applied": l.applied,
		})
		l.clock.Advance(400 * 24 * time.Hour)
		l.ok(l.service.Sweep(l.ctx()))
		for _, c := range l.history(l.device) {
			if c.State == command.Prepared || c.State == command.Sent && !c.Deadline.IsZero() {
				t.Fatalf("left behind: %+v", c)
			}
		}
	})
}

// receipt draws what the channel says, perhaps after the device's own word.
func (l *lifecycle) receipt(t *rapid.T) {
	l.refs++
	r := command.Receipt{Code: rapid.SampledFrom(outcome.Codes()).Draw(t, "outcome")}
	if r.Code == outcome.Gone { // the device would end, and with it the test
		r.Code = outcome.Refused
	}
	if r.Code == outcome.Accepted || rapid.Bool().Draw(t, "named") {
		r.Ref = fmt.Sprintf("op-%s-%d", l.device.ID, l.refs)
	}
	early := rapid.IntRange(0, 9).Draw(t, "early")
	answer := func(ctx context.Context, o command.Order) command.Receipt {
		if early < 2 {
			_, _, err := l.service.Settle(ctx, command.Feedback{CommandID: o.Command.ID, Succeeded: early == 0, At: l.clock.Now()})
			l.ok(err)
		}
		return r
	}
	l.channel.answer, l.push.answer = answer, answer
}

func (l *lifecycle) call(t *rapid.T) operation.Call {
	call := operation.Call{Principal: l.caller()}
	if rapid.Bool().Draw(t, "keyed") {
		l.repeats++
		call.IdempotencyRef = fmt.Sprintf("%s-%d", l.device.ID, rapid.IntRange(1, l.repeats).Draw(t, "request"))
	}
	return call
}

func (l *lifecycle) kind(t *rapid.T) command.Type {
	return rapid.SampledFrom([]command.Type{command.Lock, command.NotificationMessage, command.Reboot, command.ChangePolicy,
		command.Shutdown, command.StatusReport}).Draw(t, "type")
}

// send sends a command; an accepted one must be in the history at once.
func (l *lifecycle) send(t *rapid.T) {
	l.receipt(t)
	before := len(l.history(l.device))
	kindOf, call := l.kind(t), l.call(t)
	got, err := l.executeAs(l.service, call, l.device, kindOf)
	after := l.history(l.device)
	if err == nil && call.IdempotencyRef == "" && (len(after) != before+1 || !slices.ContainsFunc(after, func(c command.Command) bool {
		return c.Type == got.Type && c.State.Status() == got.Status || c.Type == command.NotificationMessage
	})) {
		t.Fatalf("%+v is not in the history", got)
	}
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.InvalidArguments {
		t.Fatal(err)
	}
}

func (l *lifecycle) die(t *rapid.T) {
	l.receipt(t)
	step := rapid.SampledFrom([]string{command.BeforeIntent, command.AfterIntent, command.AfterSend, command.AfterAnswer}).Draw(t, "step")
	l.dies(step, l.call(t), l.device, l.kind(t))
}

func (l *lifecycle) settle(t *rapid.T) {
	all := l.history(l.device)
	if len(all) == 0 {
		t.Skip("nothing to settle")
	}
	c := rapid.SampledFrom(all).Draw(t, "command")
	f := command.Feedback{CommandID: c.ID, Succeeded: rapid.Bool().Draw(t, "succeeded"), Outcome: "device's word", At: l.clock.Now()}
	if c.Ref != "" && rapid.Bool().Draw(t, "by name") {
		f.CommandID, f.Ref = "", c.Ref
	}
	now, taken, err := l.service.Settle(l.ctx(), f)
	if err != nil || !now.State.Final() || taken == c.State.Final() || now.ID != c.ID {
		t.Fatalf("%+v, taken %v, %v, was %+v", now, taken, err, c)
	}
}

func (l *lifecycle) adopt(t *rapid.T) {
	l.refs++
	observation := command.Observation{AssetID: l.device.ID, Type: l.kind(t),
		IssuedAt: l.clock.Now().Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "ago")) * time.Second)}
	c, err := l.service.Adopt(l.ctx(), fmt.Sprintf("op-%s-%d", l.device.ID, l.refs), observation)
	if err != nil {
		if fault.CodeOf(err) != fault.NotFound {
			t.Fatalf("%+v, %v", c, err)
		}
		return
	}
	if c.State.Final() || c.State == command.Sent || c.Type != observation.Type {
		t.Fatalf("adopted %+v as %+v", observation, c)
	}
}

func (l *lifecycle) applied(t *rapid.T) {
	p := rapid.SampledFrom([]string{"Office", "Field", "Lobby"}).Draw(t, "policy")
	l.ok(l.service.PolicyApplied(l.ctx(), l.device.ID, l.policies[p].ID, asset.Platform, l.clock.Now()))
}

// check is what holds after every step.
func (l *lifecycle) check(t *rapid.T) {
	for _, ch := range []*channel{l.channel, l.push} {
		if _, most := ch.sends(); most > 1 {
			t.Fatal("a command was sent twice")
		}
	}
	seen := maps.Clone(l.finals)
	for _, c := range l.history(l.device) {
		if !c.State.Final() {
			continue
		}
		now := fmt.Sprintf("%s %s %q %s", c.ID, c.State, c.Outcome, c.FeedbackAt)
		if was, known := seen[c.ID]; known && was != now {
			t.Fatalf("a final command changed from %s to %s", was, now)
		}
		l.finals[c.ID] = now
		delete(seen, c.ID)
	}
	if len(seen) > 0 {
		t.Fatalf("final commands are gone: %v", seen)
	}
}
