package emulator_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/googleapi"

	"github.com/musterhq/muster/internal/emulator"
)

// A fault without a status is 503, or the status of its reason. Each applies to one call.
func TestFault_Status(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for _, test := range []struct {
			fault        string // the members beside the method
			code         int
			status, text string // both are in the body
		}{
			{`,"status":503`, 503, "UNAVAILABLE", "currently unavailable"},
			{``, 503, "UNAVAILABLE", "currently unavailable"},
			{`,"status":429`, 429, "RESOURCE_EXHAUSTED", "Quota exceeded"},
			{`,"status":409`, 409, "ABORTED", ""},
			{`,"status":401`, 401, "UNAUTHENTICATED", ""},
			{`,"status":400,"reason":"FAILED_PRECONDITION"`, 400, "FAILED_PRECONDITION", ""},
			{`,"reason":"PERMISSION_DENIED"`, 403, "PERMISSION_DENIED", "permission"},
			{`,"status":500,"reason":"Requested entity was not found."`, 500, "INTERNAL", "Requested entity was not found."},
			{`,"status":403,"reason":"SERVICE_DISABLED"`, 403, "PERMISSION_DENIED", `"reason": "SERVICE_DISABLED"`},
			{`,"status":504`, 504, "DEADLINE_EXCEEDED", ""},
		} {
			fault := `{"method":"get"` + test.fault + `}`
			r.control("POST", "/faults", fault)
			code, body := r.raw("GET", "/v1/"+r.enterprise, "")
			if code != test.code || !strings.Contains(body, `"status": "`+test.status+`"`) || !strings.Contains(body, test.text) {
				t.Errorf("%s answered %d %s, want %d with the status %s and the text %q", fault, code, body, test.code, test.status,
					test.text)
			}
			if code, _ := r.raw("GET", "/v1/"+r.enterprise, ""); code != 200 {
				t.Errorf("%s: the second call is %d, want 200", fault, code)
			}
		}
	})
}

func TestFault_Selection(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		issue := func() int {
			code, _ := r.raw("POST", "/v1/"+device+":issueCommand", `{"type":"LOCK"}`)
			return code
		}
		// Faults of one method apply in order, each to as many calls as Times, at least one.
		r.fault(emulator.Fault{Method: "devices.issueCommand", Status: 503, Times: 2})
		r.fault(emulator.Fault{Method: "androidmanagement.enterprises.devices.issueCommand", Status: 429})
		r.fault(emulator.Fault{Method: "enterprises.devices.issueCommand", Match: "another", Status: 400})
		r.get(device)
		for i, want := range []int{503, 503, 429, 200} {
			if got := issue(); got != want {
				t.Errorf("call %d is %d, want %d", i, got, want)
			}
		}
		if len(r.emulator.Faults()) != 1 {
			t.Error("the fault for another device was used up")
		}
		r.control("DELETE", "/faults", "")
		r.fault(emulator.Fault{Method: "*", Status: 500, Times: -1})
		for range 3 {
			if got := issue(); got != 500 {
				t.Errorf("a fault without end let a call through: %d, want 500", got)
			}
		}
		r.wantKinds("") // * does not apply to Pub/Sub, and no command was issued
		r.control("DELETE", "/faults", "")
		for _, method := range []string{"create", "enterprises.create", "androidmanagement.enterprises.create"} {
			r.fault(emulator.Fault{Method: method, Status: 418})
			if code, _ := r.raw("POST", "/v1/enterprises", `{}`); code != 418 {
				t.Errorf("a fault of %s did not apply: %d, want 418", method, code)
			}
		}
		for _, method := range []string{"pubsub.pull", "pubsub.subscriptions.pull", "pubsub.projects.subscriptions.pull"} {
			r.fault(emulator.Fault{Method: method, Status: 418})
			if code, _ := r.raw("POST", "/v1/"+defaultSubscription+":pull", `{"maxMessages":1}`); code != 418 {
				t.Errorf("a fault of %s did not apply: %d, want 418", method, code)
			}
		}
		for _, bad := range []string{`{}`, `{"method":"devices.dance"}`, `{"method":"get","status":99}`, `{"method":"get","delayMs":-1}`,
			`{"method":"get","corrupt":"x"}`, `{"method":"get","retryAfterSeconds":-1}`, `{"methd":"get"}`} {
			if code, _ := r.raw("POST", "/emulator/v1/faults", bad); code != 400 {
				t.Errorf("the fault %s is answered %d, want 400", bad, code)
			}
		}
	})
}

