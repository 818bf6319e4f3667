package simulated

import (
	"context"
	"errors"
	"sync"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// Live runs a device's agent until ctx ends; work waits for it. A device that is not
// enrolled enrolls at the server first, with the token that issue gives.
func Live(ctx context.Context, work *sync.WaitGroup, o agent.Options, server string, issue func() (string, error)) error {
	a, err := agent.New(o)
	if errors.Is(err, agent.ErrNotEnrolled) {
		a, err = enroll(ctx, o, server, issue)
	}
	if err != nil {
		return err
	}
	work.Go(func() {
		err := a.Run(ctx)
		if ctx.Err() == nil && !errors.Is(err, agent.ErrEnded) {
			o.Log.Error("a simulated agent ended", "dir", o.Dir, "error", err)
		}
		_ = a.Close() // every step is on the disk
	})
	return nil
}

func enroll(ctx context.Context, o agent.Options, server string, issue func() (string, error)) (*agent.Agent, error) {
	token, err := issue()
	if err != nil {
		return nil, err
	}
	if _, err := agent.Enroll(ctx, agent.Enrollment{Options: o, Server: server, Token: token, Role: protocol.Manager}); err != nil {
		return nil, err
	}
	return agent.New(o)
}
