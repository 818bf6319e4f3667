package agent

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

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
