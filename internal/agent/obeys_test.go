package agent_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// A command is carried out if the service signed it for this device, under an id.
func TestOnce_CommandsOfOthers(t *testing.T) {
	t.Parallel()
	key := vectorKey(t, "device")
	for _, c := range []struct {
		name   string
		change func(*protocol.Command)
		keyID  string
		does   bool
	}{
		{"for this device", func(*protocol.Command) {}, "k1", true},
		{"for another device", func(c *protocol.Command) { c.DeviceID = "d2" }, "k1", false},
		{"for no device", func(c *protocol.Command) { c.DeviceID = "" }, "k1", false},
		{"without an id", func(c *protocol.Command) { c.ID = "" }, "k1", false},
		{"with a key that is not known", func(*protocol.Command) {}, "k2", false},
	} {
		w := newCommandWorld(t, key, "LAUNCH_APP", "NEW", "intime,answers,does")
		command := commandOf("LAUNCH_APP", false)
		c.change(&command)
		sealed, err := protocol.Seal(key, c.keyID, protocol.KindCommand, command)
		if err != nil {
			t.Fatal(err)
		}
		w.commands = []protocol.Envelope{sealed}
		if did := w.live(); strings.Contains(did, "do:LAUNCH_APP") != c.does {
			t.Errorf("%s: %s, want it done: %t", c.name, did, c.does)
		}
	}
}

// A device notes beside its identity whom it obeys, and corrects what is noted otherwise.
func TestNew_NotesWhomItObeys(t *testing.T) {
	t.Parallel()
	key := vectorKey(t, "device")
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	other, err := vectorKey(t, "service").Public()
	if err != nil {
		t.Fatal(err)
	}
	note := func(role, id string, key protocol.PublicKey) map[string]any {
		return map[string]any{"role": role, "commandKey": protocol.CommandKey{ID: id, Key: key, NotBefore: 1}}
	}
	for name, noted := range map[string]any{
		"the same":      note("manager", "k1", public),
		"another role":  note("companion", "k1", public),
		"another id":    note("manager", "k0", public),
		"another key":   note("manager", "k1", other),
		"nothing":       nil,
		"what is wrong": "text",
	} {
		w := newCommandWorld(t, key, "LAUNCH_APP", "NEW", "intime,answers,does")
		if noted != nil {
			w.write("service.json", noted)
		}
		before, _ := os.Stat(filepath.Join(w.dir, "service.json"))
		a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Now: time.Now,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		var kept struct {
			Role       string
			CommandKey protocol.CommandKey
		}
		text, err := os.ReadFile(filepath.Join(w.dir, "service.json"))
		if err == nil {
			err = json.Unmarshal(text, &kept)
		}
		after := stat(t, filepath.Join(w.dir, "service.json"))
		expect.Equal(t, name, expect.Values{"written again": {before == nil || !os.SameFile(before, after), name != "the same"},
			"error": {err, error(nil)}, "role": {kept.Role, "manager"}, "id": {kept.CommandKey.ID, "k1"},
			"key": {kept.CommandKey.Key, public}})
	}
}
