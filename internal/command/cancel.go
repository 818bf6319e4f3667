package command

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/asset"
)

// Canceler is a channel that can take a command back which its device has not
// received yet. What became of it is known afterwards as for any command.
type Canceler interface {
	Cancel(ctx context.Context, c Command) error
}

// Cancels is what CancelStopped needs of the store. Commands of people are in
// none of its answers.
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
			s.log().WarnContext(ctx, "cannot cancel a command", "command", c.ID, "type", c.Type, "error", err)
		}
	}
	return err
}
