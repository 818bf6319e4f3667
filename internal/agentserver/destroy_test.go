package agentserver_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// leave puts files into the phone's state directory.
func (p *phone) leave(names ...string) {
	p.world.t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(p.options.Dir, name), []byte("{}"), 0o600); err != nil {
			p.world.t.Fatal(err)
		}
	}
}

// files are the names in the phone's state directory, in order.
func (p *phone) files() (names []string) {
	p.world.t.Helper()
	entries, err := os.ReadDir(p.options.Dir)
	if err != nil {
		p.world.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A device that was given back keeps nothing of its enrollment, and nothing that is not the
// agent's goes.
func TestUnenroll_NothingStays(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.leave("enrolling.json", "addresses.json", "addresses.json.new", "ended", "log", "log.new", "identity.json.new-1",
		"enrolling.json.new-23", "applied.json.new-4", "journal.new-5", "service.json.new-6", "order.new-7", "update.part", "device.json",
		"a.new-1", "running")
	if err := p.agent.Unenroll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := p.files(), []string{"a.new-1", "device.json", "running"}; !slices.Equal(got, want) {
		t.Errorf("the state directory holds %q, want %q", got, want)
	}
}

// What a power cut left of files that were being written goes at the next start. An order
// that another process is writing stays.
func TestNew_RemovesLeftovers(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	before := p.files()
	p.leave("identity.json.new-1", "enrolling.json.new-2", "journal.new-3", "order.new-4", "a.new-5")
	p.start()
	want := slices.Sorted(slices.Values(append(before, "order.new-4", "a.new-5")))
	if got := p.files(); !slices.Equal(got, want) {
		t.Errorf("the state directory holds %q, want %q", got, want)
	}
	p.mustCheckIn()
}
