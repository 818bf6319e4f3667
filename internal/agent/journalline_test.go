package agent_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// A line is a checksum and an entry with a command's id; everything else is passed over.
func TestLoadJournal_Lines(t *testing.T) {
	t.Parallel()
	summed := func(body string) string { return fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(body)), body) }
	const entry = `{"command":{"id":"a"},"stage":"DONE","at":1}`
	for name, test := range map[string]struct {
		line    string
		skipped int
	}{
		"an entry":              {summed(entry), 0},
		"of another checksum":   {"00000000 " + entry, 1},
		"of no checksum":        {"checksum " + entry, 1},
		"without a checksum":    {entry, 1},
		"nothing":               {"", 1},
		"no object":             {summed("entry"), 1},
		"without an id":         {summed(`{"command":{},"stage":"DONE","at":1}`), 1},
		"of another kind of at": {summed(`{"command":{"id":"a"},"stage":"DONE","at":"1"}`), 1},
	} {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, []byte(test.line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := agent.LoadJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := j.Entry("a"); j.Skipped() != test.skipped || known != (test.skipped == 0) {
			t.Errorf("%s: %d are skipped, known: %t", name, j.Skipped(), known)
		}
	}
}

// Only what was confirmed more than thirty days ago is forgotten.
func TestOpenJournal_Forgets(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(commandsNow)
	for _, test := range []struct {
		stage agent.Stage
		ago   time.Duration
		kept  bool
	}{{agent.Confirmed, agent.Remember, true}, {agent.Confirmed, agent.Remember + time.Millisecond, false},
		{agent.Done, 2 * agent.Remember, true}, {agent.Received, 2 * agent.Remember, true}, {agent.Confirmed, -time.Hour, true}} {
		path := filepath.Join(t.TempDir(), "journal")
		e := done("a")
		e.Stage, e.At = test.stage, now.Add(-test.ago).UnixMilli()
		j := openJournal(t, path)
		if err := j.Write(e); err != nil {
			t.Fatal(err)
		}
		again, err := agent.OpenJournal(path, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, kept := again.Entry("a"); kept != test.kept {
			t.Errorf("%s %s ago: kept: %t", test.stage, test.ago, kept)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The longest line has 64 KiB.
func TestJournal_LongestLine(t *testing.T) {
	t.Parallel()
	for more, fits := range map[int]bool{0: true, 1: false} {
		j := openJournal(t, filepath.Join(t.TempDir(), "journal"))
		e := done("a")
		e.Outcome = "x"
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		e.Outcome = strings.Repeat("x", 64<<10-len("01234567 \n")-len(text)+1+more)
		if err := j.Write(e); (err == nil) != fits {
			t.Errorf("%d more: %v", more, err)
		}
	}
}

// A command is kept if 8 KiB are left for its later steps, and is carried out if its deadline has not surely passed.
func TestOnce_LimitsOfCommands(t *testing.T) {
	t.Parallel()
	size := func(more int) func(*protocol.Command) {
		return func(c *protocol.Command) {
			c.Args = json.RawMessage(`""`)
			text, err := json.Marshal(agent.Entry{Command: *c, Stage: agent.Received, At: commandsNow})
			if err != nil {
				t.Fatal(err)
			}
			c.Args = json.RawMessage(`{"title":"` + strings.Repeat("x", 56<<10-len(text)-len(`{"title":}`)+more) + `"}`)
		}
	}
	deadline := func(at int64) func(*protocol.Command) { return func(c *protocol.Command) { c.Deadline = at } }
	for name, test := range map[string]struct {
		change func(*protocol.Command)
		want   protocol.AckState
	}{
		"as large as can be": {size(0), protocol.Done}, "too large": {size(1), protocol.Failed},
		"without an end":                  {deadline(0), protocol.Done},
		"late, within the skew of clocks": {deadline(commandsNow - protocol.MaxSkew), protocol.Done},
		"too late":                        {deadline(commandsNow - protocol.MaxSkew - 1), protocol.Failed},
	} {
		d := newFollower(t, "does", nil)
		c := commandOf("LAUNCH_APP", false)
		test.change(&c)
		d.commands = []protocol.Envelope{commandEnvelope(t, d.key, c)}
		if _, err := d.sets(d); err != nil || d.entry().Result != test.want {
			t.Errorf("%s: %s %s, want %s: %v", name, d.entry().Result, d.entry().Outcome, test.want, err)
		}
	}
}
