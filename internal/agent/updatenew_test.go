package agent_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/test/expect"
)

// installed is an installer beside a version that runs.
type installed struct {
	noInstaller
	code int64
}

func (i installed) Code() int64 { return i.code }

// What an agent does at its start with the update that the one before it noted.
func TestNew_NotedUpdate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		stage   string
		code    int64  // that runs now; the update is to 2
		want    string // the stage afterwards; empty: the update is forgotten
		program bool   // what was downloaded is kept
	}{
		{"wanted", "wanted", 1, "wanted", true},
		{"wanted, and installed in another way", "wanted", 2, "", false},
		{"wanted, and a newer one is installed", "wanted", 3, "", false},
		{"verified", "verified", 1, "verified", true},
		{"verified, and installed in another way", "verified", 2, "", false},
		{"began, and the old version runs", "began", 1, "wanted", true},
		{"began, and the new version runs", "began", 2, "began", true},
		{"over", "over", 2, "over", true},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		noted, program := filepath.Join(w.dir, "update.json"), filepath.Join(w.dir, "update")
		for path, text := range map[string]string{noted: `{"want":{"code":2,"version":"2"},"stage":"` + c.stage + `"}`,
			program: "program"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Installer: installed{code: c.code},
			Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		var after struct{ Stage string }
		text, err := os.ReadFile(noted)
		if err == nil {
			err = json.Unmarshal(text, &after)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, gone := os.Stat(program)
		expect.Equal(t, c.name, expect.Values{"stage": {after.Stage, c.want}, "program kept": {gone == nil, c.program}})
	}
}

// Only a version that began goes back: what else is noted of an update stays as it is.
func TestWentBack(t *testing.T) {
	t.Parallel()
	for stage, want := range map[string]string{"wanted": "", "verified": "", "began": "went_back", "over": "", "": ""} {
		dir := t.TempDir()
		noted := filepath.Join(dir, "update.json")
		if stage != "" {
			if err := os.WriteFile(noted, []byte(`{"want":{"code":2},"stage":"`+stage+`"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		failed := agent.WentBack(dir, "no contact", time.Now())
		var after struct{ State string }
		text, err := os.ReadFile(noted)
		if err == nil {
			err = json.Unmarshal(text, &after)
		}
		if stage != "" && err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, "of "+stage, expect.Values{"state": {after.State, want}, "noted": {err == nil, stage != ""},
			"fails": {failed != nil, stage == ""}})
	}
}
