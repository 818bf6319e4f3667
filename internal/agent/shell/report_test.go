package shell_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/shell"
)

// words are what tools write, by the tool with its arguments.
type words struct {
	outputs map[string]string
	calls   []string
}

// Run implements shell.Runner.
func (w *words) Run(_ context.Context, tool string, args ...string) (string, error) {
	call := strings.Join(append([]string{tool}, args...), " ")
	w.calls = append(w.calls, call)
	return w.outputs[call], nil
}

func TestReport_LocationKeepsItsOwnTime(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/uptime"), []byte("93784.50 1.00\n"), 0o600); err != nil { // 1d2h3m4.5s
		t.Fatal(err)
	}
	for text, want := range map[string]time.Duration{ // its age
		"Location[gps 52.5,13.3 hAcc=12.0 et=+1d1h3m4s500ms alt=34.0]":                                          time.Hour,
		"Location[gps 52.5,13.3 acc=5 et=+3m4s500ms]\nLocation[network 52.6,13.4 hAcc=900.0 et=+1d2h3m3s500ms]": time.Second,
		"Location[gps 52.5,13.3 hAcc=12.0 et=?!?]":                                                              -1,
		"Location[gps 52.5,13.3 hAcc=12.0]":                                                                     -1,
	} {
		t.Run(text, func(t *testing.T) {
			d := shell.Device{Tools: &words{outputs: map[string]string{"dumpsys location": text}}, Root: root, UID: 1000,
				Now: func() time.Time { return now }}
			report, err := d.Report(t.Context(), agent.Reporting{Location: true})
			switch {
			case err != nil:
				t.Errorf("%s: %v", text, err)
			case report.Location == nil && want >= 0 || report.Location != nil && want < 0:
				t.Errorf("%s: %+v", text, report.Location)
			case report.Location != nil && now.Sub(time.UnixMilli(report.Location.At)) != want:
				t.Errorf("%s: %s old, want %s", text, now.Sub(time.UnixMilli(report.Location.At)), want)
			}
		})
	}
}

func TestDevice_AsksForTheAPILevelOnce(t *testing.T) {
	t.Parallel()
	tools := &words{outputs: map[string]string{"getprop ro.build.version.sdk": "34\n"}}
	d := shell.Device{Tools: tools, UID: 1000, Now: time.Now}
	for range 3 {
		if _, err := d.Capabilities(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Do(t.Context(),
			agent.Action{Type: agent.ShowMessage, CommandID: "c", Args: json.RawMessage(`{"title":"t","body":"b"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	started := 0
	for _, call := range tools.calls {
		if strings.HasPrefix(call, "getprop") {
			started++
		}
	}
	if started != 1 {
		t.Errorf("getprop was started %d times", started)
	}
}

// Wi-Fi that airplane mode has switched off is off, and Wi-Fi that is on in spite of it is on.
func TestRead_WifiInAirplaneMode(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"0": "DISABLED", "1": "ENABLED", "2": "ENABLED", "3": "DISABLED"} {
		d := shell.Device{Root: t.TempDir(), UID: 1000, Tools: &words{outputs: map[string]string{"getprop ro.build.version.sdk": "30",
			"settings get global wifi_on": value, "dumpsys user": "UserInfo{0:Owner:c13}\n Effective restrictions:\n  none\n"}}}
		if got, err := d.Read(t.Context(), "WIFI_STATE"); err != nil || got != want {
			t.Errorf("wifi_on %s is %s, %v; want %s", value, got, err, want)
		}
	}
}
