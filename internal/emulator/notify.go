package emulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/emulator/pubsub"
)

// outbox collects the notifications of one action, to wait for them.
type outbox struct {
	muted    bool // send none
	receipts []pubsub.Receipt
}

// alwaysSent are the notifications that an enterprise cannot switch off.
func alwaysSent(kind string) bool { return kind == "test" || kind == "ENTERPRISE_UPGRADE" }

// schemaOf gives the schema of a notification's data.
func schemaOf(kind string) string {
	return cmp.Or(map[string]string{"COMMAND": "Operation", "USAGE_LOGS": "BatchUsageLogEvents"}[kind], "Device")
}

// notify publishes a notification to an enterprise's topic, unless the
// enterprise does not want it or chance or a fault loses it. Callers hold e.mu.
func (e *Emulator) notify(n *enterprise, kind string, payload any, out *outbox) {
	topic := n.Resource.PubsubTopic
	if out.muted || topic == "" || !alwaysSent(kind) && !slices.Contains(n.Resource.EnabledNotificationTypes, kind) {
		return
	}
	var data []byte
	if payload != nil {
		var err error
		if data, err = json.Marshal(payload); err != nil {
			e.logger.Error("notification cannot be written", "type", kind, "error", err)
			return
		}
		if e.options.CheckAnswers {
			if err := e.management.Validate(schemaOf(kind), data); err != nil {
				e.logger.Error("the emulator's own notification is wrong", "type", kind, "error", err)
			}
		}
	}
	message := pubsub.Message{Data: data, Attributes: map[string]string{"notificationType": kind}}
	copies, delay := e.fate(kind)
	for range copies {
		if delay > 0 {
			e.after(delay, func() { e.publish(topic, message, out) })
		} else {
			e.publish(topic, message, out)
		}
	}
}

// fate decides how often and how late a notification is sent.
func (e *Emulator) fate(kind string) (copies int, delay time.Duration) {
	copies = 1
	if f := e.faults.take([]string{notificationsMethod}, kind); f != nil {
		switch {
		case f.Lose:
			return 0, 0
		case f.Duplicate:
			copies = 2
		}
		return copies, time.Duration(f.DelayMS) * time.Millisecond
	}
	r := e.settings.Notifications
	if e.random.Float64() < r.LoseShare {
		return 0, 0
	}
	if e.random.Float64() < r.DuplicateShare {
		copies = 2
	}
	if e.random.Float64() < r.DelayShare {
		delay = time.Duration(r.DelayMS) * time.Millisecond
	}
	return copies, delay
}

func (e *Emulator) publish(topic string, m pubsub.Message, out *outbox) {
	receipt, err := e.broker.Publish(topic, m)
	if errors.Is(err, pubsub.ErrNotFound) && !e.settings.StrictPubSub {
		_ = e.broker.CreateTopic(topic)
		receipt, err = e.broker.Publish(topic, m)
	}
	if err != nil {
		e.logger.Warn("notification lost: the topic does not exist", "topic", topic)
		return
	}
	out.receipts = append(out.receipts, receipt)
	e.touch()
}

// announceTopic makes an enterprise's topic known with the vendor's test
// message, which has no data.
func (e *Emulator) announceTopic(n *enterprise) {
	e.notify(n, "test", nil, &outbox{})
}

// patience is how long a control call waits without any acknowledgment.
const patience = 5 * time.Second

// settled carries out an action with the state locked, and then waits until its
// notifications were accepted: acknowledged by those who pull. It does not wait for
// subscriptions without a subscriber.
func (e *Emulator) settled(ctx context.Context, notify bool, act func(*outbox) error) error {
	receipts, err := e.acted(notify, act)
	if err == nil && len(receipts) > 0 {
		e.broker.Settle(ctx, receipts, patience)
	}
	return err
}

func (e *Emulator) acted(notify bool, act func(*outbox) error) ([]pubsub.Receipt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touch()
	out := &outbox{muted: !notify}
	err := act(out)
	return slices.Clone(out.receipts), err // delayed notifications come later
}
