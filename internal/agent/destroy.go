package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/durable"
)

// Files of the state directory that the program writes beside the agent. They go with the
// enrollment.
const (
	// AddressesFile keeps the last good addresses of hosts.
	AddressesFile = "addresses.json"
	// EndedFile has why an agent in the background ended.
	EndedFile = "ended"
)

// newMark is in the name under which a file is written before it takes its place (durable.Write).
const newMark = ".new"

// stateFiles are the names of all files that the agent may have written, in the order in
// which they are destroyed.
func stateFiles() []string {
	return []string{identityFile, pendingFile, obeyedFile, appliedFile, journalFile, orderFile, updateFile, programFile, downloadPart,
		reserveFile, LogFile, AddressesFile, EndedFile}
}

// destroy removes everything, the identity first: without it nothing else has
// any power.
func (s store) destroy() error {
	for _, name := range stateFiles() {
		if err := s.remove(name); err != nil {
			return err
		}
	}
	return s.sweep(func(name, after string) bool { return after == newMark || strings.HasPrefix(after, newMark+"-") })
}

// sweepLeftovers removes what a power cut left of files that were being written, which may
// hold a key. The caller is the only process that writes in the state directory, but for
// orders: these hold no secret, and another process may be writing one.
func (s store) sweepLeftovers() error {
	return s.sweep(func(name, after string) bool { return name != orderFile && strings.HasPrefix(after, newMark+"-") })
}

// sweep removes the files whose name is that of a file of the agent with an ending that is
// to go.
func (s store) sweep(goes func(name, after string) bool) error {
	files, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	removed := false
	for _, file := range files {
		if !slices.ContainsFunc(stateFiles(), func(name string) bool {
			after, found := strings.CutPrefix(file.Name(), name)
			return found && goes(name, after)
		}) {
			continue
		}
		if err := os.Remove(s.path(file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return durable.Sync(s.dir)
}

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

// eraseForGood erases a device that the service has given up after a wipe. It fails while the
// device is still there: the next check-in is answered with the same tombstone, and it is called again.
func (a *Agent) eraseForGood(ctx context.Context) error {
	now := a.options.Now()
	a.erasing = cmp.Or(a.erasing, now)
	_, err := a.options.Device.Do(ctx, Action{Type: Erase, Again: now.Sub(a.erasing) > secondWay})
	return ended(err)
}

// ended returns ErrEnded once what ends an enrollment is done, else why it is not done yet.
func ended(err error) error {
	if err != nil {
		return fmt.Errorf("cannot end the enrollment yet: %w", err)
	}
	return ErrEnded
}
