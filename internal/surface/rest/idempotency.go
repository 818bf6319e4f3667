package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/status"
)

// Idempotency-Key, for every POST (contract 4.8, the
// IETF's draft of that name).
//
// What is kept is each answer of a request that reached its handler and may
// not simply be sent again: results, UNCONFIRMED, not_found, conflicts,
// refusals, 502 without retry, and 500, whose effect is unknown. A request
// that was refused before (400, 401, 403, 429) has done nothing, and one that
// is answered as retryable (503, 502 with retry) invites the same request
// again: their claim is released, and the repetition runs as a new one. A caller
// whose budget is known to be used up costs one look for an answer, and no claim.
//
// A claim that was left by a crash is taken over when its lease has ended. The
// handler then runs again under the same Ref, by which a command's intent is
// found instead of made again, so nothing is sent twice. That run is admitted,
// and spends the budget, like any other: it is not known how far the first run got.
//
// Answers may hold a QR code and fingerprints are made of bodies that may hold
// a short password, so both are sealed with the service's own key.

// Sealer encrypts what is kept. What was sealed for one purpose does not open
// for another.
type Sealer interface {
	Seal(purpose string, data []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

const (
	keepAnswers   = 24 * time.Hour
	leaseLength   = 15 * time.Second // how long a crash keeps a claim
	leaseRenewal  = 5 * time.Second
	settleLimit   = 10 * time.Second // to store an answer whose client may have gone
	maxKeyLength  = 255
	purposeAnswer = "idempotency answer "
	purposePrint  = "idempotency fingerprint "
)

// idempotencyKey returns the request's key; given is false without one, and
// well-formed if it is 1 to 255 visible ASCII characters, once.
func idempotencyKey(r *http.Request) (key string, given, wellFormed bool) {
	values := r.Header["Idempotency-Key"]
	if r.Method != http.MethodPost || len(values) == 0 {
		return "", false, false
	}
	key = values[0]
	if len(values) > 1 || key == "" || len(key) > maxKeyLength {
		return key, true, false
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return key, true, false
		}
	}
	return key, true, true
}

// once runs a request, at most once for each Idempotency-Key.
func (s *Server) once(q *request, parts *operation.Parts) reply {
	key, given, wellFormed := idempotencyKey(q.Request)
	if !given || s.claims == nil {
		a, _ := s.run(q, operation.Meta{}, parts)
		return a
	}
	if !wellFormed && parts.Refused == nil {
		const message = "must be 1 to 255 visible ASCII characters, given once"
		parts.Refused = fault.Invalid("Idempotency-Key "+message, fault.Field{Field: "Idempotency-Key", Message: message})
	}
	// What will be refused anyhow needs no claim. The caller's rights are
	// looked at here too, so that an answer is repeated only to one who might
	// still ask for it.
	if parts.Refused != nil || access.Grant(q.caller, q.operation.Needs, q.operation.Gate) != nil {
		a, _ := s.run(q, operation.Meta{}, parts)
		return a
	}
	// A caller whose budget is used up makes no claim, but an answer that was
	// given is repeated all the same.
	left, take := s.kernel.UsedUp(q.operation, q.caller), s.claims.Claim
	if left != nil {
		take = s.claims.FindClaim
	}
	held, err := take(q.Context(), s.claim(q, key, parts))
	if err != nil {
		return s.fail(q, operation.NotSent(q.operation, err))
	}
	switch held.State {
	case operation.Running:
		return s.fail(q, fault.New(fault.InFlight, "a request with this Idempotency-Key is still under way: repeat it in a moment"))
	case operation.Differs:
		return s.fail(q, fault.New(fault.KeyReused, "this Idempotency-Key was used for another request: use a new key for each request"))
	case operation.Answered:
		return s.replay(q, held)
	}
	if left != nil {
		a, _ := s.run(q, operation.Meta{UsedUp: left}, parts)
		return a
	}
	return s.hold(q, held, parts)
}

func (s *Server) claim(q *request, key string, parts *operation.Parts) operation.Claim {
	id := digest(q.caller.BudgetKey(), key)
	purpose := purposePrint + base64.RawURLEncoding.EncodeToString(id)
	fingerprint := digest(append([]string{q.operation.Name, parts.Query, string(parts.Body)}, parts.Path...)...)
	return operation.Claim{
		ID:          base64.RawURLEncoding.EncodeToString(id),
		Fingerprint: base64.RawURLEncoding.EncodeToString(s.sealer.Seal(purpose, fingerprint)),
		Same: func(stored string) bool {
			sealed, err := base64.RawURLEncoding.DecodeString(stored)
			if err != nil {
				return false
			}
			theirs, err := s.sealer.Open(purpose, sealed)
			return err == nil && bytes.Equal(theirs, fingerprint)
		},
		Now: s.now(), Lease: leaseLength, Keep: keepAnswers,
	}
}

// digest hashes texts, each with its length, so that no two lists are alike.
func digest(texts ...string) []byte {
	h := sha256.New()
	for _, text := range texts {
		_ = binary.Write(h, binary.BigEndian, int64(len(text))) // a hash takes everything
		h.Write([]byte(text))
	}
	return h.Sum(nil)
}

// hold runs the request under a claim and then settles or releases it.
func (s *Server) hold(q *request, held operation.Holding, parts *operation.Parts) reply {
	stop := s.extend(q, held)
	a, out := s.run(q, operation.Meta{IdempotencyRef: held.Ref}, parts)
	stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.Context()), settleLimit)
	defer cancel()
	var err error
	switch {
	case keeps(out):
		err = s.claims.SettleClaim(ctx, held, s.sealer.Seal(purposeAnswer+held.Ref, a.encode()))
	case held.Attempt > 1 && !out.Reached:
		// What the attempt before began is still to be found by the next one.
		err = s.claims.ExtendClaim(ctx, held, s.now())
	default:
		err = s.claims.ReleaseClaim(ctx, held)
	}
	if err != nil { // the answer stands; the lease will end, and a repetition finds what was begun
		s.log.LogAttrs(ctx, slog.LevelWarn, "cannot settle an idempotent request", slog.String("request_id", q.id), slog.Any("error", err))
	}
	return a
}

