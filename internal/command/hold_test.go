package command_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
)

// holder is a channel that keeps its orders in the store.
type holder struct {
	*channel
	f         *fixture
	device    string
	refuses   bool
	kept      string            // the command that was prepared last
	place     *place            // for it; nil: there is none
	announced []command.Command // as the store had them when the device was woken
}

func (h *holder) Prepare(ctx context.Context, o command.Order) (*agentdevice.Delivery, *command.Receipt) {
	if h.refuses {
		return nil, nil
	}
	h.kept = o.Command.ID
	held := &agentdevice.Delivery{CommandID: o.Command.ID, DeviceID: h.device, Type: string(o.Command.Type), Args: []byte(`{}`),
		CreatedAt: o.Command.CreatedAt, Deadline: o.Command.Deadline}
	if h.place != nil {
		held.Place = h.place
	}
	receipt := h.answer(ctx, o)
	return held, &receipt
}

// holding is a service whose agents' channel is a holder.
func (f *fixture) holding(s command.Store) (*command.Service, *holder) {
	f.Helper()
	hash := sha256.Sum256([]byte(resource.NewID()))
	f.ok(f.db.CreateAgentToken(f.ctx(), agentdevice.Token{Hash: hash, CompanyID: f.company.ID, PolicyID: f.policies["Kiosk"].ID,
		ExpiresAt: f.clock.Now().Add(time.Hour)}))
	device, err := f.db.EnrollAgent(f.ctx(), agentdevice.Enrollment{Hash: hash, Again: f.clock.Now(),
		Device: agentdevice.Device{ID: resource.NewID(), State: agentdevice.Active}},
		enrollment.Observation{Management: asset.Agent, Enrolling: true, ObservedAt: f.clock.Now()})
	f.ok(err)
	h := &holder{channel: f.channel, f: f, device: device.ID}
	f.Cleanup(f.db.Listen(agentdevice.WakeTopic, func(ids []string) {
		if slices.Contains(ids, h.device) {
			c, err := f.db.Command(f.ctx(), h.kept)
			f.ok(err)
			h.announced = append(h.announced, c)
		}
	}))
	service := f.newService(s)
	service.Channels[asset.Agent] = h
	return service, h
}

// What is held is committed with its outcome: no second step is taken, and the
// device is woken when everything can be read.
func TestPrepare_QueuedOrderIsOneCommit(t *testing.T) {
	t.Parallel()
	for kind, want := range map[command.Type]struct {
		receipt command.Receipt
		state   command.State
		outcome string
	}{
		command.Reboot: {command.Receipt{Code: outcome.Accepted, Ref: "ref-1"}, command.Sent, ""},
		command.NotificationMessage: {command.Receipt{Code: outcome.Done, Outcome: "accepted for delivery"}, command.Succeeded,
			"accepted for delivery"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			f := newFixture(t)
			a := f.enroll(agentManaged)
			f.channel.answers(want.receipt)
			service, h := f.holding(&brokenStore{Store: f.db, take: true})
			got, err := f.executeAs(service, operation.Call{Principal: f.caller()}, a, kind)
			f.ok(err)
			if got.Status != want.state.Status() || got.CreatedAt == nil {
				t.Errorf("%s: answered %+v", kind, got)
			}
			if len(h.announced) != 1 || h.announced[0].State != want.state || h.announced[0].Outcome != want.outcome ||
				h.announced[0].Ref != want.receipt.Ref {
				t.Errorf("%s: the device was told of %+v", kind, h.announced)
			}
			if sends, _ := f.channel.sends(); sends != 0 {
				t.Errorf("%s: it was sent as well", kind)
			}
			if f.counter.finished[string(kind)+" "+string(want.receipt.Code)] != 1 {
				t.Errorf("%s: counted %v", kind, f.counter.finished)
			}
		})
	}
}

func TestPrepare_OtherOrdersAreSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(agentManaged)
	service, h := f.holding(f.db)
	h.refuses = true
	if _, err := f.executeAs(service, operation.Call{Principal: f.caller()}, a, command.Reboot); err != nil {
		t.Fatal(err)
	}
	if sends, _ := f.channel.sends(); sends != 1 || len(h.announced) != 0 {
		t.Errorf("sent %d times, told of %+v", sends, h.announced)
	}
}

func TestPrepare_RepetitionIsNotAnnounced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(agentManaged)
	service, h := f.holding(f.db)
	call := operation.Call{Principal: f.caller(), IdempotencyRef: "request-1"}
	for range 2 {
		if got, err := f.executeAs(service, call, a, command.Reboot); err != nil || got.Status != "IN_PROGRESS" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if len(h.announced) != 1 || len(f.history(a)) != 1 {
		t.Errorf("told of %d, history %+v", len(h.announced), f.history(a))
	}
}

// A store that fails kept nothing, and the caller may try again; a store whose
// answer was lost may have kept it, and then only the history knows.
func TestPrepare_StoreFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(agentManaged)
	service, h := f.holding(&brokenStore{Store: f.db, begin: errDown})
	if _, err := f.executeAs(service, operation.Call{Principal: f.caller()}, a, command.Reboot); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a store that fails: %v", err)
	}
	service, h2 := f.holding(&brokenStore{Store: f.db, begin: fmt.Errorf("%w: %w", operation.ErrDoubt, errDown)})
	got, err := f.executeAs(service, operation.Call{Principal: f.caller()}, a, command.Reboot)
	if err != nil || got.Status != "UNCONFIRMED" || got.Detail == "" {
		t.Errorf("a store in doubt: %+v, %v", got, err)
	}
	if len(h.announced)+len(h2.announced) != 0 {
		t.Error("a device was told of what may not be kept")
	}
	if _, err := f.executeAs(f.newService(&brokenStore{Store: f.db, begin: operation.ErrDoubt}), operation.Call{Principal: f.caller()}, a,
		command.Reboot); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("an intent in doubt is not sent: %v", err)
	}
}
