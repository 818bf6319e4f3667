package emulator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/emulator"
)

func TestCalls_AreListed(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
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
		if all := strings.Join(methods,
			" "); all !=
			"signupUrls.create create policies.patch enrollmentTokens.create devices.issueCommand devices.patch "+
				"devices.get devices.issueCommand" {
			t.Fatalf("called %s", all)
		}
		issue, patch, last := got.Calls[4], got.Calls[5], got.Calls[7]
		if issue.Path != "/v1/"+device+":issueCommand" || issue.Body["type"] != "LOCK" || issue.Status != 503 ||
			!issue.At.Equal(start.Add(time.Second)) {
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

// The last hundred thousand calls are kept, in order; their bodies as long as
// they fit.
func TestCalls_AreBounded(t *testing.T) {
	t.Parallel()
	e, err := emulator.New(emulator.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	const extra = 150
	body := json.RawMessage(`"` + strings.Repeat("x", 8<<10) + `"`)
	for i := range 100_000 + extra {
		e.LogCall(emulator.Call{Path: fmt.Sprint(i), Body: body})
	}
	calls := e.Calls(0, "")
	if len(calls) != 100_000 {
		t.Fatalf("%d calls", len(calls))
	}
	bytes, bare := 0, 0
	for i, c := range calls {
		if c.Seq != int64(i+extra) || c.Path != fmt.Sprint(i+extra) {
			t.Fatalf("call %d is %+v", i, c)
		}
		if bytes += len(c.Body); c.Body == nil {
			bare++
		}
	}
	if bytes > 256<<20 || bare == 0 || calls[len(calls)-1].Body == nil {
		t.Errorf("%d bytes of bodies are kept, %d calls are without", bytes, bare)
	}
}

// Every method that the emulator has is the vendor's, and a fault can name it as
// the log of calls does.
func TestMethods_AreTheVendors(t *testing.T) {
	t.Parallel()
	e, err := emulator.New(emulator.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, read := range []func() (*discovery.Document, error){discovery.Load, discovery.LoadMessaging, discovery.LoadPubSub} {
		d, err := read()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range e.MethodIDs()[d.Name] {
			total++
			if !slices.ContainsFunc(d.Methods(), func(m *discovery.Method) bool { return m.ID == id }) {
				t.Errorf("the vendor has no method %s", id)
			}
			if err := e.AddFault(emulator.Fault{Method: id}); err != nil {
				t.Error(err)
			}
			short := strings.TrimPrefix(strings.TrimPrefix(id, "androidmanagement."), "enterprises.")
			if err := e.AddFault(emulator.Fault{Method: short}); err != nil && d.Name == "androidmanagement" {
				t.Error(err)
			}
		}
	}
	if total < 30 {
		t.Errorf("only %d methods", total)
	}
}
