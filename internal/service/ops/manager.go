package ops

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Manager is the service manager that started the process, such as systemd, which is told
// how the process does (sd_notify). The zero value tells none.
type Manager struct {
	// Socket is the path of its datagram socket, or with @ a name of Linux's.
	Socket string
	// Watchdog is how long it waits for a sign of life before it kills the process;
	// 0: it does not wait for one.
	Watchdog time.Duration
}

// Ready says that the service serves.
func (m Manager) Ready() error { return m.tell("READY=1") }

// Stopping says that the service ends and is to be left alone.
func (m Manager) Stopping() error { return m.tell("STOPPING=1") }

// Watch gives a sign of life after each check until ctx ends. A check that does not return
// has the manager kill the process.
func (m Manager) Watch(ctx context.Context, check func(context.Context)) error {
	ticks := time.NewTicker(m.Watchdog / 3)
	defer ticks.Stop()
	for {
		check(ctx)
		if err := m.tell("WATCHDOG=1"); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

func (m Manager) tell(state string) error {
	if m.Socket == "" {
		return nil
	}
	connection, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.Socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("cannot reach the service manager: %w", err)
	}
	defer connection.Close()
	if _, err := connection.Write([]byte(state)); err != nil {
		return fmt.Errorf("cannot tell the service manager: %w", err)
	}
	return nil
}
