package operation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Once runs requests that carry an Idempotency-Key at most once for each key and
// caller (contract 4.8, the IETF's draft of that name). A key means the same on every
// surface, because a request is known by its operation and its decoded arguments, and
// kept is the outcome, not the words of one surface.
//
// What is kept is each outcome of a request that reached its handler and may
// not simply be sent again: results, UNCONFIRMED, not_found, conflicts,
// refusals, 502 without retry, and 500, whose effect is unknown. A request
// that was refused before (400, 401, 403, 429) has done nothing, one that
// is answered as retryable (503, 502 with retry) invites the same request
// again, and so does one that a person has to approve first: their claim is
// released, and the repetition runs as a new one. A caller
// whose budget is known to be used up costs one look for an answer, and no claim.
//
// A claim that was left by a crash is taken over when its lease has ended. The
// handler then runs again under the same Ref, by which a command's intent is
// found instead of made again, so nothing is sent twice. That run is admitted,
// and spends the budget, like any other: it is not known how far the first run got.
//
// Outcomes may hold a QR code and fingerprints are made of arguments that may hold
// a short password, so both are sealed with the service's own key.
type Once struct {
	Kernel *Kernel
	Claims Claims // nil: keys are ignored
	Sealer access.Sealer
}

// KeepAnswers is how long a claim and its answer are kept.
const KeepAnswers = 24 * time.Hour

const (
	leaseLength   = 15 * time.Second // how long a crash keeps a claim
	leaseRenewal  = 5 * time.Second
	settleLimit   = 10 * time.Second // to store an outcome whose client may have gone
	purposeAnswer = "idempotency answer "
	purposePrint  = "idempotency fingerprint "
)

// MaxKeyLength is the longest Idempotency-Key, in characters.
const MaxKeyLength = 255

// CheckKey returns what is wrong with an Idempotency-Key, which the surface calls field:
// it must be 1 to 255 visible ASCII characters. Nil: nothing.
func CheckKey(field, key string) *fault.Error {
	if key == "" || len(key) > MaxKeyLength || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return InvalidKey(field)
	}
	return nil
}

// InvalidKey is the fault of a key that is none.
func InvalidKey(field string) *fault.Error {
	return fault.InvalidField(field, "must be 1 to 255 visible ASCII characters, given once")
}

// ErrDoubt is the error of a commit whose answer was lost: it may have succeeded. A
// repetition under the same Idempotency-Key finds what was begun.
var ErrDoubt = errors.New("it is not known whether the store committed it")

// Run runs a request: one with an Idempotency-Key at most once for each key, and others,
// and those that only read, as Kernel.Run does.
func (c Once) Run(ctx context.Context, o *Operation, p access.Principal, meta Meta, s Source, key string) Outcome {
	if key == "" || c.Claims == nil || o.Effect == Reading {
		return c.Kernel.Run(ctx, o, p, meta, s)
	}
	// What will be refused anyhow needs no claim. The caller's rights are
	// looked at here too, so that an answer is repeated only to one who might
	// still ask for it.
	p, err := c.Kernel.late(ctx, o, p, meta)
	if err != nil {
		return Outcome{Fault: c.Kernel.Explain(ctx, o, p, meta, err)}
	}
	meta.Since = time.Time{}
	args, invalid := o.decode(s)
	if invalid != nil || meta.check(o, p) != nil || access.Grant(p, o.Needs, o.Gate) != nil {
		return c.Kernel.Run(ctx, o, p, meta, s)
	}
	// A caller whose budget is used up makes no claim, and one whose company is
	// stopped makes none, but an answer that was given is repeated all the same.
	left, stopped, take := c.Kernel.UsedUp(o, p), o.permits(p) != nil, c.Claims.Claim
	if left != nil || stopped {
		take = c.Claims.FindClaim
	}
	held, err := take(ctx, c.claim(o, p, key, args))
	if err == nil && held.State != Claimed { // a repetition spends no budget
		err = c.Kernel.Count(p)
	}
	switch {
	case fault.CodeOf(err) == fault.RateLimited, fault.CodeOf(err) == fault.InFlight:
	case err != nil:
		err = NotSent(o, err)
	case held.State == Running:
		err = fault.New(fault.InFlight, "a request with this Idempotency-Key is still under way: repeat it in a moment")
	case held.State == Differs:
		err = fault.New(fault.KeyReused, "this Idempotency-Key was used for another request: use a new key for each request")
	case held.State == Answered:
		var out Outcome
		if out, err = c.again(held); err == nil {
			return out
		}
	}
	if err != nil {
		return Outcome{Fault: c.Kernel.Explain(ctx, o, p, meta, err)}
	}
	if left != nil || stopped {
		meta.UsedUp = left
		return c.Kernel.Run(ctx, o, p, meta, s)
	}
	return c.hold(ctx, held, o, p, meta, s)
}

func (c Once) claim(o *Operation, p access.Principal, key string, args any) Claim {
	id := digest(p.BudgetKey(), key)
	purpose := purposePrint + base64.RawURLEncoding.EncodeToString(id)
	fingerprint := digest(o.Name, o.canonical(p.CompanySlug, args))
	return Claim{
		ID:          base64.RawURLEncoding.EncodeToString(id),
		Fingerprint: base64.RawURLEncoding.EncodeToString(c.Sealer.Seal(purpose, fingerprint)),
		Same: func(stored string) (bool, error) {
			sealed, err := base64.RawURLEncoding.DecodeString(stored)
			if err != nil {
				return false, err
			}
			theirs, err := c.Sealer.Open(purpose, sealed)
			if err != nil {
				return false, fault.New(fault.InFlight, "a request with this Idempotency-Key was begun by a replica with another key "+
					"file: repeat it in a moment").Because(err)
			}
			return bytes.Equal(theirs, fingerprint), nil
		},
		Now: c.Kernel.Now(), Lease: leaseLength, Keep: KeepAnswers,
	}
}