// TestFault_Effects uses a real connection: it checks what the caller receives, and whether
// the emulator carried the call out.
func TestFault_Effects(t *testing.T) {
	t.Parallel()
	r := overTheWire(t)
	r.bind()
	for _, test := range []struct {
		name   string
		fault  emulator.Fault
		effect bool
		isWant func(err error) bool // whether the caller's error is as wanted
	}{
		{"status", emulator.Fault{Status: 503}, false, isStatus(503)},
		{"status after the effect", emulator.Fault{Status: 503, AfterEffect: true}, true, isStatus(503)},
		{"dropped", emulator.Fault{DropConnection: true}, false, isBroken},
		{"dropped after the effect", emulator.Fault{DropConnection: true, AfterEffect: true}, true, isBroken},
		{"lost answer", emulator.Fault{AfterEffect: true}, true, isBroken},
		{"late", emulator.Fault{DelayMS: 30}, true, func(err error) bool { return err == nil }},
		{"late and dropped", emulator.Fault{DelayMS: 30, DropConnection: true}, false, isBroken},
		{"truncated", emulator.Fault{Corrupt: "truncate"}, false, isBroken},
		{"truncated after the effect", emulator.Fault{Corrupt: "truncate", AfterEffect: true}, true, isBroken},
		{"HTML", emulator.Fault{Corrupt: "html"}, false, isStatus(502)},
		{"HTML with 200", emulator.Fault{Corrupt: "html", Status: 200, AfterEffect: true}, true, func(err error) bool {
			var syntax *json.SyntaxError
			return errors.As(err, &syntax)
		}},
		{"not modified", emulator.Fault{Status: 304}, false, googleapi.IsNotModified},
		{"an empty answer", emulator.Fault{Status: 200}, false, func(err error) bool { return err == nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := r.version()
			test.fault.Method = "policies.patch"
			r.fault(test.fault)
			start := time.Now()
			_, err := r.management.Enterprises.Policies.Patch(r.enterprise+"/policies/p", &am.Policy{MaximumTimeToLock: before + 1}).Do()
			if !test.isWant(err) {
				t.Errorf("the caller got the error %v", err)
			}
			if took := time.Since(start); took < time.Duration(test.fault.DelayMS)*time.Millisecond {
				t.Errorf("the call took %v, want at least %d ms", took, test.fault.DelayMS)
			}
			if happened := r.version() != before; happened != test.effect {
				t.Errorf("the policy was saved: %v, want %v", happened, test.effect)
			}
		})
	}
}

func isStatus(code int) func(error) bool {
	return func(err error) bool {
		var problem *googleapi.Error
		return errors.As(err, &problem) && problem.Code == code
	}
}

// isBroken reports whether the connection ended before a whole answer arrived.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err != nil && strings.Contains(err.Error(), "connection reset")
}

// version returns the version of the policy p; 0: there is none yet.
func (r *fixture) version() int64 {
	r.t.Helper()
	p, err := r.management.Enterprises.Policies.Get(r.enterprise + "/policies/p").Do()
	if err != nil {
		return 0
	}
	return p.Version
}

// A caller that disconnects during a delay gets no answer. With AfterEffect, the call was carried
// out before the delay.
func TestFault_DelayAndCallerGone(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		r := overTheWire(t)
		r.bind()
		r.fault(emulator.Fault{Method: "policies.patch", DelayMS: 60_000, AfterEffect: after})
		client := *r.client
		client.Timeout = 100 * time.Millisecond
		request, err := http.NewRequestWithContext(t.Context(), "PATCH", r.base+"/v1/"+r.enterprise+"/policies/p",
			strings.NewReader(`{"smsDisabled":true}`))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err == nil {
			answer.Body.Close()
			t.Error("the call was answered before the delay ended")
		}
		if happened := r.version() == 1; happened != after {
			t.Errorf("the policy was saved: %v, want %v", happened, after)
		}
	}
}

func TestFault_RetryAfter(t *testing.T) {
	t.Parallel()
	r := overTheWire(t)
	r.bind()
	r.fault(emulator.Fault{Method: "get", Status: 429, RetryAfterSeconds: 7})
	_, err := r.management.Enterprises.Get(r.enterprise).Do()
	var problem *googleapi.Error
	if !errors.As(err, &problem) || problem.Header.Get("Retry-After") != "7" {
		t.Errorf("got the error %v, want one with Retry-After: 7", err)
	}
}

// A method of the platform that is not emulated is 501. The emulator's own addresses are not.
func TestEmulator_UnsupportedMethods(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		for _, call := range []string{
			"POST /v1/enterprises/E/webTokens", "GET /v1/enterprises/E/webApps",
			"POST /v1/enterprises/E/policies/P:modifyPolicyApplications",
			"GET /v1/enterprises/E/none", "PUT /v1/enterprises/E", "POST /v1/projects/p/subscriptions/s:seek",
			"POST /v1/projects/p/registrations/r/topicSubscriptions",
		} {
			method, path, _ := strings.Cut(call, " ")
			if code, text := r.raw(method, path, ""); code != 501 || !strings.Contains(text, "UNIMPLEMENTED") {
				t.Errorf("%s is answered %d %s, want 501 UNIMPLEMENTED", call, code, text)
			}
		}
		if code, _ := r.raw("GET", "/emulator/v1/none", ""); code != 404 {
			t.Errorf("an unknown control call is %d, want 404", code)
		}
		if code, _ := r.raw("GET", "/healthz", ""); code != 200 {
			t.Errorf("/healthz is %d, want 200", code)
		}
		if code, text := r.raw("GET", "/", ""); code != 200 || !strings.Contains(text, "emulator") {
			t.Errorf("the front page is %d %s, want 200", code, text)
		}
	})
}

// A request that the API's discovery document does not allow is refused.
func TestEmulator_ChecksRequests(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for _, test := range []struct {
			call, body string
			code       int
		}{
			{"GET /v1/" + r.enterprise + "?alt=json&prettyPrint=false&key=k", "", 200},
			{"GET /v1/" + r.enterprise, "{}", 200},
			{"GET /v1/" + r.enterprise, `{"x":1}`, 400},
			{"GET /v1/" + r.enterprise + "?alt=xml", "", 400},
			{"GET /v1/" + r.enterprise + "?name=x", "", 400},
			{"GET /v1/enterprises", "", 400},
			{"GET /v1/enterprises?projectId=p&view=FULL", "", 400},
			{"PATCH /v1/" + r.enterprise + "/policies/p", strings.Repeat(" ", 10<<20+1), 413},
		} {
			method, path, _ := strings.Cut(test.call, " ")
			if code, text := r.raw(method, path, test.body); code != test.code {
				t.Errorf("%s is answered %d %s, want %d", test.call, code, text, test.code)
			}
		}
	})
}
