package agent_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
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

// programFile is the file of newProgram.
func programFile() protocol.File {
	sum := sha256.Sum256(newProgram)
	return protocol.File{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(newProgram))}
}

// noted is what the agent notes of an update.
type noted struct {
	Stage, State, Detail string
	Tries                int
}

func (w *commandWorld) noted() (n noted) {
	w.t.Helper()
	if text := w.kept("update.json"); text != "" {
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			w.t.Fatal(err)
		}
	}
	return n
}

// An update is taken if it is for this device and this request, is higher than what runs, and names a file that can be one.
func TestUpdate_Offered(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	for name, test := range map[string]struct {
		change func(*protocol.Update)
		takes  bool
	}{
		"as it should be":      {func(*protocol.Update) {}, true},
		"another device's":     {func(u *protocol.Update) { u.DeviceID = "d2" }, false},
		"of another request":   {func(u *protocol.Update) { u.Number++ }, false},
		"for another package":  {func(u *protocol.Update) { u.Package = "other" }, false},
		"what runs":            {func(u *protocol.Update) { u.Code = 1 }, false},
		"what ran before":      {func(u *protocol.Update) { u.Code = 0 }, false},
		"much higher":          {func(u *protocol.Update) { u.Code = 99 }, true},
		"of no file":           {func(u *protocol.Update) { u.File.SHA256 = "" }, false},
		"of a file elsewhere":  {func(u *protocol.Update) { u.File.SHA256 = "../" + u.File.SHA256[3:] }, false},
		"of a longer name":     {func(u *protocol.Update) { u.File.SHA256 += "0" }, false},
		"of an empty file":     {func(u *protocol.Update) { u.File.Size = 0 }, false},
		"of a small file":      {func(u *protocol.Update) { u.File.Size = 1 }, true},
		"of the largest file":  {func(u *protocol.Update) { u.File.Size = most }, true},
		"of a file too large":  {func(u *protocol.Update) { u.File.Size = most + 1 }, false},
		"of a file of no size": {func(u *protocol.Update) { u.File.Size = -1 }, false},
	} {
		w := newUpdateWorld(t)
		asked := 0
		w.change, w.ranges = test.change, func(*http.Request, int64, int64) (*http.Response, error) {
			asked++
			return nil, errAway
		}
		a := w.agentWith(installed{code: 1})
		_, err := a.Once(t.Context())
		w.close(a)
		expect.Equal(t, name, expect.Values{"error": {err, error(nil)}, "asks for the file": {asked > 0, test.takes},
			"noted": {w.noted().Stage == "wanted", test.takes}})
	}
}

// An agent that installs nothing, a companion and a version on trial take no update.
func TestUpdate_OfferedToOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		role      string
		installer agent.Installer
		trial     bool
		takes     bool
	}{{"manager", installed{code: 1}, false, true}, {"manager", nil, false, false}, {"companion", installed{code: 1}, false, false},
		{"manager", installed{code: 1}, true, false}} {
		w := newUpdateWorld(t)
		w.edit("identity.json", object{"role": test.role})
		built := false
		a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Now: w.clock, Log: discard(), Installer: test.installer, Trial: test.trial,
			Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				text, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				r.Body = io.NopCloser(strings.NewReader(string(text)))
				built = built || strings.Contains(string(text), `"build"`)
				return w.RoundTrip(r)
			})}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Once(t.Context())
		w.close(a)
		says := test.installer != nil && test.role == "manager"
		expect.Equal(t, test.role, expect.Values{"error": {err, error(nil)}, "noted": {w.noted().Stage != "", test.takes},
			"says what runs": {built, says}})
	}
}

// Only a version that is installed, by its note, is in touch.
func TestProved(t *testing.T) {
	t.Parallel()
	for note, want := range map[string]bool{`{"stage":"over","state":"installed"}`: true, `{"stage":"over","state":"failed"}`: false,
		`{"stage":"began","state":"installed"}`: false, `{}`: false, `x`: false} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "update.json"), []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := agent.Proved(dir); got != want {
			t.Errorf("%s: %t", note, got)
		}
	}
}

// An update that is over is reported until the service has that, and tried again after a day, or at once if another is offered.
func TestUpdate_IsOver(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		state string
		left  time.Duration // of its pause
		code  int64         // of what was tried; the offer is 2
		file  protocol.File
		again bool
	}{
		"failed":              {"failed", time.Hour, 2, programFile(), false},
		"failed a day ago":    {"failed", 0, 2, programFile(), true},
		"failed just now":     {"failed", day, 2, programFile(), false},
		"failed by no clock":  {"failed", day + time.Millisecond, 2, programFile(), true},
		"went back":           {"went_back", -day, 2, programFile(), false},
		"installed":           {"installed", time.Hour, 2, programFile(), true},
		"another code failed": {"failed", time.Hour, 3, programFile(), true},
		"another file failed": {"failed", time.Hour, 2, protocol.File{SHA256: programFile().SHA256, Size: 1}, true},
	} {
		w := newUpdateWorld(t)
		asked := false
		w.ranges = func(*http.Request, int64, int64) (*http.Response, error) {
			asked = true
			return nil, errAway
		}
		w.write("update.json", object{"stage": "over", "state": test.state, "told": true, "until": commandsNow + test.left.Milliseconds(),
			"want": protocol.Update{Version: "2", Code: test.code, File: test.file}})
		a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Now: w.clock, Log: discard(), Installer: installed{code: 1},
			Client: &http.Client{Transport: w}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Once(t.Context())
		if w.close(a); err != nil || asked != test.again {
			t.Errorf("%s: it asks for the file again: %t, %v", name, asked, err)
		}
	}
}
