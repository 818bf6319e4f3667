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
