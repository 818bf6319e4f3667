package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/validate"
)

// dispatch commits the intent, sends it once and records what came of it. From
// the intent on, nothing depends on the caller staying.
func (s *Service) dispatch(ctx context.Context, call operation.Call, o Order) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, unavailable(err, notDispatched)
	}
	ctx = context.WithoutCancel(ctx)
	s.crash(BeforeIntent)
	held, prepared := s.prepareDelivery(ctx, &o)
	if held == nil && prepared != nil && (prepared.Code == outcome.Unreachable || prepared.Code == outcome.Throttled) {
		// It is known before anything is kept or sent.
		return Result{}, prepared.fault()
	}
	if held != nil && held.Place != nil {
		defer held.Place.Leave()
	}
	storing, stop := context.WithTimeout(ctx, storeLimit)
	stored, begun, err := s.Store.Begin(storing, o.Command, held)
	stop()
	switch {
	case held != nil && errors.Is(err, operation.ErrDoubt):
		s.Log.ErrorContext(ctx, "it is not known whether a command was kept for its device", "command", o.Command.ID, "asset",
			o.AssetID, "error", err)
		return unconfirmedOf(o.Command, call.Principal.CompanySlug, o.Device.Management,
			notKnown("the service could not tell whether it was kept")), nil
	case err != nil:
		return Result{}, s.refusal(err)
	case !begun:
		return s.repeat(ctx, call, Request{Type: o.Command.Type, AssetID: o.AssetID}, stored)
	}
	s.crash(AfterIntent)
	ctx = access.Settling(ctx)         // what was recorded is sent, whatever its caller may do since
	ctx = access.Commands(ctx, "", "") // and what the channel needs is read now
	o.Command = stored
	if held != nil {
		return s.held(call, o, held, *prepared)
	}
	if prepared == nil {
		prepared = s.send(ctx, o)
	}
	s.crash(AfterSend)
	result, err := s.conclude(ctx, call.Principal.CompanySlug, o, *prepared)
	s.crash(AfterAnswer)
	return result, err
}

// prepareDelivery asks the channel, and if it keeps the order in the store, takes the
// step that this means before the order's command is stored.
func (s *Service) prepareDelivery(ctx context.Context, o *Order) (*agentdevice.Delivery, *Receipt) {
	channel := s.channel(o.Command.Type, o.Device)
	if channel == nil {
		return nil, &Receipt{Code: outcome.NotSent, Detail: "this server has no connection to " + managed(o.Device.Management)}
	}
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	held, receipt := channel.Prepare(ctx, *o)
	if held != nil {
		*receipt = receipt.admissible(o.Command.Type)
		o.Command = receipt.step(o.Command.Type).of(o.Command)
	}
	return held, receipt
}

// held answers for an order that was committed together with its outcome.
func (s *Service) held(call operation.Call, o Order, held *agentdevice.Delivery, r Receipt) (Result, error) {
	if held.Place != nil {
		held.Place.Use()
	}
	s.crash(AfterSend)
	s.finished(o.Command.Type, label(r.Code))
	s.crash(AfterAnswer)
	return answer(o.Command, call.Principal.CompanySlug, o.Device.Management, r)
}

// storeLimit bounds one step in the store, so that intent, send and outcome
// together stay below what the sweeper waits for.
const storeLimit = SendLimit / 2

// send makes the one attempt. A channel that breaks down has perhaps sent.
func (s *Service) send(ctx context.Context, o Order) (receipt *Receipt) {
	ctx, cancel := context.WithTimeout(ctx, SendLimit)
	defer cancel()
	defer func() {
		if broken := recover(); broken != nil {
			receipt = &Receipt{Code: outcome.Broken, Cause: panicked(broken)}
		}
		*receipt = receipt.WithoutSecret(o.Body)
	}()
	sent := s.channel(o.Command.Type, o.Device).Send(ctx, o)
	return &sent
}

// panicked describes a panic without its value, which may hold the body.
func panicked(value any) error {
	text := fmt.Sprintf("%T", value)
	if err, ok := value.(runtime.Error); ok {
		text = err.Error()
	}
	return fmt.Errorf("the channel panicked: %s\n%s", text, debug.Stack())
}

