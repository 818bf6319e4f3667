package agent_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// What the journal is given, it gives back, whatever code units are in it: also
// control characters, and halves of pairs in a command's arguments.
func TestJournal_KeepsEveryCodeUnit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	journal, err := agent.OpenJournal(path, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]agent.Entry{}
	for first := 0; first < 1<<16; first += 256 {
		args, text := `{"body":"`, ""
		for unit := first; unit < first+256; unit++ {
			args += fmt.Sprintf(`\u%04x x`, unit)
			if !utf16.IsSurrogate(rune(unit)) { // Go's own texts hold none
				text += string(rune(unit))
			}
		}
		e := agent.Entry{Command: protocol.Command{DeviceID: "d", ID: fmt.Sprintf("c%d", first), Type: text,
			Args: json.RawMessage(args + `"}`)},
			Stage: agent.Done, Result: protocol.Failed, Outcome: text, At: 1}
		if err := journal.Write(e); err != nil {
			t.Fatal(err)
		}
		want[e.Command.ID] = e
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := agent.LoadJournal(path)
	if err != nil || again.Skipped() != 0 {
		t.Fatalf("%v, %d lines were damaged", err, again.Skipped())
	}
	for id, e := range want {
		if got, _ := again.Entry(id); !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %+v, want %+v", id, got, e)
		}
	}
}
