package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// FuzzJournal reads what a crash, a bad disk or an attacker may have left. What
// is good of it is read again the same; a journal opened on it takes new steps
// and keeps them.
func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	whole := filepath.Join(dir, "whole")
	j, err := agent.OpenJournal(whole, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	now := time.Now().UnixMilli()
	for _, e := range []agent.Entry{
		{Command: protocol.Command{ID: "a", Type: "REBOOT"}, Stage: agent.Received, At: now},
		{Command: protocol.Command{ID: "a", Type: "REBOOT"}, Stage: agent.Started, BootID: "b", At: now},
		{Command: protocol.Command{ID: "b", Type: "NOTIFICATION_MESSAGE", Args: []byte(`{"title":"t"}`)}, Stage: agent.Done,
			Result: protocol.Done, At: now},
		{Command: protocol.Command{ID: "a"}, Stage: agent.Confirmed, At: now},
	} {
		if err := j.Write(e); err != nil {
			f.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-3])
	f.Add(append(bytes.Clone(text), "00000000 {}\n"...))
	f.Add([]byte("d202ef8d \n\n\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var entries []agent.Entry
		good, _, err := agent.ReadJournal(bytes.NewReader(text), func(e agent.Entry) { entries = append(entries, e) })
		if err != nil || good < 0 || good > int64(len(text)) {
			t.Fatalf("%d of %d bytes are good: %v", good, len(text), err)
		}
		again := 0
		if twice, _, err := agent.ReadJournal(bytes.NewReader(text[:good]), func(agent.Entry) { again++ }); err != nil || twice != good ||
			again != len(entries) {
			t.Fatalf("read again: %d bytes and %d entries, not %d and %d: %v", twice, again, good, len(entries), err)
		}
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		takesAStep(t, path)
	})
}

func takesAStep(t *testing.T, path string) {
	t.Helper()
	j, err := agent.OpenJournal(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	step := agent.Entry{Command: protocol.Command{ID: "new-step", Type: "WIPE_COMPANY_DATA"}, Stage: agent.Started,
		At: time.Now().UnixMilli()}
	if err := j.Write(step); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = agent.OpenJournal(path, time.Now()); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if e, known := j.Entry("new-step"); !known || e.Stage != agent.Started {
		t.Fatalf("the step was lost: %+v %v", e, known)
	}
}
