package agent_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// careful is an installer that refuses files, at the check with a number, or cannot install.
type careful struct {
	installed
	checks, refuses int
	cannot          error
}

// Check implements agent.Installer.
func (c *careful) Check(string, protocol.Update) error {
	if c.checks++; c.checks == c.refuses {
		return errors.New("another signer")
	}
	return nil
}

// Install implements agent.Installer.
func (c *careful) Install(context.Context, string, protocol.Update) error { return c.cannot }

// What becomes of an update whose file is wrong, or that cannot be installed. What fails is tried three times in all.
func TestUpdate_ThatFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		installer *careful
		wrong     bool // the service sends another file
		damaged   bool // the file changes before it is installed
		rounds    int  // that the agent checks in
		want      noted
	}{
		"refused":                  {&careful{refuses: 1}, false, false, 1, noted{"over", "failed", "another signer", 0}},
		"refused as it begins":     {&careful{refuses: 2}, false, false, 1, noted{"over", "failed", "another signer", 0}},
		"it cannot be installed":   {&careful{cannot: errAway}, false, false, 1, noted{"wanted", "", "", 1}},
		"nor a second time":        {&careful{cannot: errAway}, false, false, 2, noted{"wanted", "", "", 2}},
		"nor a third time":         {&careful{cannot: errAway}, false, false, 3, noted{"over", "failed", "connection refused", 0}},
		"installed at once":        {&careful{}, false, false, 1, noted{"began", "", "", 0}},
		"another file":             {&careful{}, true, false, 1, noted{"wanted", "", "", 1}},
		"another file three times": {&careful{}, true, false, 3, noted{"over", "failed", "", 0}},
		"a damaged file":           {&careful{}, false, true, 1, noted{"wanted", "", "", 1}},
	} {
		w := newUpdateWorld(t)
		test.installer.code = 1
		sends := w.ranges
		w.ranges = func(r *http.Request, from, to int64) (*http.Response, error) {
			response, err := sends(r, from, to)
			if err == nil && test.wrong {
				response.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", int(min(to+1, int64(len(newProgram)))-from))))
			}
			return response, err
		}
		a := w.agentWith(&damages{test.installer, test.damaged, filepath.Join(w.dir, "update")})
		var err error
		for range test.rounds {
			_, err = a.Once(t.Context())
		}
		w.close(a)
		got := w.noted()
		if test.wrong {
			got.Detail = ""
		}
		expect.Equal(t, name, expect.Values{"error": {err, error(nil)}, "noted": {got, test.want}})
	}
}

// damages is an installer whose file changes once it was checked for the first time.
type damages struct {
	*careful
	does bool
	path string
}

// Check implements agent.Installer.
func (d *damages) Check(path string, u protocol.Update) error {
	err := d.careful.Check(path, u)
	if d.does {
		return errors.Join(err, os.WriteFile(d.path, []byte("damaged"), 0o600))
	}
	return err
}

// A file that is wrong is asked for three times, each after a check-in; what does not come is asked for a few times.
func TestUpdate_AsksAgain(t *testing.T) {
	for wrong, want := range map[bool][2]int{true: {9, 9}, false: {4, 6}} {
		synctest.Test(t, func(t *testing.T) {
			w := newUpdateWorld(t)
			asks := 0
			sends := w.ranges
			w.ranges = func(r *http.Request, from, to int64) (*http.Response, error) {
				if asks++; !wrong {
					return nil, errAway
				}
				response, err := sends(r, from, to)
				response.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", int(min(to+1, int64(len(newProgram)))-from))))
				return response, err
			}
			a := w.agentWith(installed{code: 1})
			defer w.close(a)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if err := a.Run(ctx); asks < want[0] || asks > want[1] {
				t.Errorf("wrong: %t: it asks %d times: %v", wrong, asks, err)
			}
		})
	}
}

// Nothing is installed until a restart that was ordered has come.
func TestUpdate_WaitsForARestart(t *testing.T) {
	t.Parallel()
	w := newUpdateWorld(t)
	w.commandWorld = newCommandWorld(t, w.key, "REBOOT", "ACCEPTED", "intime,answers,does")
	d := &interrupted{commandWorld: w.commandWorld, end: func() {}}
	w.damage("update", string(newProgram))
	w.write("update.json", object{"stage": "verified", "want": protocol.Update{Version: "2", Code: 2, File: programFile()}})
	installs := &restarts{}
	a, err := agent.New(agent.Options{Dir: w.dir, Device: d, Now: w.clock, Log: discard(), Installer: installs,
		Client: &http.Client{Transport: w}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close(a)
	for _, step := range []struct {
		boot string
		want int
	}{{"boot-1", 0}, {"boot-1", 0}, {"boot-2", 1}} {
		d.boot = step.boot
		_, err := a.Once(t.Context())
		if len(installs.installed) != step.want || errors.Is(err, agent.ErrRestart) != (step.want > 0) {
			t.Errorf("after the start %s: installed: %q, %v", step.boot, installs.installed, err)
		}
		d.now = d.now.Add(2 * time.Minute)
	}
}

// What the service did not confirm of an update that is over is reported again; what it confirmed of one that is not over is no end.
func TestUpdate_Reported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		stage    string
		confirms bool
		told     bool
		reports  int // in two check-ins
	}{{"over", true, true, 1}, {"over", false, false, 2}, {"verified", true, false, 2}} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		w.commands = nil
		w.write("update.json", object{"stage": test.stage, "state": "failed", "want": protocol.Update{Version: "2", Code: 2}})
		var last *protocol.UpdateReport
		reports := 0
		hears := w.heard(func(r protocol.CheckinRequest) {
			if last = r.Update; last != nil {
				reports++
			}
		})
		a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Now: w.clock, Log: discard(), Installer: installed{code: 1},
			Client: &http.Client{Transport: changed(hears, func(answer *protocol.CheckinResponse, _ int64) {
				if test.confirms {
					answer.UpdateTold = last
				}
			})}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := a.Once(t.Context()); err != nil {
				t.Error(err)
			}
		}
		w.close(a)
		told := strings.Contains(w.kept("update.json"), `"told":true`)
		expect.Equal(t, test.stage, expect.Values{"told": {told, test.told}, "reports": {reports, test.reports}})
	}
}