// WithoutSecret takes a password out of every text of the receipt: an error of the
// channel may quote what it was sent, in any form (contract 4.2: never stored
// or logged). A reason for a refusal is shown only where it came with a
// reference, from the device, and does not quote it.
func (r Receipt) WithoutSecret(body any) Receipt {
	secret, ok := body.(PasswordBody)
	if !ok || secret.NewPassword == "" {
		return r
	}
	if r.Code == outcome.Refused && (r.Ref == "" || strings.Contains(r.Outcome, secret.NewPassword)) {
		r.Outcome = "the platform gave a reason that is not shown, because it may hold the password"
		r.Detail = "the platform refused the new password for this device"
	}
	hide := func(text string) string { return strings.ReplaceAll(text, secret.NewPassword, "[secret]") }
	r.Detail, r.Outcome = hide(r.Detail), hide(r.Outcome)
	if quoting, ok := errors.AsType[interface {
		error
		WithoutText() error
	}](r.Cause); ok {
		r.Cause = quoting.WithoutText()
	}
	if r.Cause != nil {
		r.Cause = errors.New(hide(r.Cause.Error()))
	}
	return r
}

// conclude records the receipt and answers.
func (s *Service) conclude(ctx context.Context, slug string, o Order, r Receipt) (Result, error) {
	r = r.admissible(o.Command.Type)
	log := s.Log.With("command", o.Command.ID, "type", o.Command.Type, "asset", o.AssetID, "outcome", label(r.Code))
	s.finished(o.Command.Type, label(r.Code))
	now, err := s.record(ctx, o, r)
	s.follow(ctx, o, r)
	if err != nil {
		// The row stays PREPARED until the sweeper makes it UNCONFIRMED.
		log.ErrorContext(ctx, "cannot record a command's outcome", "error", err)
		if r.Code != outcome.NotSent {
			return unconfirmedOf(o.Command, slug, o.Device.Management, notKnown("the service could not record the outcome")), nil
		}
	}
	result, failure := answer(now, slug, o.Device.Management, r)
	if failure == nil && r.Cause != nil {
		log.WarnContext(ctx, "the outcome of a command is not known", "error", r.Cause)
	}
	return result, failure
}

// alreadyFailed does not quote the outcome: it may be the device's own text,
// which an assistant must not read as ours.
const alreadyFailed = "the command already failed: its outcome is in the device's command history"

// answer is what the caller is told of a command as it now stands. The
// device's word may have been faster than the channel's receipt; it counts.
func answer(now Command, slug string, m asset.Management, r Receipt) (Result, error) {
	switch {
	case now.State == Succeeded, now.State == Sent:
		return resultOf(now, slug, m), nil
	case now.State == Failed && !r.failed():
		return Result{}, fault.New(fault.Refused, alreadyFailed)
	case r.Code == outcome.Accepted:
		return unconfirmedOf(now, slug, m, notKnown("the channel took it very late")), nil
	case r.Code == outcome.Unknown:
		return unconfirmedOf(now, slug, m, r.Detail), nil
	}
	return Result{}, r.fault()
}

// record takes the receipt's step.
func (s *Service) record(ctx context.Context, o Order, r Receipt) (Command, error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	now, _, err := s.Store.Advance(ctx, o.Command.ID, r.step(o.Command.Type))
	if err != nil {
		return Command{}, err
	}
	if now.State == Unconfirmed && r.Ref != "" {
		// The sweeper was faster; the channel's name still lets feedback find it.
		now, _, err = s.Store.Advance(ctx, now.ID, Transition{From: []State{Unconfirmed}, To: Unconfirmed, Ref: r.Ref})
	}
	return now, err
}

// follow brings the inventory to what the channel said of the device: it is
// gone (contract 3.4), or is to have another policy. If that fails, the
// reconciler or the device's next report brings it there.
func (s *Service) follow(ctx context.Context, o Order, r Receipt) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	var err error
	switch {
	case r.Code == outcome.Gone:
		err = s.Inventory.MarkDeleted(ctx, o.AssetID, o.Device.Epoch, s.now())
	case o.Command.Type == ChangePolicy && (r.Code == outcome.Accepted || r.Code == outcome.Done):
		err = s.Inventory.AssignPolicy(ctx, o.AssetID, o.Device.Epoch, o.Command.PolicyID)
	}
	if err != nil {
		s.Log.ErrorContext(ctx, "cannot bring an asset up to date", "asset", o.AssetID, "outcome", label(r.Code), "error", err)
	}
}

// repeat answers a repetition of a request that began a command before, from
// that command alone; nothing is sent.
func (s *Service) repeat(ctx context.Context, call operation.Call, r Request, c Command) (Result, error) {
	p := call.Principal
	a, err := asset.Find(ctx, targets{s.Inventory}, p, r.AssetID)
	if err != nil {
		return Result{}, unavailable(err, notFoundOut)
	}
	if a.ID != c.AssetID || r.Type != c.Type {
		return Result{}, fault.New(fault.KeyReused, "this Idempotency-Key was used for another command: use a new one")
	}
	management := asset.Management("")
	if a.Device != nil {
		management = a.Device.Management
	}
	switch c.State {
	case Failed:
		return Result{}, fault.New(fault.Refused, alreadyFailed)
	case Sent, Succeeded:
		return resultOf(c, p.CompanySlug, management), nil
	default:
		return unconfirmedOf(c, p.CompanySlug, management, notKnown("the service was interrupted while it sent it")), nil
	}
}

