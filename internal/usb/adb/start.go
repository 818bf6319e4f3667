package adb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"
)

// Start starts an adb server on this machine with the adb program, if there is
// one. It is the only use of that program.
func (s Server) Start(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%w at %s: start it there", ErrNoServer, s.Address)
	}
	program, err := exec.LookPath("adb")
	if err != nil {
		return fmt.Errorf("%w at %s, and there is no adb program to start one: install Android's platform tools (Debian: apt-get install adb)", ErrNoServer, s.Address)
	}
	command := exec.CommandContext(ctx, program, "-P", port, "start-server") // with a host it believes to be elsewhere
	command.WaitDelay = time.Second                                          // the server may hold on to the pipe
	said, err := command.CombinedOutput()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("adb start-server failed: %s: %w", clean(string(said)), err)
}
