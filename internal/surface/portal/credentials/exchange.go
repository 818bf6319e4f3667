package credentials

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// ComputerKeyPath is where `muster login` exchanges its code for a key (POST), and `muster
// logout` revokes the key (DELETE, with the key in X-API-Key).
const ComputerKeyPath = "/login/key"

// maxExchange bounds a body, in bytes.
const maxExchange = 4 << 10

// exchangesPerMinute is how many codes one network may try in a minute.
const exchangesPerMinute = 60

// Exchange serves ComputerKeyPath, for programs.
type Exchange struct {
	Keys          apikey.Keys
	Callers       apikey.Authenticator
	Steps         account.PendingStore
	Sessions      account.SessionStore
	Throttle      access.Throttle
	ClientAddress func(*http.Request) string
	Now           func() time.Time
	Log           *slog.Logger
}

// Mount adds the addresses to a mux that web.Secure protects.
func (e *Exchange) Mount(mux *http.ServeMux) {
	mux.HandleFunc("POST "+ComputerKeyPath, e.serve(e.exchange))
	mux.HandleFunc("DELETE "+ComputerKeyPath, e.serve(e.revoke))
}

// made answers an exchange.
type made struct {
	Key         string    `json:"key"`
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Permissions []string  `json:"permissions"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// serve answers with JSON, or with a problem document.
func (e *Exchange) serve(handle func(r *http.Request, requestID string) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := resource.RequestID(r.Header.Get("X-Request-Id"))
		w.Header().Set("X-Request-Id", id)
		r.Body = http.MaxBytesReader(w, r.Body, maxExchange)
		answer, err := handle(r, id)
		status, contentType := http.StatusOK, "application/json"
		if err != nil {
			status, contentType = e.problem(r, id, err), "application/problem+json"
			if f := fault.From(err); f.Code == fault.RateLimited {
				w.Header().Set("Retry-After", strconv.Itoa(operation.Seconds(f.RetryAfter)))
			}
			answer = map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail(err),
				"instance": ComputerKeyPath}
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // the program may have gone
	}
}

// problem is the status of an error, which is logged: as a warning if it is of a code that was tried, as a stranger can have
// any number of the others.
func (e *Exchange) problem(r *http.Request, id string, err error) int {
	status := map[fault.Code]int{fault.InvalidArguments: http.StatusBadRequest, fault.Unauthorized: http.StatusUnauthorized,
		fault.Forbidden: http.StatusForbidden, fault.RateLimited: http.StatusTooManyRequests,
		fault.Unavailable: http.StatusServiceUnavailable}[fault.CodeOf(err)]
	if status == 0 {
		status = http.StatusInternalServerError
		e.Log.ErrorContext(r.Context(), "login of a computer failed", "request_id", id, "error", err)
		return status
	}
	level := slog.LevelWarn
	if status == http.StatusBadRequest || status == http.StatusTooManyRequests || r.Method == http.MethodDelete {
		level = slog.LevelInfo
	}
	e.Log.LogAttrs(r.Context(), level, "login of a computer refused", slog.String("request_id", id),
		slog.String("client", e.ClientAddress(r)), slog.Int("status", status))
	return status
}

func detail(err error) string {
	if f := fault.From(err); f.Code != fault.Internal {
		return f.Detail
	}
	return "an unexpected error occurred: start `muster login` again"
}

// exchange makes the key that a person allowed, once. A code with a wrong verifier is used
// up, too. Strangers can call it: a code that cannot be one is refused before anything is
// written, and the others are counted for the network.
func (e *Exchange) exchange(r *http.Request, requestID string) (any, error) {
	var given struct{ Code, Verifier string }
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		return nil, fault.Invalid("the body must be a JSON object with code and verifier")
	}
	if !access.IntactSecret(given.Code) {
		return nil, fault.Invalid("code is not one that the portal shows: copy the whole code, or start `muster login` again")
	}
	now := e.Now()
	_, spent, closes, err := e.Throttle.Spend(r.Context(), "login-key:"+account.Network(e.ClientAddress(r)), exchangesPerMinute,
		time.Minute, now)
	switch {
	case err != nil:
		return nil, err
	case !spent:
		return nil, fault.Limited(closes.Sub(now), "too many codes were tried from your network: start `muster login` again in a minute")
	}
	over := fault.New(fault.Unauthorized, "this code is over, was used, or is not for this computer: start `muster login` again")
	step, err := e.Steps.TakeStep(r.Context(), access.HashSecret(given.Code), account.ComputerCode)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, over
	}
	if err != nil {
		return nil, err
	}
	var allowed grant
	if err := json.Unmarshal(step.Data, &allowed); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(given.Verifier))
	if subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(allowed.Challenge)) != 1 {
		return nil, over
	}
	return e.make(r, requestID, allowed, over)
}

// make makes the key within what the person may do now, if the session goes on in which
// they allowed it.
func (e *Exchange) make(r *http.Request, requestID string, allowed grant, over error) (any, error) {
	var hash access.SecretHash
	if n, err := hex.Decode(hash[:], []byte(allowed.Session)); err != nil || n != len(hash) {
		return nil, over
	}
	enter := func(ctx context.Context) (access.Principal, account.User, error) {
		session, user, principal, err := e.Sessions.SessionByToken(ctx, hash)
		if fault.CodeOf(err) == fault.NotFound || err == nil && (user.Disabled || !session.Live(e.Now())) {
			err = over
		}
		return principal, user, err
	}
	principal, user, err := enter(r.Context())
	if err != nil {
		return nil, err
	}
	if err := principal.Settings.Stop.Refuses(access.User); err != nil {
		return nil, err
	}
	permit := access.NewPermit(principal, func(ctx context.Context) (access.Principal, error) {
		now, _, err := enter(ctx)
		return now, err
	})
	ctx := access.WithPermit(access.WithActor(r.Context(), principal.Actor(), requestID), permit)
	key, text, err := e.Keys.CreateForUser(ctx, user, apikey.Request{Name: allowed.Name, Permissions: allowed.Allowed,
		ExpiresIn: computerKeyLife})
	if err != nil {
		return nil, err
	}
	return made{text, key.ID, key.Name, key.Permissions.Names(), key.ExpiresAt}, nil
}

// revoke ends the key that asks.
func (e *Exchange) revoke(r *http.Request, requestID string) (any, error) {
	principal, err := e.Callers.Authenticate(r.Context(), r.Header.Get("X-API-Key"))
	if err != nil {
		return nil, err
	}
	key, err := e.Keys.Revoke(access.WithActor(r.Context(), principal.Actor(), requestID), principal.CompanyID, principal.ID)
	return map[string]any{"id": key.ID, "revoked": err == nil}, err
}