// maxText is the limit of an outcome or a detail that a channel supplied, in
// characters.
const maxText = 500

// label names an outcome for logs and metrics.
func label(c outcome.Code) string {
	if c.Rejected() {
		return "rejected"
	}
	return string(c)
}

// Outcomes lists everything that an Observer may learn of a command: what
// became of sending it, and how it ended.
func Outcomes() []string {
	return []string{"accepted", "done", "not_sent", "unknown", "gone", "unreachable", "refused", "rejected", "broken",
		"success", "error", "expired", "unconfirmed"}
}

// failed reports whether the receipt ends the command ERROR, whatever its type.
func (r Receipt) failed() bool { return r.step("").To == Failed }

// admissible returns the receipt as the contract allows it for the type, its
// texts fit to be shown.
func (r Receipt) admissible(t Type) Receipt {
	if !slices.Contains(outcome.Codes(), r.Code) {
		r.Code = outcome.Broken
	}
	if t == NotificationMessage && r.Code.Rejected() {
		r.Code = outcome.NotSent // contract 7.1: messages never return 502
	}
	r.Detail, r.Outcome = validate.Clean(r.Detail, maxText), validate.Clean(r.Outcome, maxText)
	return r
}

// step is the transition that the receipt means. A final word also settles a
// command that the sweeper has made UNCONFIRMED.
func (r Receipt) step(t Type) Transition {
	words := cmp.Or(r.Outcome, r.Detail)
	final := []State{Prepared, Unconfirmed}
	switch r.Code {
	case outcome.Accepted:
		if t == NotificationMessage {
			return Transition{From: final, To: Succeeded, Ref: r.Ref, Outcome: cmp.Or(words, "accepted for delivery")}
		}
		return Transition{From: []State{Prepared}, To: Sent, Ref: r.Ref, Outcome: r.Outcome}
	case outcome.Done:
		return Transition{From: final, To: Succeeded, Ref: r.Ref, Outcome: words, Feedback: r.FeedbackAt}
	case outcome.NotSent:
		return Transition{From: final, To: Failed, Outcome: "not sent: " + cmp.Or(words, "failed inside the service")}
	case outcome.Gone:
		return Transition{From: final, To: Failed, Outcome: cmp.Or(words, "the device is no longer managed")}
	case outcome.Unreachable:
		return Transition{From: final, To: Failed, Outcome: cmp.Or(words, "the device cannot be reached")}
	case outcome.Refused:
		return Transition{From: final, To: Failed, Ref: r.Ref, Outcome: "refused: " + cmp.Or(words, "no reason was given"),
			Feedback: r.FeedbackAt}
	case outcome.Missing, outcome.Throttled, outcome.Conflict, outcome.Denied:
		return Transition{From: final, To: Failed, Outcome: "not sent: " + cmp.Or(words, "the platform rejected it")}
	case outcome.Unknown:
		return Transition{From: []State{Prepared}, To: Unconfirmed, Ref: r.Ref,
			Outcome: cmp.Or(words, "it is not known whether it was sent")}
	default:
		return Transition{From: []State{Prepared}, To: Unconfirmed, Ref: r.Ref,
			Outcome: cmp.Or(r.Outcome, "unexpected error; it is not known whether it was sent")}
	}
}

// fault is the error that the receipt is answered with (contract 7.1).
func (r Receipt) fault() error {
	f := func(code fault.Code, retryable bool, otherwise string) error {
		return (&fault.Error{Code: code, Retryable: retryable, Detail: cmp.Or(r.Detail, otherwise)}).Because(r.Cause)
	}
	switch r.Code {
	case outcome.NotSent:
		return f(fault.Unavailable, true, "the command was not sent: it failed inside the service; send it again")
	case outcome.Gone:
		return f(fault.Unsupported, false, "the platform reports that the device is no longer managed; the asset is now DELETED")
	case outcome.Unreachable:
		return f(fault.Unsupported, false, "the device cannot be reached")
	case outcome.Refused:
		return f(fault.Refused, false, "the command was refused for this device")
	case outcome.Missing, outcome.Throttled, outcome.Conflict:
		return f(fault.Provider, true, "the platform rejected the command for a passing reason: send it again after a short delay")
	case outcome.Denied:
		return f(fault.Provider, false,
			"the platform rejected the command because of the company's set-up: do not send it again, contact support")
	default:
		return (&fault.Error{Code: fault.Internal,
			Detail: "an unexpected error occurred, and it is not known whether the command reached the device: do not send it again at " +
				"once, look at the asset and at the command history"}).Because(r.Cause)
	}
}
