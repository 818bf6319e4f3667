package fcm_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/fcm"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
)

// lostAnswer keeps deliveries, and loses the database's answer.
type lostAnswer struct {
	fcm.Store
	kept int
}

// AgentOf implements fcm.Store.
func (*lostAnswer) AgentOf(context.Context, string, int) (agentdevice.Device, error) {
	return agentdevice.Device{ID: "d", Role: protocol.Companion, PushToken: "t"}, nil
}

// Deliver implements fcm.Store.
func (l *lostAnswer) Deliver(context.Context, agentdevice.Delivery) error {
	l.kept++
	return fmt.Errorf("%w: the connection broke", operation.ErrDoubt)
}

// A delivery that may have been kept reaches the companion at its next check-in: the command is not said to be not sent.
func TestSend_DeliveryWhoseAnswerWasLost(t *testing.T) {
	store := &lostAnswer{}
	push, err := fcm.New(fcm.Config{Endpoint: "http://127.0.0.1:1", Store: store, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	got := push.Send(t.Context(), command.Order{AssetID: "a", Device: asset.Device{Epoch: 1},
		Command: command.Command{ID: "c", Type: command.NotificationMessage}, Body: command.MessageBody{Title: "x", Body: "y"}})
	if got.Code != outcome.Unknown || store.kept != 1 {
		t.Errorf("%+v, kept %d times", got, store.kept)
	}
}

// gone is a store in which the companion of no device is left.
type gone struct{ fcm.Store }

// AgentOf implements fcm.Store.
func (gone) AgentOf(context.Context, string, int) (agentdevice.Device, error) {
	return agentdevice.Device{}, fault.New(fault.NotFound, "no such device")
}

// platform counts what it is sent, and has no room for what jobs send.
type platform struct{ sent int }

// Prepare implements command.Channel.
func (p *platform) Prepare(_ context.Context, o command.Order) (*agentdevice.Delivery, *command.Receipt) {
	if o.Command.OfJob() {
		return nil, &command.Receipt{Code: outcome.Throttled}
	}
	return nil, nil
}

// Send implements command.Channel.
func (p *platform) Send(context.Context, command.Order) command.Receipt {
	p.sent++
	return command.Receipt{Code: outcome.Done}
}

// A status report whose companion is gone goes by the platform, where a job's leaves the quota to callers.
func TestSend_StatusReportByThePlatform(t *testing.T) {
	other := &platform{}
	push, err := fcm.New(fcm.Config{Endpoint: "http://127.0.0.1:1", Store: gone{}, Otherwise: other, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	send := func(ref string) outcome.Code {
		return push.Send(t.Context(), command.Order{AssetID: "a", Command: command.Command{ID: "c", Type: command.StatusReport,
			IdempotencyRef: ref}}).Code
	}
	if byCaller, byJob := send("portal:u:1"), send("job:j:a"); byCaller != outcome.Done || byJob != outcome.Throttled || other.sent != 1 {
		t.Errorf("a caller's ended %s, a job's %s, %d sent; want done, throttled, 1", byCaller, byJob, other.sent)
	}
}
