package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// heard is the service, which shows each check-in to a function.
func (w *commandWorld) heard(each func(protocol.CheckinRequest)) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		var request protocol.CheckinRequest
		if strings.HasSuffix(r.URL.Path, "/checkin") {
			if err := json.Unmarshal(body, &request); err != nil {
				return nil, err
			}
			each(request)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return w.RoundTrip(r)
	}
}

// answers is the service, whose answer to each check-in with the number a function changes.
func (w *commandWorld) answers(change func(answer *protocol.CheckinResponse, number int64)) roundTripper {
	return changed(w, change)
}

// changed is a service whose answer to each check-in with the number a function changes.
func changed(service http.RoundTripper, change func(answer *protocol.CheckinResponse, number int64)) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		response, err := service.RoundTrip(r)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/checkin") {
			return response, err
		}
		var answer protocol.CheckinResponse
		number, err := strconv.ParseInt(r.Header.Get(protocol.HeaderSequence), 10, 64)
		if err := errors.Join(err, json.NewDecoder(response.Body).Decode(&answer)); err != nil {
			return nil, err
		}
		change(&answer, number)
		return respond(r, http.StatusOK, answer)
	}
}

// Only a device that lost its identity, and has the whole code, asks again in another process.
func TestAsking(t *testing.T) {
	t.Parallel()
	whole := object{"server": "https://muster.example", "token": "token", "role": "manager", "algorithm": protocol.ES256, "commandKey": "k"}
	for name, test := range map[string]struct {
		lost, enrolled bool
		pending        any // nil: there is none
		want           bool
	}{
		"lost":                         {true, false, whole, true},
		"lost, with no code":           {true, false, nil, false},
		"lost, with a damaged code":    {true, false, "damaged", false},
		"lost, with a code of no role": {true, false, object{"token": "token"}, false},
		"never enrolled":               {false, false, whole, false},
		"enrolled":                     {false, true, whole, false},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		if test.pending != nil {
			w.write("enrolling.json", test.pending)
		}
		if test.lost {
			w.write("identity.json", "damaged")
		} else if !test.enrolled {
			w.dir = t.TempDir()
			w.write("enrolling.json", test.pending)
		}
		e, asks := agent.Asking(w.dir)
		if asks != test.want {
			t.Errorf("%s: %+v, %t, want %t", name, e, asks, test.want)
		}
		if asks && (e.Token != "token" || e.Role != protocol.Manager || e.CommandKey != "k") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// What turns a group of a report on, and the list of apps.
func TestReporting(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"ENABLED": true, "DISABLED": false, "": false} {
		if got := (agent.Reporting{Policy: map[string]string{"REPORT_NETWORK": value}}).On("REPORT_NETWORK"); got != want {
			t.Errorf("%q turns a group on: %t", value, got)
		}
	}
	for level, want := range map[string]bool{"INSTALLED_APPS": true, "INSTALLED_AND_REMOVED_APPS": true, "NONE": false, "": false} {
		if got := (agent.Reporting{Policy: map[string]string{"APPLICATION_REPORT_LEVEL": level}}).Applications(); got != want {
			t.Errorf("%q lists the apps: %t", level, got)
		}
	}
}
