package agent_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// Of the answers to a check-in only a plain success is one: part of an answer was not asked for.
func TestExchange_Status(t *testing.T) {
	t.Parallel()
	for status, refused := range map[int]bool{200: false, 201: true, 206: true, 302: true, 304: false, 404: true, 500: true} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		a := (&interrupted{commandWorld: w}).agentFor(w, roundTripper(func(r *http.Request) (*http.Response, error) {
			return respond(r, status, "no answer")
		}))
		_, err := a.Once(t.Context())
		if w.close(a); err == nil || strings.Contains(err.Error(), "refused with status "+strconv.Itoa(status)) != refused {
			t.Errorf("%d: %v, want it refused: %t", status, err, refused)
		}
	}
}

// A service may ask to come back later, at most eight minutes.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]time.Duration{"10": 10 * time.Second, "1": time.Second, "100000": 8 * time.Minute, "0": 0, "-5": 0,
		"": 0, "Mon, 30 Nov 2026 02:00:00 GMT": 0} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		a := (&interrupted{commandWorld: w}).agentFor(w, roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := respond(r, http.StatusServiceUnavailable, protocol.Refusal{Code: protocol.Busy})
			answer.Header.Set("Retry-After", asked)
			return answer, err
		}))
		_, err := a.Once(t.Context())
		w.close(a)
		if got := agent.RetryAfter(err); got < want*4/5 || got > want*6/5 || got > 8*time.Minute {
			t.Errorf("%q: %s, want about %s", asked, got, want)
		}
	}
	if got := agent.RetryAfter(errAway); got != 0 {
		t.Errorf("without an answer: %s", got)
	}
}

// A refusal that the service signed for the clock or the sequence is corrected twice, and the request made again.
func TestExchange_IsCorrected(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		code     protocol.ErrorCode
		device   string
		signed   bool
		requests []string // their numbers
	}{
		{"the clock", protocol.ClockSkew, "d1", true, []string{"1", "51", "101"}},
		{"the sequence", protocol.Replayed, "d1", true, []string{"1", "51", "101"}},
		{"too many requests", protocol.RateLimited, "d1", true, []string{"1"}},
		{"not signed", protocol.ClockSkew, "d1", false, []string{"1"}},
		{"another device's", protocol.ClockSkew, "d2", true, []string{"1"}},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		var numbers []string
		a := (&interrupted{commandWorld: w}).agentFor(w, roundTripper(func(r *http.Request) (*http.Response, error) {
			numbers = append(numbers, r.Header.Get(protocol.HeaderSequence))
			refusal := protocol.Refusal{Code: test.code}
			if sealed := (forger{t: t}).seal(w.key, "k1", protocol.KindTime, protocol.Time{DeviceID: test.device, ServerTime: commandsNow,
				LastSequence: int64(50 * len(numbers)), InReplyTo: r.Header.Get(protocol.HeaderSignature)}); test.signed {
				refusal.Signed = &sealed
			}
			return respond(r, http.StatusUnauthorized, refusal)
		}))
		_, err := a.Once(t.Context())
		if w.close(a); err == nil || !slices.Equal(numbers, test.requests) {
			t.Errorf("%s: the requests %v, want %v: %v", test.name, numbers, test.requests, err)
		}
	}
}

// A log is uploaded as text. Where the service does not take it, the command has failed; where it is not there, it is
// uploaded later.
func TestUploadLog(t *testing.T) {
	t.Parallel()
	for code, want := range map[protocol.ErrorCode]string{protocol.NotFound: "the service does not take the log: not_found",
		protocol.Malformed: "the service does not take the log: malformed", protocol.Busy: "", "": "log uploaded"} {
		d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "UPLOAD_LOG", "NEW", "intime,answers,does")}
		types := map[string]string{}
		a, err := agent.New(agent.Options{Dir: d.dir, Device: d, Now: d.clock, Log: discard(), Kept: d,
			Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				first := strings.Split(strings.TrimPrefix(r.URL.Path, protocol.Base), "/")[1]
				types[first] = r.Header.Get("Content-Type")
				if first == "log" && code != "" {
					return respond(r, http.StatusConflict, protocol.Refusal{Code: code})
				}
				return d.RoundTrip(r)
			})}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Once(t.Context())
		d.close(a)
		expect.Equal(t, string(code), expect.Values{"outcome": {d.entry().Outcome, want}, "fails": {err != nil, code == protocol.Busy},
			"type of a log": {types["log"], "text/plain; charset=utf-8"}, "type of a check-in": {types["checkin"], "application/json"}})
	}
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "UPLOAD_LOG", "NEW", "intime,answers,does"), end: func() {}}
	if err := d.once(false); err != nil || !strings.Contains(d.entry().Outcome, "keeps no log") {
		t.Errorf("an agent that keeps no log: %s, %v", d.entry().Outcome, err)
	}
}

// What is asked for has no content, and so no type.
func TestExchange_ContentOfAQuestion(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "SYNC_POLICY", "NEW", "intime,answers,does")
	asked := 0
	a := (&interrupted{commandWorld: w}).agentFor(w, roundTripper(func(r *http.Request) (*http.Response, error) {
		if _, has := r.Header["Content-Type"]; has != (r.Method == http.MethodPost) {
			t.Errorf("%s %s has a type of its content: %t", r.Method, r.URL.Path, has)
		}
		asked++
		return w.RoundTrip(r)
	}))
	defer w.close(a)
	if _, err := a.Once(t.Context()); err != nil || asked < 3 {
		t.Errorf("after %d requests: %v", asked, err)
	}
}

// tokens is a push service that gives the device a token, or cannot.
type tokens struct {
	token string
	err   error
}

// Token implements agent.Push.
func (p *tokens) Token(context.Context) (string, error) { return p.token, p.err }

// Wait implements agent.Push.
func (*tokens) Wait(context.Context) error { return errors.New("no push comes") }

// The service is told where push reaches a companion, as often as that changes. A push service that is away holds back nothing.
func TestOnce_PushToken(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	push := &tokens{}
	a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Now: w.clock, Log: discard(), Push: push,
		Client: &http.Client{Transport: w}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close(a)
	for i, step := range []struct {
		token string
		err   error
		told  bool
	}{{"a", nil, true}, {"a", nil, false}, {"", errAway, false}, {"b", errAway, false}, {"b", nil, true}, {"a", nil, true}} {
		push.token, push.err, w.trace = step.token, step.err, nil
		_, err := a.Once(t.Context())
		told := slices.Contains(w.trace, `upload:/push-token,{"token":"`+step.token+`"}`)
		if err != nil || told != step.told || !strings.Contains(strings.Join(w.trace, " "), "checkin:") {
			t.Errorf("step %d: %v, %v", i, w.trace, err)
		}
	}
}
