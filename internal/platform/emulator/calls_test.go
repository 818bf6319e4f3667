package emulator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/platform/emulator"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		device := r.device(emulator.Enrolment{})
		start := time.Now()
		time.Sleep(time.Second)
		r.fault(emulator.Fault{Method: "devices.issueCommand", Status: 503})
		_, _ = r.management.Enterprises.Devices.IssueCommand(device, &am.Command{Type: "LOCK"}).Do()
		_, _ = r.management.Enterprises.Devices.Patch(device, &am.Device{PolicyName: "q"}).UpdateMask("policyName").Do()
		r.get(device)
		r.raw("POST", "/v1/"+device+":issueCommand?access_token=secret", "not JSON")
		_, text := r.raw("GET", "/emulator/v1/calls", "")
		if strings.Contains(text, "secret") {
			t.Error("the calls tell an access token")
		}
		var got struct {
			Calls []struct {
				Method, Path, Query string
				Body                map[string]any
				At                  time.Time
				Status              int
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		var methods []string
		for _, c := range got.Calls {
			methods = append(methods, c.Method)
		}
		if all := strings.Join(methods, " "); all != "signupUrls.create create policies.patch enrollmentTokens.create devices.issueCommand devices.patch devices.get devices.issueCommand" {
			t.Fatalf("called %s", all)
		}
		issue, patch, last := got.Calls[4], got.Calls[5], got.Calls[7]
		if issue.Path != "/v1/"+device+":issueCommand" || issue.Body["type"] != "LOCK" || issue.Status != 503 || !issue.At.Equal(start.Add(time.Second)) {
			t.Errorf("logged %+v", issue)
		}
		if patch.Body["policyName"] != "q" || !strings.Contains(patch.Query, "updateMask=policyName") || patch.Status != 400 {
			t.Errorf("logged %+v", patch)
		}
		if last.Body != nil || last.Status != 400 {
			t.Errorf("logged %+v", last)
		}
		if got := r.control("GET", "/calls?since=5&method=devices.get", "")["calls"].([]any); len(got) != 1 {
			t.Errorf("filtered to %v", got)
		}
		if code, _ := r.raw("GET", "/emulator/v1/calls?since=x", ""); code != 400 {
			t.Errorf("a bad number is %d", code)
		}
		r.control("DELETE", "/calls", "")
		if got := r.emulator.Calls(0, ""); len(got) != 0 {
			t.Errorf("%d calls remain", len(got))
		}
	})
}

// The last hundred thousand calls are kept, in order.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a hundred thousand calls")
	}
	virtual(t, func(t *testing.T, r *rig) {
		const extra = 150
		for i := range 100_000 + extra {
			r.raw("GET", fmt.Sprintf("/v1/enterprises/E/devices/%d", i), "")
		}
		calls := r.emulator.Calls(0, "")
		if len(calls) != 100_000 || calls[0].Path != fmt.Sprintf("/v1/enterprises/E/devices/%d", extra) {
			t.Fatalf("%d calls, from %s", len(calls), calls[0].Path)
		}
		for i, c := range calls {
			if c.Seq != int64(i+extra) || c.Path != fmt.Sprintf("/v1/enterprises/E/devices/%d", i+extra) || c.Status != 403 {
				t.Fatalf("call %d is %+v", i, c)
			}
		}
	})
}
