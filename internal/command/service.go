package command

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// SendLimit bounds one attempt of a channel.
const SendLimit = 45 * time.Second

// Observer is informed what becomes of commands, for metrics.
type Observer interface {
	// CommandFinished is called once for every answer, with the verdict
	// (accepted, done, not_sent, unknown, gone, unreachable, refused, rejected,
	// broken), and once for every later end (success, error, expired, unconfirmed).
	CommandFinished(t Type, outcome string)
}

// Service sends commands and settles them.
type Service struct {
	Store     Store
	Finder    Finder
	Inventory Inventory
	Cancels   Cancels
	Logs      agentdevice.LogStore
	// Channels reach devices by their management. A device whose channel is
	// not configured is answered 503.
	Channels map[asset.Management]Channel
	// Push reaches companions on platform devices; nil: there is no push.
	Push     Channel
	Now      func() time.Time
	Log      *slog.Logger
	Observer Observer // nil: nothing is counted
	// Digest is a keyed digest, for what a person authorizes: nothing is authorized
	// without it. PublicURL is where the portal is, without a slash at the end.
	Digest    func([]byte) []byte
	Verifier  approval.Verifier // of what a person authorized
	PublicURL string

	// Crash is called at each step of a command's life, so that tests can end
	// the process there. Nil in production.
	Crash func(step string)
}

// The steps at which Crash is called.
const (
	BeforeIntent = "before intent"
	AfterIntent  = "after intent"
	AfterSend    = "after send"
	AfterAnswer  = "after answer"
)

// Request asks for one command to one device.
type Request struct {
	Type    Type
	AssetID string // path name or short id
	Body    any    // as in Order, but of CHANGE_POLICY: PolicyRef
}

// Execute runs one command: the checks of contract 7.1 in the order of
// contract 5.10, the intent, one attempt to send, its outcome.
func (s *Service) Execute(ctx context.Context, call operation.Call, r Request) (Result, error) {
	if call.IdempotencyRef != "" {
		earlier, err := s.Finder.CommandByIdempotencyRef(ctx, call.Principal.CompanyID, call.IdempotencyRef)
		if err == nil {
			return s.repeat(ctx, call, r, earlier)
		}
		if fault.CodeOf(err) != fault.NotFound {
			return Result{}, unavailable(err, notFoundOut)
		}
	}
	now, err := s.look(ctx, call.Principal, r)
	if err == nil {
		err = now.Decide()
	}
	var order Order
	if err == nil {
		order, err = s.order(ctx, call, now, r.Body)
	}
	if err != nil {
		return Result{}, unavailable(err, notDispatched)
	}
	return s.dispatch(ctx, call, order)
}

// order is what a channel gets of a request that may be carried out.
func (s *Service) order(ctx context.Context, call operation.Call, now Situation, body any) (Order, error) {
	policyID := ""
	if now.Policy != nil {
		policyID, body = now.Policy.ID, ChangePolicyBody{Policy: *now.Policy}
	}
	intent := s.intent(call, now.Type, *now.Asset, policyID)
	var err error
	intent.Ask, err = s.ask(ctx, call.Principal, intent, *now.Asset.Device, body)
	return Order{Command: intent, AssetID: now.Asset.ID, Device: *now.Asset.Device, Body: body}, err
}

// intent is the command as it is stored before anything is sent.
func (s *Service) intent(call operation.Call, t Type, a asset.Asset, policyID string) Command {
	now := s.now()
	c := Command{
		ID: resource.NewIDAt(now), CompanyID: a.CompanyID, AssetID: a.ID, AssetName: a.Identification, Epoch: a.Device.Epoch,
		Type: t, State: Prepared, CreatedAt: now, PolicyID: policyID, IdempotencyRef: call.IdempotencyRef, Note: call.Note,
		DevicesPerDay: call.Principal.DevicesPerDay, Actor: call.Principal.Actor(),
	}
	c.Actor.UserID = ""
	if life := t.Lifetime(a.Device.Management); life > 0 {
		c.Deadline = now.Add(life)
	}
	return c
}

// channel returns the way to the device, or nil.
func (s *Service) channel(t Type, d asset.Device) Channel {
	pushed := t == NotificationMessage || t == LocationUpdate || t == StatusReport
	if pushed && d.Management == asset.Platform && d.PushReachable && s.Push != nil {
		return s.Push
	}
	return s.Channels[d.Management]
}

// What unavailable says: notDispatched where nothing was sent, and notFoundOut where an earlier request with the same key may
// have sent the command.
const (
	notDispatched = "the command was not sent: the service could not prepare it; send it again"
	notFoundOut   = "it could not be read whether this Idempotency-Key sent the command before: repeat the request with the same key"
)

// unavailable turns what went wrong inside the service before dispatch into 503 (contract 7.1).
func unavailable(err error, detail string) error {
	f := fault.From(err)
	if f.Code == fault.Internal {
		f = (&fault.Error{Code: fault.Unavailable, Retryable: true, Detail: detail}).Because(err)
	}
	return f
}

// now is the present as the store keeps it: whole milliseconds, UTC.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

func (s *Service) finished(t Type, outcome string) {
	if s.Observer != nil {
		s.Observer.CommandFinished(t, outcome)
	}
}

func (s *Service) crash(step string) {
	if s.Crash != nil {
		s.Crash(step)
	}
}
