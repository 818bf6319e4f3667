package agent

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

const (
	// eraseEvery is how soon an erase is ordered again that shows no effect.
	eraseEvery = 30 * time.Second
	// secondWay is how long the first way to erase a device may show no effect
	// before the second is taken.
	secondWay = 2 * time.Minute
)

// eraseAgain orders an erase again that was ordered before, also without a
// connection: the service knows that the device has the command. Such a command
// is DONE only where the device itself can tell that it was erased. It does not
// fail any more: that the system refuses now may be part of its going down.
func (a *Agent) eraseAgain(ctx context.Context) error {
	for _, e := range a.journal.Entries(Started) {
		if e.Command.Type != Erase {
			continue
		}
		since := time.Duration(a.link.serviceTime().UnixMilli()-e.At) * time.Millisecond
		outcome, err := a.options.Device.Do(ctx, Action{Type: Erase, CommandID: e.Command.ID, Again: since > secondWay})
		if err != nil {
			a.options.Log.WarnContext(ctx, "cannot erase the device yet", "command", e.Command.ID, "since", since, "error", err)
			continue
		}
		if err := a.finish(e, protocol.Done, outcome); err != nil {
			return err
		}
	}
	return nil
}

// eraseForGood erases a device that the service has given up after a wipe. While
// the device is still there it goes on asking, and is told again.
func (a *Agent) eraseForGood(ctx context.Context) error {
	now := a.options.Now()
	if a.erasing.IsZero() {
		a.erasing = now
	}
	_, err := a.options.Device.Do(ctx, Action{Type: Erase, Again: now.Sub(a.erasing) > secondWay})
	if errors.Is(err, ErrOrdered) {
		return err
	}
	return errors.Join(ErrEnded, err)
}
