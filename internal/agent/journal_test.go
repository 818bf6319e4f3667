package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// journalOf returns the path of a journal with these commands, all done.
func journalOf(t *testing.T, ids ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	for _, id := range ids {
		if err := j.Write(done(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func done(id string) agent.Entry {
	return agent.Entry{Command: protocol.Command{ID: id, Type: "REBOOT"}, Stage: agent.Done, Result: protocol.Done,
		At: time.Now().UnixMilli()}
}

func openJournal(t *testing.T, path string) *agent.Journal {
	t.Helper()
	j, err := agent.OpenJournal(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestOpenJournal_DamagedLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage  func([]byte) []byte
		skipped int
		lost    []string // ids
	}{
		"a flipped bit in the first line": {func(text []byte) []byte { text[20] ^= 1; return text }, 1, []string{"a"}},
		"a zeroed page": {func(text []byte) []byte {
			lines := bytes.SplitAfter(text, []byte("\n"))
			clear(text[len(lines[0])-5 : len(lines[0])+5])
			return text
		}, 1, []string{"a", "b"}},
		"a line longer than any": {func(text []byte) []byte {
			return append(append(bytes.Repeat([]byte("x"), 200<<10), '\n'), text...)
		}, 1, nil},
		"half a last line": {func(text []byte) []byte { return text[:len(text)-9] }, 0, []string{"c"}},
		"nothing":          {func(text []byte) []byte { return text }, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := journalOf(t, "a", "b", "c")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, test.damage(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time it reads what the first one left
				j := openJournal(t, path)
				for _, id := range []string{"a", "b", "c"} {
					_, known := j.Entry(id)
					if want := !slices.Contains(test.lost, id); known != want {
						t.Errorf("%s: command %s is known: %v, want %v", name, id, known, want)
					}
				}
				if j.Skipped() != test.skipped {
					t.Errorf("%s: %d lines skipped, want %d", name, j.Skipped(), test.skipped)
				}
				test.skipped = 0 // it is gone after the first start
			}
		})
	}
}

// What is written after a compaction is in the file that the next start reads, or
// the write fails: also where the new file's place could not be made durable.
func TestJournal_CompactionWithoutADurablePlace(t *testing.T) {
	t.Parallel()
	path := journalOf(t, "a")
	j := openJournal(t, path)
	away := errors.New("the directory cannot be synced")
	j.Compact(func(string) error { return away })
	if err := j.Write(done("b")); !errors.Is(err, away) {
		t.Errorf("a write to a file whose place is not durable: %v, want %v", err, away)
	}
	if _, known := j.Entry("b"); known {
		t.Error("the command is known although its line was not written")
	}
	j.Compact(func(string) error { return nil })
	for _, id := range []string{"b", "c"} {
		if err := j.Write(done(id)); err != nil {
			t.Error(err)
		}
	}
	again := openJournal(t, path)
	for _, id := range []string{"a", "b", "c"} {
		if _, known := again.Entry(id); !known {
			t.Errorf("command %s was written and is lost", id)
		}
	}
}

// An agent that runs for months forgets what was finished long ago without a
// restart, and does not write all that it remembers again with each line.
func TestJournal_ForgetsWhileItRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	began := time.Now()
	swaps, file := 0, stat(t, path)
	for day := range 90 {
		var entries []agent.Entry
		for n := range 500 {
			e := done(fmt.Sprintf("d%d-%d", day, n))
			e.Stage, e.At = agent.Confirmed, began.AddDate(0, 0, day).UnixMilli()
			entries = append(entries, e)
		}
		if err := j.Write(entries...); err != nil {
			t.Fatal(err)
		}
		if now := stat(t, path); !os.SameFile(file, now) {
			file, swaps = now, swaps+1
		}
	}
	if n := len(j.Entries(agent.Confirmed)); n < 31*500 || n > 62*500 {
		t.Errorf("it remembers %d commands of the last 30 days, each with 500", n)
	}
	if _, known := j.Entry("d0-0"); known || file.Size() > 12<<20 || swaps > 10 {
		t.Errorf("after 90 days it knows the first: %v, has %d bytes and was written again %d times", known, file.Size(), swaps)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
