package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// unreadable puts a folder in the place of a file of the agent.
func (w *commandWorld) unreadable(name string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
		w.t.Fatal(err)
	}
}

// An identity without a service that can be reached safely, a device, a command key or a key is lost.
func TestLoadConnection(t *testing.T) {
	t.Parallel()
	server := func(address string) object { return object{"server": address} }
	for name, test := range map[string]struct {
		change object
		want   error
	}{
		"sound":                 {object{}, nil},
		"at this machine":       {server("http://localhost:8080"), nil},
		"at its address":        {server("http://127.0.0.1"), nil},
		"at its other address":  {server("http://[::1]/"), nil},
		"not encrypted":         {server("http://muster.example"), agent.ErrLost},
		"not encrypted, nearby": {server("http://10.0.0.1"), agent.ErrLost},
		"of another scheme":     {server("ftp://localhost"), agent.ErrLost},
		"of no host":            {server("https://"), agent.ErrLost},
		"no address":            {server("https://muster.example:port"), agent.ErrLost},
		"without a service":     {server(""), agent.ErrLost},
		"without a device":      {object{"deviceId": ""}, agent.ErrLost},
		"without a command key": {object{"commandKeys": []any{}}, agent.ErrLost},
		"without a key":         {object{"key": []byte("none")}, agent.ErrLost},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		w.edit("identity.json", test.change)
		if _, err := agent.LoadConnection(w.dir); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// A file with a checksum is what was written, or damaged; one without was written by an agent before.
func TestLoadConnection_Checksum(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	text := w.kept("identity.json")
	sum := crc32.ChecksumIEEE([]byte(text))
	for name, test := range map[string]struct {
		sum  uint32
		want error
	}{"right": {sum, nil}, "wrong": {sum ^ 1, agent.ErrLost}} {
		summed := fmt.Sprintf(`%s,"checksum":"%08x"}`, strings.TrimSuffix(text, "}"), test.sum)
		if err := os.WriteFile(filepath.Join(w.dir, "identity.json"), []byte(summed), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.LoadConnection(w.dir); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if _, err := agent.LoadConnection(t.TempDir()); !errors.Is(err, agent.ErrNotEnrolled) || errors.Is(err, agent.ErrLost) {
		t.Errorf("without one: %v", err)
	}
}

// The latest time that the service has signed has passed, or that at which the agent was built, whichever is later.
func TestSignedTime(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	latest := time.UnixMilli(commandsNow)
	for _, built := range []time.Time{latest.Add(-time.Hour), latest, latest.Add(time.Hour)} {
		want := latest
		if built.After(latest) {
			want = built
		}
		if got := agent.SignedTime(w.dir, built)(); !got.Equal(want) {
			t.Errorf("built at %s: %s, want %s", built, got, want)
		}
		if got := agent.SignedTime(t.TempDir(), built)(); !got.Equal(built) {
			t.Errorf("built at %s, and not enrolled: %s", built, got)
		}
	}
}

// What a device was brought to is read as far as it is there: only what cannot be read at all is an error. An agent that begins
// with what is damaged says so, and applies the policy again.
func TestNew_WhatIsApplied(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*commandWorld)
		reads   bool
		version int
		says    troubles
	}{
		"it is there":   {func(*commandWorld) {}, true, 1, nil},
		"there is none": {func(w *commandWorld) { _ = os.Remove(filepath.Join(w.dir, "applied.json")) }, true, 0, nil},
		"it is damaged": {
			func(w *commandWorld) { w.write("applied.json", "damaged") }, true, 0, troubles{"applied policy was damaged"}},
		"it is a folder":     {func(w *commandWorld) { w.unreadable("applied.json") }, false, 0, nil},
		"a damaged journal":  {func(w *commandWorld) { w.damage("journal", "x\ny\n") }, true, 1, troubles{"2 lines were passed over"}},
		"an update's folder": {func(w *commandWorld) { w.unreadable("update.json") }, false, 1, nil},
		"a damaged update":   {func(w *commandWorld) { w.damage("update.json", "x") }, true, 1, nil},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		test.change(w)
		status, err := agent.ReadStatus(w.dir)
		expect.Equal(t, name, expect.Values{"status read": {err == nil, test.reads || test.version > 0},
			"version": {status.Policy.Version, test.version}})
		troubles, err := w.begin(test.reads)
		said := len(troubles) == len(test.says)
		for i, want := range test.says {
			said = said && strings.Contains(troubles[i], want)
		}
		expect.Equal(t, name, expect.Values{"begins": {err == nil, test.reads}, "troubles": {said, true},
			"takes back all": {slices.Contains(w.trace, "set:SMS="), name == "it is damaged"},
			"applies":        {slices.Contains(w.trace, "set:CAMERA=BLOCK"), test.version == 0 && test.reads}})
	}
}

// troubles are what a report says of the agent's own state.
type troubles []string

// damage writes what no agent writes.
func (w *commandWorld) damage(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// begin has an agent begin and, if that is not expected to fail, check in, and returns the troubles that it reports.
func (w *commandWorld) begin(begins bool) (said troubles, err error) {
	a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Now: w.clock, Log: discard(), Client: &http.Client{
		Transport: w.heard(func(r protocol.CheckinRequest) {
			var values struct{ AgentErrors []string }
			if r.Status != nil && json.Unmarshal(r.Status.Values, &values) == nil {
				said = append(said, values.AgentErrors...)
			}
		})}})
	if err != nil {
		return nil, err
	}
	defer w.close(a)
	if begins {
		_, err = a.Once(w.t.Context())
	}
	return slices.Compact(said), err
}
