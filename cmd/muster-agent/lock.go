package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/agent"
)

// lockName is the file of the state directory that is locked by the one process
// that may change anything there. It holds the process id of an agent that takes
// orders.
const lockName = "running"

// busyError reports a state directory that another process works in.
type busyError struct{ pid int } // 0: it takes no orders

// Error implements error.
func (e *busyError) Error() string {
	if e.pid == 0 {
		return "another muster-agent works in this state directory: try again when it has ended"
	}
	return fmt.Sprintf("the agent runs as process %d: stop it first", e.pid)
}

// lock makes this process the only one that changes the state directory, until it
// ends or the lock is closed. Where another is, the error is a *busyError.
func (c common) lock() (*os.File, error) {
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(c.State, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := flock(file)
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("cannot lock the state directory: %w", err), file.Close())
	case !free:
		text, _ := io.ReadAll(io.LimitReader(file, 32)) // empty where it cannot be read
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return nil, errors.Join(&busyError{pid}, file.Close())
	}
	if err := file.Truncate(0); err != nil { // the process before may have been killed
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// orAsk does something with the agent of the state directory; where one runs, it asks
// that to do it instead.
func (c common) orAsk(env *environment, order agent.Order, do func(*agent.Agent) error) error {
	lock, err := c.lock()
	var busy *busyError
	switch {
	case err == nil:
		defer lock.Close()
		a, err := c.open(env, false)
		if err != nil {
			return err
		}
		defer a.Close()
		return do(a)
	case !errors.As(err, &busy):
		return err
	}
	if err := order.Leave(c.State); err != nil {
		return err
	}
	if busy.pid != 0 && wake(busy.pid) == nil {
		fmt.Fprintf(env.out, "The agent runs as process %d and was asked to do it now.\n", busy.pid)
		return nil
	}
	fmt.Fprintln(env.out, "Another muster-agent works in this state directory. It, or the next one that runs, does it at its "+
		"next check-in.")
	return nil
}
