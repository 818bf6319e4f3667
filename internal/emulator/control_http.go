package emulator

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/slice"
)

// addControl adds the control API, with which tests and people control the simulated devices. The vendor has no such API.
func (e *Emulator) addControl(mux *http.ServeMux) {
	for pattern, serve := range map[string]func(*http.Request) (any, error){
		"POST /emulator/v1/devices":                    taking(e.controlEnrol),
		"GET /emulator/v1/devices":                     shown("devices", e.Devices),
		"GET /emulator/v1/devices/{device}":            func(r *http.Request) (any, error) { return e.Device(r.PathValue("device")) },
		"PATCH /emulator/v1/devices/{device}":          taking(e.controlBehavior),
		"POST /emulator/v1/devices/{device}/actions":   taking(e.controlAction),
		"POST /emulator/v1/faults":                     taking(e.controlAddFault),
		"GET /emulator/v1/faults":                      shown("faults", e.Faults),
		"DELETE /emulator/v1/faults":                   done(e.ClearFaults),
		"GET /emulator/v1/calls":                       e.controlCalls,
		"DELETE /emulator/v1/calls":                    done(e.ClearCalls),
		"GET /emulator/v1/settings":                    func(*http.Request) (any, error) { return e.Settings(), nil },
		"PATCH /emulator/v1/settings":                  e.controlSetSettings,
		"POST /emulator/v1/reset":                      done(e.Reset),
		"POST /emulator/v1/signups/{id}":               e.controlSignup,
		"POST /emulator/v1/push-tokens":                taking(e.controlRegisterPush),
		"DELETE /emulator/v1/push-tokens/{token}":      e.controlDropPush,
		"GET /emulator/v1/messages":                    e.controlMessages,
		"POST /emulator/v1/service-accounts":           e.controlNewAccount,
		"DELETE /emulator/v1/service-accounts/{email}": e.controlRevokeAccount,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { e.serveControl(w, r, serve) })
	}
	mux.HandleFunc("/emulator/", func(w http.ResponseWriter, r *http.Request) {
		e.answerError(w, r, fail(http.StatusNotFound, "the control API has no %s %s", r.Method, r.URL.Path))
	})
}

