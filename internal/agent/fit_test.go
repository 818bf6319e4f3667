package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// crowded is a device with many apps, whose service takes no body that is too large, and
// no report where it refuses reports.
type crowded struct {
	*interrupted
	refuses  bool
	apps     int
	more     string // in the report
	fix      *protocol.Location
	refused  int
	requests []protocol.CheckinRequest // that were taken
}

func newCrowded(t *testing.T, kind string) *crowded {
	t.Helper()
	w := newCommandWorld(t, vectorKey(t, "device"), kind, "NEW", "intime,answers,does")
	return &crowded{apps: 1200, interrupted: &interrupted{commandWorld: w, end: func() {}}}
}

// Report implements agent.Device.
func (d *crowded) Report(context.Context, agent.Reporting) (agent.Report, error) {
	apps := make([]object, d.apps)
	for i := range apps {
		apps[i] = object{"packageName": fmt.Sprintf("com.example.%s%d", strings.Repeat("x", 210), i), "versionCode": i}
	}
	text, err := json.Marshal(object{"batteryLevel": 80, "applications": apps, "more": d.more})
	return agent.Report{Values: text, Location: d.fix}, err
}

// RoundTrip implements http.RoundTripper.
func (d *crowded) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var request protocol.CheckinRequest
	_ = json.Unmarshal(body, &request)
	if len(body) > protocol.MaxBody || d.refuses && request.Status != nil {
		d.refused++
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"error": "malformed"}`))}, nil
	}
	d.requests = append(d.requests, request)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return d.commandWorld.RoundTrip(r)
}

// checkIn has an agent check in, and returns its last word about the command and the
// report that the service has.
func (d *crowded) checkIn() (word string, values []byte) {
	d.t.Helper()
	a := d.agentFor(d, d)
	defer d.close(a)
	if _, err := a.Once(d.t.Context()); err != nil {
		d.t.Error(err)
	}
	for _, request := range d.requests {
		for _, ack := range request.Acks {
			word = string(ack.State) + " " + ack.Outcome
		}
		if request.Status != nil {
			values = request.Status.Values
		}
	}
	return word, values
}

// A report that is larger than a check-in may be has fewer apps, and says so.
func TestReport_TooManyApps(t *testing.T) {
	t.Parallel()
	d := newCrowded(t, "STATUS_REPORT")
	word, text := d.checkIn()
	var values struct {
		Applications []object
		AgentErrors  []string
	}
	if err := json.Unmarshal(text, &values); err != nil || word != "DONE status reported" {
		t.Fatalf("the service has %q: %v", word, err)
	}
	if n := len(values.Applications); n < 800 || n >= 1200 {
		t.Errorf("%d of 1200 apps are reported", n)
	}
	want := fmt.Sprintf("the report lists %d of 1200 apps: a check-in has no room for more", len(values.Applications))
	if len(values.AgentErrors) != 1 || values.AgentErrors[0] != want {
		t.Errorf("the report has the errors %q, want %q", values.AgentErrors, want)
	}
}

// A report that is too large without its apps goes without all of them, or not at all.
func TestReport_TooLargeWithoutApps(t *testing.T) {
	t.Parallel()
	d := newCrowded(t, "STATUS_REPORT")
	d.apps, d.more = 3, strings.Repeat("x", protocol.MaxBody)
	d.write("applied.json", object{})
	if word, text := d.checkIn(); word != "FAILED the service does not take the report" || text != nil || d.refused > 0 {
		t.Errorf("the service has %q and %d bytes, and refused %d check-ins", word, len(text), d.refused)
	}
}

// A report that has room has every app, and no error.
func TestReport_FewApps(t *testing.T) {
	t.Parallel()
	d := newCrowded(t, "STATUS_REPORT")
	d.apps = 3
	if _, text := d.checkIn(); strings.Count(string(text), "com.example.") != 3 || strings.Contains(string(text), "agentErrors") {
		t.Errorf("the service has %s", text)
	}
}

// Commands that are done beside a report which the service does not take are done nevertheless.
func TestReport_RefusedBesideOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, stage, want string }{{"LAUNCH_APP", "DONE", "DONE did"}, {"LAUNCH_APP", "FAILED", "FAILED no"},
		{"STATUS_REPORT", "FAILED", "FAILED no"}, {"STATUS_REPORT", "DONE", "FAILED the service does not take the report"}} {
		d := newCrowded(t, test.kind)
		d.commandWorld = newCommandWorld(t, d.key, test.kind, test.stage, "intime,answers,does")
		d.refuses, d.apps = true, 3
		d.edit("applied.json", object{"reported": false})
		if word, _ := d.checkIn(); word != test.want {
			t.Errorf("%s %s: the service has %q, want %q", test.kind, test.stage, word, test.want)
		}
	}
}

// A check-in that is refused for its form goes without the report: the device stays
// managed, and does not send the report again.
func TestReport_RefusedAsMalformed(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"LAUNCH_APP": "DONE ", "STATUS_REPORT": "FAILED the service does not take the report"} {
		d := newCrowded(t, kind)
		d.refuses = true
		d.write("applied.json", object{"policy": protocol.PolicyRef{ID: "p1", Version: 1}, "wanted": d.settings, "bootId": "boot-1",
			"settings": []protocol.SettingReport{{ID: "CAMERA", State: protocol.SettingFailed, Detail: "no"}},
			"checkAt":  d.now.UnixMilli() + 1000})
		if word, _ := d.checkIn(); word != want {
			t.Errorf("%s: the service has %q, want %q", kind, word, want)
		}
		if policy := d.requests[0].Policy; policy == nil || policy.Settings[0] != (protocol.SettingReport{ID: "CAMERA",
			State: protocol.SettingFailed}) {
			t.Errorf("%s: the service has the policy %+v", kind, policy)
		}
		d.over, d.refused = true, 0
		if d.checkIn(); d.refused > 0 {
			t.Errorf("%s: the report was sent again", kind)
		}
	}
}

// Many words about commands are told in several check-ins.
func TestAcks_ManyInSeveralCheckIns(t *testing.T) {
	t.Parallel()
	d := newCrowded(t, "LAUNCH_APP")
	d.over = true
	journal, err := agent.OpenJournal(d.dir+"/journal", d.now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		e := agent.Entry{Command: protocol.Command{ID: fmt.Sprint("c", i), Type: "LAUNCH_APP"}, Stage: agent.Done, Result: protocol.Failed,
			Outcome: strings.Repeat("<", 1000)}
		if err := journal.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	d.checkIn()
	told := map[string]bool{}
	for _, request := range d.requests {
		for _, ack := range request.Acks {
			told[ack.CommandID] = true
		}
	}
	if len(told) != 250 {
		t.Errorf("%d of 250 words were told", len(told))
	}
}
