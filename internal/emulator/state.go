package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/emulator/pubsub"
)

// stateVersion is the form of the state file. A file of another form is refused
// rather than misread.
const stateVersion = 1

// stateFile is all that outlives the process.
type stateFile struct {
	Version  int             `json:"version"`
	Settings Settings        `json:"settings"`
	World    world           `json:"world"`
	PubSub   pubsub.Snapshot `json:"pubsub"`
}

func (e *Emulator) statePath() string { return filepath.Join(e.options.DataDir, "emulator.json") }

// restore reads the state file, if there is one.
func (e *Emulator) restore() error {
	if e.options.DataDir == "" {
		return nil
	}
	text, err := os.ReadFile(e.statePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("emulator: read the state: %w", err)
	}
	state := stateFile{World: newWorld()}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // policies hold their numbers as they were sent
	if err := decoder.Decode(&state); err != nil {
		return fmt.Errorf("emulator: %s is damaged: move it away to start empty: %w", e.statePath(), err)
	}
	if state.Version != stateVersion {
		return fmt.Errorf("emulator: %s has form %d, this program reads form %d: move it away to start empty", e.statePath(),
			state.Version, stateVersion)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settings, e.world = state.Settings, state.World
	e.broker.Restore(state.PubSub)
	e.revive()
	e.dirty = false
	return nil
}

// revive rebuilds the indexes of a world that was read, and its future.
func (e *Emulator) revive() {
	w := &e.world
	for _, n := range w.Enterprises {
		for _, t := range n.Tokens {
			t.owner = n
			w.byValue[t.Resource.Value] = t
		}
		for _, d := range n.Devices {
			d.owner = n
			w.byDevice[d.ID] = d
			e.reviveDevice(d)
		}
	}
}

func (e *Emulator) reviveDevice(d *simulated) {
	if d.Deleted {
		e.after(d.latency(), func() { e.finishDeletion(d, &outbox{}) })
		return
	}
	if p := d.owner.Policies[d.Applied.PolicyID]; p != nil && d.Applied.Reporting == nil { // a file from before it was kept
		d.Applied.Reporting = reportingOf(p)
	}
	for _, op := range d.Operations {
		if !op.Done {
			e.scheduleOperation(d, op)
		}
	}
	e.schedulePolicy(d, false)
	e.schedulePeriodicReport(d)
	e.scheduleSetupDeadline(d)
	if d.lost() {
		e.scheduleLostLocation(d, d.LostSince)
	}
}

// Save writes the state, so that either the old or the new file is whole. Run
// does so by itself; a program that serves the handler for longer than Run runs
// calls it at the end. It does nothing without a data directory.
func (e *Emulator) Save() error {
	if e.options.DataDir == "" {
		return nil
	}
	text, err := e.marshalState()
	if err == nil {
		err = os.MkdirAll(e.options.DataDir, 0o700)
	}
	if err == nil {
		err = durable.Write(e.statePath(), text)
	}
	if err != nil {
		return fmt.Errorf("emulator: write the state: %w", err)
	}
	return nil
}

func (e *Emulator) marshalState() ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dirty = false
	return json.Marshal(stateFile{Version: stateVersion, Settings: e.settings, World: e.world, PubSub: e.broker.Snapshot()})
}

// Saving is coalesced: at most every saveInterval, and at most a twentieth of
// the time.
const (
	saveInterval = 200 * time.Millisecond
	saveShare    = 20
)

// saveDue saves if there is something to save and the time next has come, which it
// moves. It gives the pause until it wants to be called again.
func (e *Emulator) saveDue(next *time.Time) time.Duration {
	e.mu.Lock()
	dirty := e.dirty
	e.mu.Unlock()
	if !dirty {
		return idle
	}
	start := e.now()
	if pause := next.Sub(start); pause > 0 {
		return pause
	}
	if err := e.Save(); err != nil {
		e.logger.Error("state not saved", "error", err)
		e.markDirty()
	}
	took := e.now().Sub(start)
	*next = e.now().Add(max(saveInterval, saveShare*took))
	return saveInterval
}
