package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/asset"
)

const (
	sweepBatch = 200
	// ExpiryGrace is how long after its deadline a command still waits for the
	// word of a device that carried it out at the last moment.
	ExpiryGrace = 5 * time.Minute
	// askLimit is how long after that a command waits for the platform to be asked a last time: the service
	// was down, or the platform cannot be reached.
	askLimit = 24 * time.Hour
	// AskAgain is after how long a last question without an answer is repeated.
	AskAgain = time.Minute
)

// ExpiresAt is when a command without a word from its device ends; zero: never.
func (c Command) ExpiresAt() time.Time {
	if c.Deadline.IsZero() {
		return time.Time{}
	}
	return c.Deadline.Add(ExpiryGrace)
}

// Expired reports whether a command that is open ends without a word from its device.
func (c Command) Expired(now time.Time) bool {
	return !c.Deadline.IsZero() && !now.Before(c.ExpiresAt())
}

// Sweep settles what no call will: an intent whose outcome was never
// written becomes UNCONFIRMED, and a command past its deadline ends ERROR. It
// sends nothing. Any number of replicas may sweep at once; call it every few
// seconds.
func (s *Service) Sweep(ctx context.Context) error {
	interrupted := s.abandon(ctx, s.now().Add(-2*SendLimit))
	expired := s.sweep(ctx, func(ctx context.Context) ([]Command, error) {
		now := s.now()
		before := now.Add(-ExpiryGrace)
		return s.Finder.Overdue(ctx, Expiry{AskedAt: now.Add(AskAgain), Before: before, Unasked: before.Add(-askLimit)}, sweepBatch)
	}, expire, "expired")
	return errors.Join(interrupted, expired)
}

// Abandon makes every intent UNCONFIRMED whose outcome is not written yet. It
// is for the start of a process that is alone with its database: no other
// process can be sending one.
func (s *Service) Abandon(ctx context.Context) error {
	return s.abandon(ctx, s.now().Add(time.Second))
}

func (s *Service) abandon(ctx context.Context, before time.Time) error {
	return s.sweep(ctx, func(ctx context.Context) ([]Command, error) {
		return s.Finder.Abandoned(ctx, before, sweepBatch)
	}, func(Command) Transition {
		return Transition{From: []State{Prepared}, To: Unconfirmed,
			Outcome: "the service was interrupted; it is not known whether it was sent"}
	}, "unconfirmed")
}

// expire ends a command that its device never spoke of.
func expire(c Command) Transition {
	outcome := fmt.Sprintf("expired: no word from the device until %s", c.Deadline.UTC().Format(time.RFC3339))
	if c.State == Unconfirmed {
		outcome += "; it is not known whether it was sent"
	}
	return Transition{From: []State{c.State}, To: Failed, Outcome: outcome}
}

// sweep takes a step with everything that find returns, batch by batch, until
// there is no more or a batch changed nothing.
func (s *Service) sweep(ctx context.Context, find func(context.Context) ([]Command, error), step func(Command) Transition,
	outcome string) error {
	for {
		batch, err := find(ctx)
		if err != nil {
			return err
		}
		moved := 0
		for _, c := range batch {
			_, taken, err := s.Store.Advance(ctx, c.ID, step(c))
			if err != nil {
				return err
			}
			if taken {
				moved++
				s.finished(c.Type, outcome)
			}
		}
		if moved == 0 || len(batch) < sweepBatch {
			return nil
		}
	}
}

// Canceler is a channel that can take a command back which its device has not
// received yet. What became of it is known afterwards as for any command. Cancel fails if the
// channel does not take the request, or its answer cannot be applied.
type Canceler interface {
	Cancel(ctx context.Context, c Command) error
}

// Cancels is what CancelStopped needs of the store. Commands of people are in
// none of its answers. Each method fails as the database does.
type Cancels interface {
	// Withdraw ends commands that keys and connections of stopped companies sent
	// and that wait here, never offered to their device: ERROR, with the outcome
	// and the company's reason. It returns their types, at most limit.
	Withdraw(ctx context.Context, outcome string, limit int) ([]Type, error)
	// ToCancel returns, at most limit, commands that keys and connections of
	// stopped companies sent by a channel that has its own name of them. Each is
	// returned to one caller and not again within pause.
	ToCancel(ctx context.Context, pause time.Duration, limit int) ([]Command, error)
}

const (
	cancelOutcome = "cancelled: automation was stopped before the device was offered the command"
	cancelPause   = time.Minute
	cancelBatch   = 20
)

// CancelStopped takes back what keys and connections of stopped companies sent
// and no device has received. Call it every few seconds, on any number of replicas.
func (s *Service) CancelStopped(ctx context.Context) error {
	withdrawn, err := s.Cancels.Withdraw(ctx, cancelOutcome, sweepBatch)
	for _, t := range withdrawn {
		s.finished(t, "error")
	}
	canceler, ok := s.Channels[asset.Platform].(Canceler)
	if err != nil || !ok {
		return err
	}
	due, err := s.Cancels.ToCancel(ctx, cancelPause, cancelBatch)
	for _, c := range due {
		if err := canceler.Cancel(ctx, c); err != nil {
			s.Log.WarnContext(ctx, "cannot cancel a command", "command", c.ID, "type", c.Type, "error", err)
		}
	}
	return err
}
