// Package agentapi is the agents' door: the HTTP side of the agent's protocol,
// under /agent/v2 (docs/agent-protocol.md). It takes no API keys and sets no
// cookies; a device proves itself by signing each request.
package agentapi

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/web"
)

// Service answers what devices ask. A *protocol.Refusal is an answer for the device; the comment of
// a method names its Code. Any other error is the service's own, such as the database's.
type Service interface {
	// Enroll redeems a token. The same token with the same key gets the same device again.
	// Codes: Malformed, BadSignature, BadToken, Waiting, RateLimited, and Ended with a tombstone for
	// a former device that has to be erased.
	Enroll(ctx context.Context, r protocol.EnrollRequest) (protocol.EnrollAnswer, error)
	// Authenticate verifies a request's signature and takes its sequence number; a refusal has
	// no effect. Codes: BadSignature, also for an unknown device; signed: ClockSkew, Replayed,
	// RateLimited, and Ended with a tombstone.
	Authenticate(ctx context.Context, r protocol.Request, signature string) (agentdevice.Device, error)
	// CheckIn authenticates the request as Authenticate does. It calls read for what the request
	// says once its signature is good, and fails with its error.
	CheckIn(ctx context.Context, r protocol.Request, signature string,
		read func() (protocol.CheckinRequest, error)) (protocol.CheckinResponse, error)
	// Policy returns the signed document of the device's policy and its ETag. Code: NotFound if it
	// has another policy.
	Policy(ctx context.Context, d agentdevice.Device, id string) (protocol.Envelope, string, error)
	// Rotate replaces the device's key. Code: BadSignature unless both keys signed, and the old one
	// is still the device's.
	Rotate(ctx context.Context, d agentdevice.Device, r protocol.RotateRequest, sequence int64) error
	// RegisterPush stores the device's token for push messages.
	RegisterPush(ctx context.Context, d agentdevice.Device, r protocol.PushTokenRequest) error
	// Unenroll ends a device at its own request. Code: Ended with a tombstone for a device that was
	// superseded, or that has to be erased and stays.
	Unenroll(ctx context.Context, d agentdevice.Device) error
	// FileSize returns the size in bytes of a file that the device was offered, and
	// FilePart its part with the number: each but the last has rollout.PartSize bytes. Code:
	// NotFound for another file.
	FileSize(ctx context.Context, d agentdevice.Device, sha256 string) (int64, error)
	// FilePart returns one part of the file. Code: NotFound if there is no such part.
	FilePart(ctx context.Context, d agentdevice.Device, sha256 string, number int64) ([]byte, error)
	// KeepLog keeps the log that a command asked the device for, once. Code: NotFound if no open
	// command did.
	KeepLog(ctx context.Context, d agentdevice.Device, commandID string, text []byte) error
}

// API serves the agents.
type API struct {
	Service Service
	Hub     *Hub
	Log     *slog.Logger

	downloads downloads
}

// Handler returns the handler of protocol.Base and protocol.FormerBase.
func (d *API) Handler() http.Handler {
	mux := http.NewServeMux()
	base := protocol.Base
	mux.HandleFunc("POST "+base+"/enroll", d.serve(d.enroll))
	mux.HandleFunc("POST "+base+"/checkin", d.serve(d.checkIn))
	mux.HandleFunc("GET "+base+"/policy/{id}", d.serve(d.signed(d.policy)))
	mux.HandleFunc("GET "+base+"/wake", d.wake)
	mux.HandleFunc("GET "+base+"/file/{sha256}", d.serve(d.signed(d.file)))
	mux.HandleFunc("POST "+base+"/log/{command}", d.serve(d.signed(d.log)))
	mux.HandleFunc("POST "+base+"/push-token", d.serve(posted(d, d.pushToken)))
	mux.HandleFunc("POST "+base+"/rotate", d.serve(posted(d, d.rotate)))
	mux.HandleFunc("POST "+base+"/unenroll", d.serve(d.signed(d.unenroll)))
	mux.HandleFunc(base+"/", func(w http.ResponseWriter, r *http.Request) {
		d.refuse(w, r, &protocol.Refusal{Code: protocol.NotFound, Message: "no such call"})
	})
	mux.HandleFunc(protocol.FormerBase, d.upgrade)
	mux.HandleFunc(protocol.FormerBase+"/", d.upgrade)
	return mux
}

