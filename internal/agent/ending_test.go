package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// stone is a tombstone in answer to a request with the signature.
func (w *commandWorld) stone(action protocol.TombstoneAction, signature string) protocol.Refusal {
	sealed := forger{t: w.t}.seal(w.key, "k1", protocol.KindTombstone,
		protocol.Tombstone{DeviceID: "d1", Action: action, InReplyTo: signature, Time: commandsNow})
	return protocol.Refusal{Code: protocol.Ended, Signed: &sealed}
}

// respond answers a request with a value.
func respond(r *http.Request, status int, value any) (*http.Response, error) {
	text, err := json.Marshal(value)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// ends is a service that answers each request with a tombstone; without an action, with a refusal that is none.
func (w *commandWorld) ends(action protocol.TombstoneAction) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		refusal := protocol.Refusal{Code: protocol.InternalErr}
		if action != "" {
			refusal = w.stone(action, r.Header.Get(protocol.HeaderSignature))
		}
		return respond(r, http.StatusGone, refusal)
	}
}

// A tombstone ends the enrollment once the device has done what it orders. A companion only forgets the service.
func TestOnce_Tombstone(t *testing.T) {
	t.Parallel()
	const gives, takes, erases = "do:RELINQUISH_OWNERSHIP", "set:CAMERA=", "do:WIPE_COMPANY_DATA"
	for _, test := range []struct {
		name, role string
		action     protocol.TombstoneAction
		how        error  // of actions
		does       string // with settings
		want       error  // nil: another, which does not end the enrollment
		did        string
	}{
		{"is released", "manager", protocol.Unenroll, nil, "does", agent.ErrEnded, gives + " " + takes},
		{"cannot be released", "manager", protocol.Unenroll, agent.ErrUnsupported, "does", agent.ErrEnded, gives + " " + takes},
		{"is not released", "manager", protocol.Unenroll, errAway, "does", nil, gives},
		{"keeps a setting", "manager", protocol.Unenroll, nil, "refuses", nil, gives + " " + takes},
		{"has no such setting", "manager", protocol.Unenroll, nil, "cannot", agent.ErrEnded, gives + " " + takes},
		{"has no use for a setting", "manager", protocol.Unenroll, nil, "inapplicable", agent.ErrEnded, gives + " " + takes},
		{"is erased", "manager", protocol.WipeAgain, nil, "does", agent.ErrEnded, erases},
		{"is to be erased", "manager", protocol.WipeAgain, agent.ErrOrdered, "does", nil, erases},
		{"is superseded", "manager", protocol.Superseded, nil, "does", agent.ErrSuperseded, ""},
		{"is refused", "manager", "", nil, "does", nil, ""},
		{"companion is released", "companion", protocol.Unenroll, nil, "does", agent.ErrEnded, ""},
		{"companion is erased", "companion", protocol.WipeAgain, nil, "does", agent.ErrEnded, ""},
		{"companion is superseded", "companion", protocol.Superseded, nil, "does", agent.ErrEnded, ""},
		{"companion is refused", "companion", "", nil, "does", nil, ""},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,"+test.does)
		w.edit("identity.json", object{"role": test.role})
		d := &interrupted{commandWorld: w, end: func() {}, how: test.how}
		a := d.agentFor(d, w.ends(test.action))
		_, err := a.Once(t.Context())
		w.close(a)
		_, gone := os.Stat(filepath.Join(w.dir, "identity.json"))
		ended := errors.Is(test.want, agent.ErrEnded)
		expect.Equal(t, test.name, expect.Values{"did": {strings.Join(w.trace, " "), test.did},
			"forgets the service": {gone != nil, ended && test.did != erases},
			"ended":               {errors.Is(err, agent.ErrEnded), ended},
			"superseded":          {errors.Is(err, agent.ErrSuperseded), errors.Is(test.want, agent.ErrSuperseded)}})
	}
}

// A device that is to be erased, and is still there, takes its second way after two minutes without effect. An answer takes
// the order back.
func TestOnce_SecondWayToErase(t *testing.T) {
	t.Parallel()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,orders")
	w.over = true
	refuses := true
	a := (&interrupted{commandWorld: w}).agentFor(w, roundTripper(func(r *http.Request) (*http.Response, error) {
		if refuses {
			return w.ends(protocol.WipeAgain)(r)
		}
		return w.RoundTrip(r)
	}))
	defer w.close(a)
	const first, second = "do:WIPE_COMPANY_DATA", "do:WIPE_COMPANY_DATA,again"
	for i, step := range []struct {
		after   time.Duration
		refuses bool
		want    string
	}{{0, true, first}, {2 * time.Minute, true, first}, {time.Millisecond, true, second}, {time.Minute, false, ""},
		{time.Minute, true, first}} {
		w.now, refuses, w.trace = w.now.Add(step.after), step.refuses, nil
		_, err := a.Once(t.Context())
		if did := strings.Join(w.trace, " "); (err != nil) != step.refuses || step.refuses && did != step.want {
			t.Errorf("step %d: %s, want %s: %v", i, did, step.want, err)
		}
	}
}

// To leave a service that has released the device already is no failure.
func TestUnenroll_IsOver(t *testing.T) {
	t.Parallel()
	for action, want := range map[protocol.TombstoneAction]error{protocol.Unenroll: nil, protocol.Superseded: agent.ErrSuperseded} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		a := (&interrupted{commandWorld: w}).agentFor(w, w.ends(action))
		if err := a.Unenroll(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", action, err, want)
		}
		w.close(a)
	}
}
