package agentserver_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// report has the device check in with a body of its own making, and returns the
// service's answer.
func (w *world) report(t *testing.T, p *phone, sequence int64, body map[string]any) protocol.CheckinResponse {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	answer := w.forge(t, p, sequence, text, false)
	var response protocol.CheckinResponse
	if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &response) != nil {
		t.Fatalf("the check-in is answered %d %s", answer.Code, answer.Body)
	}
	return response
}

// status is a status report with a value and specifications.
func status(at time.Time, values, specifications map[string]any) map[string]any {
	return map[string]any{"status": map[string]any{"at": at.UnixMilli(), "values": values, "specifications": specifications}}
}

// members are the asset's status report.
func (p *phone) members() (members map[string]any) {
	p.world.t.Helper()
	if err := json.Unmarshal(p.asset().Device.StatusReport, &members); err != nil {
		p.world.t.Fatal(err)
	}
	return members
}

// Whatever a device names in its reports, what is stored of it does not grow
// with their number.
func TestCheckIn_StoredReportsAreBounded(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	serial := p.asset().Specifications["serialNumber"]
	size := func() int {
		text, err := json.Marshal(p.asset())
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	first := 0
	for n := range 20 {
		specifications, values := map[string]any{"serialNumber": "SN-OTHER"}, map[string]any{}
		for i := range 150 {
			specifications[fmt.Sprintf("k%d-%d", n, i)] = strings.Repeat("x", 1000)
			values[fmt.Sprintf("v%d-%d", n, i)] = strings.Repeat("x", 100)
		}
		body := status(time.Now(), values, specifications)
		body["capabilities"] = []string{"wipe", "wipe", "reboot", fmt.Sprintf("invented-%d", n)}
		w.report(t, p, int64(1_000_000+n), body)
		if n == 0 {
			first = size()
		}
	}
	if now := size(); now > first+1000 || now > 100<<10 {
		t.Errorf("the asset has %d bytes after the first report and %d after twenty", first, now)
	}
	if got := p.asset().Specifications; got["serialNumber"] != serial || got["model"] == "" || got["k19-0"] == "" || got["k18-0"] != "" {
		t.Errorf("the specifications keep %d names, serialNumber %q, want those of the last report and %q", len(got),
			got["serialNumber"], serial)
	}
	if d, err := w.db.AgentDevice(t.Context(), p.agent.DeviceID()); err != nil || fmt.Sprint(d.Capabilities) != "[reboot wipe]" {
		t.Errorf("stored capabilities %v, %v, want [reboot wipe]", d.Capabilities, err)
	}
}

// What the service knows of a device's policy is not the device's to report
// under the same names, however they are written.
func TestCheckIn_OwnMembersOfTheStatusReport(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	failed := map[string]any{"id": w.policy.ID, "version": 1,
		"settings": []map[string]any{{"id": "CAMERA", "state": "failed", "detail": "no"}}}
	w.report(t, p, 1_000_000, map[string]any{"policy": failed})
	values := map[string]any{"policyCompliant": true, "policyCompliant\u200b": "hacked", "nonComplianceDetails\u0000": []string{},
		"reportedAt": "2000-01-01T00:00:00Z", "\u0007reportedAt": "2000", "batteryLevel": 7}
	w.report(t, p, 1_000_001, status(time.Now(), values, nil))
	got := p.members()
	details, _ := got["nonComplianceDetails"].([]any)
	if got["policyCompliant"] != false || len(details) != 1 || got["batteryLevel"] != 7.0 ||
		strings.HasPrefix(fmt.Sprint(got["reportedAt"]), "2000") {
		t.Errorf("the report reads %v, want the failed setting, and the battery at 7", got)
	}
	w.report(t, p, 1_000_002, status(time.UnixMilli(0), values, nil))
	if at := fmt.Sprint(p.members()["reportedAt"]); strings.HasPrefix(at, "1970") {
		t.Errorf("a report without a time is of %s", at)
	}
}

// A place is kept while it is asked for, with a time that can be.
func TestCheckIn_LocationOnlyWhenAsked(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	sequence := int64(1_000_000)
	place := func(at int64) *asset.Location {
		t.Helper()
		sequence++
		w.report(t, p, sequence, map[string]any{"location": map[string]any{"latitude": 1.5, "longitude": 2.5,
			"accuracyMeters": 3, "at": at}})
		return p.asset().Device.Location
	}
	now := time.Now().UnixMilli()
	if l := place(now); l != nil {
		t.Errorf("a place that was not asked for is kept: %+v", l)
	}
	p.send(command.LocationUpdate, nil)
	for _, at := range []int64{0, -1, 1} {
		if l := place(at); l != nil {
			t.Errorf("a place of the time %d is kept: %+v", at, l)
		}
	}
	if l := place(now); l == nil || l.Latitude != 1.5 {
		t.Errorf("the place that was asked for is %+v", l)
	}
}

// A location command succeeds only with a place that can be kept.
func TestCheckIn_LocationCommandWithoutAPlace(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	now := time.Now()
	at := func(ms int64) map[string]any {
		return map[string]any{"latitude": 1.5, "longitude": 2.5, "accuracyMeters": 3, "at": ms}
	}
	far := at(now.UnixMilli())
	far["latitude"] = 91
	for n, test := range []struct {
		location any
		state    command.State
		outcome  string
	}{
		{at(0), command.Failed, "impossible time"},
		{at(-1), command.Failed, "impossible time"},
		{at(now.Add(time.Hour).UnixMilli()), command.Failed, "impossible time"},
		{at(math.MaxInt64), command.Failed, "impossible time"},
		{far, command.Failed, "cannot be kept"},
		{nil, command.Failed, "no location"},
		{at(now.Add(5 * time.Minute).UnixMilli()), command.Succeeded, "found"}, // a clock that is not set right
	} {
		t.Run(test.outcome, func(t *testing.T) {
			p.send(command.LocationUpdate, nil)
			body := map[string]any{"acks": []map[string]any{{"commandId": p.latest().ID, "state": "DONE", "outcome": "found",
				"at": now.UnixMilli()}}}
			if test.location != nil {
				body["location"] = test.location
			}
			answer := w.report(t, p, int64(1_000_000+n), body)
			c, kept := p.latest(), p.asset().Device.Location
			if c.State != test.state || !strings.Contains(c.Outcome, test.outcome) || len(answer.Acked) != 1 ||
				(kept != nil) != (test.state == command.Succeeded) {
				t.Errorf("%v: %s %q, confirmed %v, place %+v; want %s %q", test.location, c.State, c.Outcome, answer.Acked, kept,
					test.state, test.outcome)
			}
			if kept != nil && kept.ReportedAt.After(time.Now()) {
				t.Errorf("the place is of %v, in the future", kept.ReportedAt)
			}
		})
	}
}

// A word that the service does not know ends nothing and is not confirmed.
func TestCheckIn_UnknownAcknowledgement(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.SyncPolicy, nil)
	id := p.latest().ID
	answer := w.report(t, p, 1_000_000, map[string]any{"acks": []map[string]any{{"commandId": id, "state": "RUNNING", "outcome": "50%"}}})
	if c := p.latest(); c.State != command.Sent || len(answer.Acked) != 0 {
		t.Errorf("the command is %s %q, confirmed %v; want SENT and nothing confirmed", c.State, c.Outcome, answer.Acked)
	}
	// A word from before the question, or without a time, is as old as the question.
	answer = w.report(t, p, 1_000_001,
		map[string]any{"acks": []map[string]any{{"commandId": id, "state": "DONE", "at": time.Now().Add(-time.Hour).UnixMilli()}}})
	if c := p.latest(); c.State != command.Succeeded || !c.FeedbackAt.Equal(c.CreatedAt) || len(answer.Acked) != 1 {
		t.Errorf("the command is %s, created %v, feedback %v; want SUCCESS and both equal", c.State, c.CreatedAt, c.FeedbackAt)
	}
	p.send(command.SyncPolicy, nil)
	w.report(t, p, 1_000_002, map[string]any{"acks": []map[string]any{{"commandId": p.latest().ID, "state": "DONE", "at": 0}}})
	if c := p.latest(); c.FeedbackAt.Before(c.CreatedAt) {
		t.Errorf("feedback without a time is of %v, want not before %v", c.FeedbackAt, c.CreatedAt)
	}
}

// Commands of one millisecond reach the device in the order in which they were
// sent.
func TestCheckIn_OrderWithinAMillisecond(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	at := time.Now()
	w.commands.Now = func() time.Time { return at }
	var want []string
	for n := range 12 {
		title := fmt.Sprint(n)
		p.send(command.NotificationMessage, command.MessageBody{Title: title, Body: "b"})
		want = append(want, title)
	}
	p.mustCheckIn()
	var got []string
	for _, m := range p.device.State().Shown {
		got = append(got, m.Title)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("shown in the order %v, want %v", got, want)
	}
}

// A command that the device cannot carry out is refused before anything is kept.
func TestExecute_MissingCapabilityLeavesNoEntry(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	w.report(t, p, 1_000_000, map[string]any{"capabilities": []string{"notify"}})
	_, err := w.commands.Execute(t.Context(), w.call, command.Request{Type: command.WipeCompanyData, AssetID: p.assetID})
	_, total, listed := w.db.History(t.Context(), w.company.ID, p.assetID, operation.PageRequest{Size: 1})
	if fault.CodeOf(err) != fault.Unsupported || total != 0 || listed != nil {
		t.Errorf("the wipe is answered %v and leaves %d entries, %v; want unsupported and none", err, total, listed)
	}
}