// canonical is the text of decoded arguments: one for each meaning, however the
// request was written. An asset or policy has its full name, also where it was named by its id.
func (o *Operation) canonical(company string, args any) string {
	v := reflect.ValueOf(args).Elem()
	named := map[string]any{}
	for _, f := range o.args.fields {
		value := v.FieldByIndex(f.at).Interface()
		if object, is := value.(Object); is {
			text := jsontext.Value(bytes.Clone(object))
			_ = text.Canonicalize() // it is an object, or absent
			value = string(text)
		}
		named[f.name] = value
	}
	for name, c := range map[string]resource.Collection{"assetId": resource.Assets, "policyId": resource.Policies,
		"fromPolicyId": resource.Policies} {
		if id, ok := named[name].(string); ok && resource.IsID(id) {
			named[name] = resource.Of(company, c, id)
		}
	}
	text, _ := json.Marshal(named) // texts, numbers, booleans and lists of them: it cannot fail
	return string(text)
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
func (c Once) hold(ctx context.Context, held Holding, o *Operation, p access.Principal, meta Meta, s Source) Outcome {
	stop := c.extend(ctx, held)
	meta.IdempotencyRef = held.Ref
	out := c.Kernel.Run(ctx, o, p, meta, s)
	stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	var err error
	switch {
	case keeps(out):
		err = c.settle(ctx, held, out)
	case held.Attempt > 1, out.Reached && lostRight(out.Fault), out.Fault != nil && errors.Is(out.Fault.Err, ErrDoubt):
		// What was begun, perhaps by an earlier attempt, is still to be found by the next one.
		err = c.Claims.ExtendClaim(ctx, held, c.Kernel.Now())
	default:
		err = c.Claims.ReleaseClaim(ctx, held)
	}
	if err != nil { // the answer stands; the lease will end, and a repetition finds what was begun
		c.warn(ctx, "cannot settle an idempotent request", meta, err)
	}
	return out
}

// extend keeps the lease alive until the function it returns is called. That
// function waits for an extension under way.
func (c Once) extend(ctx context.Context, held Holding) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	ticker := time.NewTicker(leaseRenewal)
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := c.Claims.ExtendClaim(ctx, held, c.Kernel.Now().Add(leaseLength)); err != nil && ctx.Err() == nil {
					c.warn(ctx, "cannot extend a lease", Meta{}, err)
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

func (c Once) warn(ctx context.Context, message string, meta Meta, err error) {
	//nolint:sloglint // the callers' messages are constants
	c.Kernel.Log.LogAttrs(ctx, slog.LevelWarn, message, slog.String("request_id", meta.RequestID), slog.Any("error", err))
}

// keeps reports whether an outcome is kept.
func keeps(out Outcome) bool {
	if !out.Reached {
		return false
	}
	if out.Fault == nil {
		return true
	}
	return !out.Fault.MayRetry() && out.Fault.Code != fault.InvalidArguments && out.Fault.Approval == nil && !lostRight(out.Fault)
}

// lostRight reports whether the caller lost the right while the call ran, as in a stop: the
// refusal ends with that. A right that a person has to grant first was not lost.
func lostRight(f *fault.Error) bool {
	return f != nil && f.Approval == nil && (f.Code == fault.Forbidden || f.Code == fault.Unauthorized)
}

// kept is an outcome as it is stored: what is true of more than its first time.
type kept struct {
	Result      json.RawMessage `json:"result,omitempty"`
	Unconfirmed bool            `json:"unconfirmed,omitempty"`
	Fault       *fault.Error    `json:"fault,omitempty"`
}

func (c Once) settle(ctx context.Context, held Holding, out Outcome) error {
	var k kept
	if out.Fault != nil {
		f := *out.Fault
		f.Err = nil // the cause is for the log
		k.Fault = &f
	} else {
		text, err := EncodeResult(out.Result)
		if err != nil {
			return err
		}
		k.Result = text
		u, ok := out.Result.(Uncertain)
		k.Unconfirmed = ok && u.Unconfirmed()
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return c.Claims.SettleClaim(ctx, held, c.Sealer.Seal(purposeAnswer+held.Ref, text))
}

// again is the outcome of the request that ran before.
func (c Once) again(held Holding) (Outcome, error) {
	var k kept
	text, err := c.Sealer.Open(purposeAnswer+held.Ref, held.Answer)
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil || k.Fault == nil && k.Result == nil {
		return Outcome{}, fault.New(fault.Internal, "the request was carried out, but its answer can no longer be read").Because(err)
	}
	out := Outcome{Fault: k.Fault, Replayed: true}
	if k.Fault == nil {
		out.Result = Repeated{k.Result, k.Unconfirmed}
	}
	return out, nil
}

// Repeated is the result of a request that was carried out before, as it was written then.
type Repeated struct {
	JSON        json.RawMessage
	unconfirmed bool
}

// MarshalJSON implements json.Marshaler.
func (r Repeated) MarshalJSON() ([]byte, error) { return r.JSON, nil }

// Unconfirmed implements Uncertain.
func (r Repeated) Unconfirmed() bool { return r.unconfirmed }