// serveControl answers a call of the control API with the result of serve, as JSON.
func (e *Emulator) serveControl(w http.ResponseWriter, r *http.Request, serve func(*http.Request) (any, error)) {
	if err := e.refuseBrowsers(r); err != nil {
		e.answerError(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	answer, err := serve(r)
	if err != nil {
		e.answerError(w, r, e.logInternal(err, r.URL.Path))
		return
	}
	text, err := json.Marshal(answer)
	if err != nil {
		e.answerError(w, r, e.logInternal(err, r.URL.Path))
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_, _ = w.Write(append(text, '\n'))
}

// readControl reads a control call's body, JSON, into the value into. Without a body the value stays as it is. An unknown
// member is refused.
func readControl(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return invalid("the body is not what this call takes: %v", err)
	}
	return nil
}

// taking adapts serve to a route: it decodes the call's body and passes it.
func taking[T any](serve func(*http.Request, T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var body T
		if err := readControl(r, &body); err != nil {
			return nil, err
		}
		return serve(r, body)
	}
}

func (e *Emulator) controlEnrol(r *http.Request, want Enrollment) (any, error) {
	names, err := e.Enroll(r.Context(), want)
	if err != nil {
		return nil, err
	}
	type enrolled struct {
		Name string `json:"name"`
	}
	return map[string]any{"devices": slice.Map(names, func(name string) enrolled { return enrolled{name} })}, nil
}

// shown serves a call that returns a list, as a JSON object with one member of that name.
func shown[T any](name string, list func() []T) func(*http.Request) (any, error) {
	return func(*http.Request) (any, error) { return map[string]any{name: list()}, nil }
}

// done serves a call that does something that cannot fail. The answer is empty.
func done(do func()) func(*http.Request) (any, error) {
	return func(*http.Request) (any, error) {
		do()
		return empty{}, nil
	}
}

// behaviorCall is the body of a call that changes how a device behaves.
type behaviorCall struct {
	Behavior
	Notify *bool `json:"notify"` // publish notifications of what follows; absent: true
}

func (e *Emulator) controlBehavior(r *http.Request, want behaviorCall) (any, error) {
	return e.SetBehavior(r.Context(), r.PathValue("device"), want.Behavior, want.Notify == nil || *want.Notify)
}

// actionCall is the body of a call that makes a device or its user act.
type actionCall struct {
	Action string `json:"action"`
	Notify *bool  `json:"notify"` // publish notifications of it; absent: see controlAction
}

func (e *Emulator) controlAction(r *http.Request, want actionCall) (any, error) {
	// If a user ends the management of the device, the vendor usually publishes no notification.
	notify := want.Action != ActionRemoveProfile && want.Action != ActionFactoryReset
	if want.Notify != nil {
		notify = *want.Notify
	}
	return empty{}, e.Act(r.Context(), r.PathValue("device"), want.Action, notify)
}

func (e *Emulator) controlAddFault(_ *http.Request, want Fault) (any, error) {
	return empty{}, e.AddFault(want)
}

func (e *Emulator) controlCalls(r *http.Request) (any, error) {
	since, err := parseNumber(r.URL.Query().Get("since"))
	if err != nil {
		return nil, invalid("since must be a number")
	}
	return map[string]any{"calls": e.Calls(since, r.URL.Query().Get("method"))}, nil
}

func (e *Emulator) controlSetSettings(r *http.Request) (any, error) {
	settings := e.Settings()
	if err := readControl(r, &settings); err != nil {
		return nil, err
	}
	return settings, e.SetSettings(settings)
}

func (e *Emulator) controlSignup(r *http.Request) (any, error) {
	token, callback, err := e.CompleteSignup(r.PathValue("id"))
	return map[string]any{"enterpriseToken": token, "callbackUrl": callback}, err
}

// pushCall is the body of a call that registers a device's app for push messages of a Firebase project.
type pushCall struct {
	Project string `json:"project"`
	Device  string `json:"device"`
}

func (e *Emulator) controlRegisterPush(_ *http.Request, want pushCall) (any, error) {
	return map[string]any{"token": e.RegisterPush(want.Project, want.Device)}, nil
}

func (e *Emulator) controlDropPush(r *http.Request) (any, error) {
	if !e.DropPush(r.PathValue("token")) {
		return nil, fail(http.StatusNotFound, "there is no such push token")
	}
	return empty{}, nil
}

// maxMessageWait is how long a call may wait for a push message.
const maxMessageWait = time.Minute

func (e *Emulator) controlMessages(r *http.Request) (any, error) {
	query := r.URL.Query()
	after, err := parseNumber(query.Get("after"))
	if err != nil {
		return nil, invalid("after must be a number")
	}
	waitMS, err := parseNumber(query.Get("waitMs"))
	if err != nil || waitMS < 0 || waitMS > maxMessageWait.Milliseconds() {
		return nil, invalid("waitMs must be a number from 0 to %d", maxMessageWait.Milliseconds())
	}
	messages := e.PushMessages(r.Context(), after, query.Get("token"), time.Duration(waitMS)*time.Millisecond)
	return map[string]any{"messages": messages}, nil
}

func (e *Emulator) controlNewAccount(r *http.Request) (any, error) {
	key, err := e.NewServiceAccount(e.baseURL(r))
	return json.RawMessage(key), err
}

func (e *Emulator) controlRevokeAccount(r *http.Request) (any, error) {
	email := r.PathValue("email")
	if !e.RevokeServiceAccount(email) {
		return nil, fail(http.StatusNotFound, "there is no service account %q", email)
	}
	return empty{}, nil
}