// extend keeps the lease alive until the function it returns is called. That
// function waits for an extension under way.
func (s *Server) extend(q *request, held operation.Holding) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(q.Context()))
	done := make(chan struct{})
	ticker := time.NewTicker(leaseRenewal)
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := s.claims.ExtendClaim(ctx, held, s.now().Add(leaseLength)); err != nil && ctx.Err() == nil {
					s.log.LogAttrs(ctx, slog.LevelWarn, "cannot extend a lease", slog.String("request_id", q.id), slog.Any("error", err))
				}
			}
		}
	}()
	return func() {
		ticker.Stop()
		cancel()
		<-done
	}
}

// keeps reports whether the answer to an outcome is kept.
func keeps(out operation.Outcome) bool {
	if !out.Reached {
		return false
	}
	if out.Fault == nil {
		return true
	}
	return !status.Retryable(out.Fault) && out.Fault.Code != fault.InvalidArguments
}

// replay gives a stored answer again.
func (s *Server) replay(q *request, held operation.Holding) reply {
	var a reply
	text, err := s.sealer.Open(purposeAnswer+held.Ref, held.Answer)
	if err == nil {
		err = a.decode(text)
	}
	if err != nil {
		return s.fail(q, fault.New(fault.Internal, "the request was carried out, but its answer can no longer be read").Because(err))
	}
	a.set("Idempotency-Replayed", "true")
	return a
}

// stored is a reply as it is kept.
type stored struct {
	Status      int         `json:"status"`
	ContentType string      `json:"contentType,omitempty"`
	Header      [][2]string `json:"header,omitempty"`
	Body        []byte      `json:"body,omitempty"`
}

// encode writes the reply without what is true only of the first time.
func (a *reply) encode() []byte {
	kept := stored{Status: a.status, ContentType: a.contentType, Body: a.body}
	for _, f := range a.header {
		if f.name != "RateLimit" && f.name != "RateLimit-Policy" {
			kept.Header = append(kept.Header, [2]string{f.name, f.value})
		}
	}
	text, _ := json.Marshal(kept) // it cannot fail
	return text
}

func (a *reply) decode(text []byte) error {
	var kept stored
	if err := json.Unmarshal(text, &kept); err != nil {
		return err
	}
	*a = reply{status: kept.Status, contentType: kept.ContentType, body: kept.Body}
	for _, f := range kept.Header {
		a.set(f[0], f[1])
	}
	return nil
}