// upgrade answers an agent of the protocol's first version, managed or not: nothing in the
// answer is signed, so that no agent lets go because of it.
func (d *API) upgrade(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "muster-agent/2")
	d.refuse(w, r, &protocol.Refusal{Code: protocol.UpgradeRequired,
		Message: "this service speaks " + protocol.Base + " only: update the agent, and enroll the device again"})
}

// visit is one authenticated request.
type visit struct {
	device   agentdevice.Device
	body     []byte
	sequence int64
}

// call answers a request: with what is written as JSON; with nil, if it has written the answer itself; or with an error,
// which the device is told.
type call func(http.ResponseWriter, *http.Request) (any, error)

func (d *API) serve(answer call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch answered, err := answer(w, r); {
		case err != nil:
			d.refuse(w, r, err)
		case answered != nil:
			edge.JSON(w, http.StatusOK, edge.NoStore, answered)
		}
	}
}

// signed reads the body and checks the signature before anything else happens.
func (d *API) signed(next func(http.ResponseWriter, *http.Request, visit) (any, error)) call {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		request, err := signedRequest(w, r)
		if err != nil {
			return nil, err
		}
		device, err := d.Service.Authenticate(r.Context(), request, r.Header.Get(protocol.HeaderSignature))
		if err != nil {
			d.closeEnded(r, err)
			return nil, err
		}
		plain, err := inflate(r, request.Body)
		if err != nil {
			return nil, err
		}
		return next(w, r, visit{device, plain, request.Sequence})
	}
}

// signedRequest is what a request's signature covers. Nothing of it is proved yet.
func signedRequest(w http.ResponseWriter, r *http.Request) (protocol.Request, error) {
	body, err := readBody(w, r)
	if err != nil {
		return protocol.Request{}, &protocol.Refusal{Code: protocol.Malformed, Message: "the body is too large or cannot be read"}
	}
	at, err1 := strconv.ParseInt(r.Header.Get(protocol.HeaderTime), 10, 64)
	sequence, err2 := strconv.ParseInt(r.Header.Get(protocol.HeaderSequence), 10, 64)
	if err1 != nil || err2 != nil {
		return protocol.Request{}, &protocol.Refusal{Code: protocol.BadSignature, Message: "the request is not signed"}
	}
	return protocol.Request{Method: r.Method, Path: r.URL.RequestURI(), Device: r.Header.Get(protocol.HeaderDevice), Time: at,
		Sequence: sequence, Body: body}, nil
}

// closeEnded closes the wake stream of a device that proved who it is and was
// told that it is no longer managed: the hint that ended it may have been lost.
func (d *API) closeEnded(r *http.Request, err error) {
	if known, ok := errors.AsType[*protocol.Refusal](err); ok && known.Code == protocol.Ended {
		d.Hub.End([]string{r.Header.Get(protocol.HeaderDevice)})
	}
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, protocol.MaxBody))
}

// inflate undoes gzip, within the limit of a body.
func inflate(r *http.Request, body []byte) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return body, nil
	}
	var plain []byte
	zip, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		plain, err = io.ReadAll(io.LimitReader(zip, protocol.MaxBody+1))
	}
	if err != nil || len(plain) > protocol.MaxBody {
		return nil, &protocol.Refusal{Code: protocol.Malformed, Message: "the body cannot be inflated"}
	}
	return plain, nil
}

func (d *API) enroll(w http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody(w, r)
	var request protocol.EnrollRequest
	if err != nil || json.Unmarshal(body, &request) != nil {
		return nil, &protocol.Refusal{Code: protocol.Malformed, Message: "the body must be one JSON object"}
	}
	return d.Service.Enroll(r.Context(), request)
}

// posted is signed for a call whose body is one JSON object.
func posted[T any](d *API, serve func(context.Context, visit, T) error) call {
	return d.signed(func(_ http.ResponseWriter, r *http.Request, v visit) (any, error) {
		request, err := object[T](v.body)
		if err == nil {
			err = serve(r.Context(), v, request)
		}
		return struct{}{}, err
	})
}

// object reads a body that is one JSON object.
func object[T any](body []byte) (t T, err error) {
	if json.Unmarshal(body, &t) != nil {
		return t, &protocol.Refusal{Code: protocol.Malformed, Message: "the body must be one JSON object"}
	}
	return t, nil
}

