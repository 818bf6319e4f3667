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

// The forms of an error that a fault can prescribe.
func TestFault_Status(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for _, test := range []struct {
			fault            string
			code             int
			name, text, more string
		}{
			{`{"status":503}`, 503, "UNAVAILABLE", "currently unavailable", ""},
			{`{}`, 503, "UNAVAILABLE", "currently unavailable", ""},
			{`{"status":429}`, 429, "RESOURCE_EXHAUSTED", "Quota exceeded", ""},
			{`{"status":409}`, 409, "ABORTED", "", ""},
			{`{"status":401}`, 401, "UNAUTHENTICATED", "", ""},
			{`{"status":400,"reason":"FAILED_PRECONDITION"}`, 400, "FAILED_PRECONDITION", "", ""},
			{`{"reason":"PERMISSION_DENIED"}`, 403, "PERMISSION_DENIED", "permission", ""},
			{`{"status":500,"reason":"Requested entity was not found."}`, 500, "INTERNAL", "Requested entity was not found.", ""},
			{`{"status":403,"reason":"SERVICE_DISABLED"}`, 403, "PERMISSION_DENIED", "", `"reason": "SERVICE_DISABLED"`},
			{`{"status":504}`, 504, "DEADLINE_EXCEEDED", "", ""},
		} {
			r.control("POST", "/faults", strings.Replace(test.fault, "{",
				`{"method":"get"`+map[bool]string{true: "", false: ","}[test.fault == "{}"], 1))
			code, text := r.raw("GET", "/v1/"+r.enterprise, "")
			if code != test.code || !strings.Contains(text, `"status": "`+test.name+`"`) || !strings.Contains(text, test.text) ||
				!strings.Contains(text, test.more) {
				t.Errorf("%s: %d %s", test.fault, code, text)
			}
			if code, _ := r.raw("GET", "/v1/"+r.enterprise, ""); code != 200 {
				t.Errorf("%s was met twice", test.fault)
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
		// Faults of one method are met in order, each as often as it says.
		r.fault(emulator.Fault{Method: "devices.issueCommand", Status: 503, Times: 2})
		r.fault(emulator.Fault{Method: "androidmanagement.enterprises.devices.issueCommand", Status: 429})
		r.fault(emulator.Fault{Method: "enterprises.devices.issueCommand", Match: "another", Status: 400})
		r.get(device)
		for i, want := range []int{503, 503, 429, 200} {
			if got := issue(); got != want {
				t.Errorf("call %d: %d, want %d", i, got, want)
			}
		}
		if len(r.emulator.Faults()) != 1 {
			t.Error("the fault for another device was used up")
		}
		r.control("DELETE", "/faults", "")
		r.fault(emulator.Fault{Method: "*", Status: 500, Times: -1})
		for range 3 {
			if got := issue(); got != 500 {
				t.Errorf("an endless fault ended: %d", got)
			}
		}
		if notes := r.pull(); kinds(notes) != "" {
			t.Errorf("* reached Pub/Sub, or an effect happened: %s", kinds(notes))
		}
		r.control("DELETE", "/faults", "")
		for _, method := range []string{"create", "enterprises.create", "androidmanagement.enterprises.create"} {
			r.fault(emulator.Fault{Method: method, Status: 418})
			if code, _ := r.raw("POST", "/v1/enterprises", `{}`); code != 418 {
				t.Errorf("%s: %d", method, code)
			}
		}
		for _, method := range []string{"pubsub.pull", "pubsub.subscriptions.pull", "pubsub.projects.subscriptions.pull"} {
			r.fault(emulator.Fault{Method: method, Status: 418})
			if code, _ := r.raw("POST", "/v1/"+defaultSubscription+":pull", `{"maxMessages":1}`); code != 418 {
				t.Errorf("%s: %d", method, code)
			}
		}
		for _, bad := range []string{`{}`, `{"method":"devices.dance"}`, `{"method":"get","status":99}`, `{"method":"get","delayMs":-1}`,
			`{"method":"get","corrupt":"x"}`, `{"method":"get","retryAfterSeconds":-1}`, `{"methd":"get"}`} {
			if code, _ := r.raw("POST", "/emulator/v1/faults", bad); code != 400 {
				t.Errorf("%s: %d", bad, code)
			}
		}
	})
}

// Over a real connection: whether the effect happens, and what arrives.
func TestFault_Effects(t *testing.T) {
	t.Parallel()
	r := overTheWire(t)
	r.bind()
	for _, test := range []struct {
		name   string
		fault  emulator.Fault
		effect bool
		check  func(err error) bool
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
			begin := time.Now()
			_, err := r.management.Enterprises.Policies.Patch(r.enterprise+"/policies/p", &am.Policy{MaximumTimeToLock: before + 1}).Do()
			if !test.check(err) {
				t.Errorf("%s: %v", test.name, err)
			}
			if took := time.Since(begin); took < time.Duration(test.fault.DelayMS)*time.Millisecond {
				t.Errorf("%s took %v", test.name, took)
			}
			if happened := r.version() != before; happened != test.effect {
				t.Errorf("%s: the effect happened: %v", test.name, happened)
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

// isBroken says that no whole answer arrived.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err != nil && strings.Contains(err.Error(), "connection reset")
}

func (r *fixture) version() int64 {
	r.t.Helper()
	p, err := r.management.Enterprises.Policies.Get(r.enterprise + "/policies/p").Do()
	if err != nil {
		return 0
	}
	return p.Version
}

// A caller that goes away during a delay is not served any more, but an effect
// that was to happen has happened.
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
			t.Error("answered in spite of the delay")
		}
		if happened := r.version() == 1; happened != after {
			t.Errorf("afterEffect %v: the effect happened: %v", after, happened)
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
		t.Errorf("got %v", err)
	}
}

// What is not emulated says so, and is logged.
func TestEmulator_RefusesWhatItHasNot(t *testing.T) {
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
				t.Errorf("%s: %d %s", call, code, text)
			}
		}
		if code, _ := r.raw("GET", "/emulator/v1/none", ""); code != 404 {
			t.Errorf("an unknown control call is %d", code)
		}
		if code, _ := r.raw("GET", "/healthz", ""); code != 200 {
			t.Errorf("health is %d", code)
		}
		if code, text := r.raw("GET", "/", ""); code != 200 || !strings.Contains(text, "emulator") {
			t.Errorf("the front page is %d", code)
		}
	})
}

// Requests are held against the discovery document before anything else.
func TestEmulator_FrontEnd(t *testing.T) {
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
				t.Errorf("%s: %d %s", test.call, code, text)
			}
		}
	})
}
