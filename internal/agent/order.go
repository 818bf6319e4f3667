package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Order is what another process asks of the agent that runs: only one process at
// a time may change what is in the state directory.
type Order string

// The orders.
const (
	RotateKey  Order = "rotate"
	SayGoodBye Order = "unenroll"
)

const orderFile = "order"

// Leave leaves an order in the state directory of an enrolled device. The agent
// carries it out before its next check-in.
func (o Order) Leave(dir string) error {
	s := store{dir}
	if _, err := s.identity(); err != nil {
		return err
	}
	return writeFile(s.path(orderFile), []byte(o))
}

// obey carries out the order that was left. The order goes once a crash can no
// longer lose it.
func (a *Agent) obey(ctx context.Context) error {
	text, err := os.ReadFile(a.store.path(orderFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the order: %w", err)
	}
	switch Order(text) {
	case SayGoodBye:
		if err := a.unenroll(ctx); err != nil {
			return err
		}
		return ErrEnded
	case RotateKey:
		if _, err := a.link.nextKey(); err != nil { // on disk: rotation goes on from there
			return err
		}
	default:
		a.options.Log.WarnContext(ctx, "unknown order dropped", "order", string(text))
	}
	return a.store.remove(orderFile)
}