// checkIn is posted for the call whose contact with the store does more than to take the
// sequence number.
func (d *API) checkIn(w http.ResponseWriter, r *http.Request) (any, error) {
	request, err := signedRequest(w, r)
	if err != nil {
		return nil, err
	}
	answer, err := d.Service.CheckIn(r.Context(), request, r.Header.Get(protocol.HeaderSignature), func() (protocol.CheckinRequest, error) {
		plain, err := inflate(r, request.Body)
		if err != nil {
			return protocol.CheckinRequest{}, err
		}
		return object[protocol.CheckinRequest](plain)
	})
	if err != nil {
		d.closeEnded(r, err)
	}
	return answer, err
}

func (d *API) policy(w http.ResponseWriter, r *http.Request, v visit) (any, error) {
	sealed, tag, err := d.Service.Policy(r.Context(), v.device, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	w.Header().Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil, nil
	}
	return sealed, nil
}

func (d *API) rotate(ctx context.Context, v visit, request protocol.RotateRequest) error {
	return d.Service.Rotate(ctx, v.device, request, v.sequence)
}

func (d *API) pushToken(ctx context.Context, v visit, request protocol.PushTokenRequest) error {
	if len(request.Token) > maxPushToken {
		return &protocol.Refusal{Code: protocol.Malformed, Message: "the push token is too long"}
	}
	return d.Service.RegisterPush(ctx, v.device, request)
}

const maxPushToken = 4096 // bytes

// log takes the log that a command asked for. The body is the text itself.
func (d *API) log(_ http.ResponseWriter, r *http.Request, v visit) (any, error) {
	return struct{}{}, d.Service.KeepLog(r.Context(), v.device, r.PathValue("command"), v.body)
}

func (d *API) unenroll(_ http.ResponseWriter, r *http.Request, v visit) (any, error) {
	return struct{}{}, d.Service.Unenroll(r.Context(), v.device)
}

// refuse answers an error. Unexpected errors are logged and not sent.
func (d *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var known *protocol.Refusal
	if !errors.As(err, &known) {
		level := slog.LevelError
		if r.Context().Err() != nil {
			level = slog.LevelDebug // the device went away: it will ask again
		}
		d.Log.Log(r.Context(), level, "the agents' door failed", "path", r.URL.Path, "error", err)
		known = &protocol.Refusal{Code: protocol.InternalErr, Message: "an unexpected error occurred; try again later"}
	}
	if known.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(known.RetryAfter))
	}
	if known.Code == protocol.Busy {
		w.Header().Set("Connection", "close") // what is short is connections
	}
	edge.JSON(w, cmp.Or(statuses[known.Code], http.StatusInternalServerError), edge.NoStore, known)
}

// statuses are those of the codes; that of any other is 500.
var statuses = map[protocol.ErrorCode]int{ //nolint:gochecknoglobals // a table that is never written to
	protocol.ClockSkew:       http.StatusUnauthorized,
	protocol.BadSignature:    http.StatusUnauthorized,
	protocol.BadToken:        http.StatusForbidden,
	protocol.NotFound:        http.StatusNotFound,
	protocol.Replayed:        http.StatusConflict,
	protocol.Waiting:         http.StatusConflict,
	protocol.Ended:           http.StatusGone,
	protocol.UpgradeRequired: http.StatusUpgradeRequired,
	protocol.Malformed:       http.StatusBadRequest,
	protocol.Busy:            http.StatusServiceUnavailable,
	protocol.RateLimited:     http.StatusTooManyRequests,
}

// App serves the device-owner app that a QR code installs. Android's download asks
// without credentials and wants the length.
func App(data []byte) http.Handler {
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.android.package-archive")
		w.Header().Set("Content-Disposition", `attachment; filename="muster-agent.apk"`)
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// NoApp answers in its place where the service has no app.
func NoApp(log *slog.Logger) http.Handler {
	page := web.Notice("No device-owner app here", "This service does not ship the Android app that a QR code installs: its operator "+
		"sets MUSTER_AGENT_APK. "+
		"Devices whose system image holds muster-agent enroll with the token that is inside the code.", "")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.Answer(w, r, log, http.StatusNotFound, page)
	})
}
