package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
)

// Situation is all that the decision about a command depends on, of what is known
// about its device: see Decide.
type Situation struct {
	Type      Type
	Asset     *asset.Asset // nil: none that the caller may see
	Moves     bool         // to another policy
	Policy    *policy.Policy
	Companion bool // the service can push to companions on platform devices
	// missing is the fault of an asset or a policy that is not there for the caller.
	missing error
}

// Decide returns why the device cannot get the command now, or nil: first what is not
// found, then what the device cannot do (contract 5.10).
func (s Situation) Decide() error {
	if s.missing != nil {
		return s.missing
	}
	if err := Eligible(s.Type, *s.Asset, s.Companion); err != nil || !s.Moves {
		return err
	}
	return movable(*s.Asset.Device, *s.Policy)
}

// movable checks a change of policy against the device.
func movable(d asset.Device, to policy.Policy) error {
	if string(to.Type) != string(d.Management) {
		return unsupported("the policy is for %s devices, and this one is %s", managed(asset.Management(to.Type)), managed(d.Management))
	}
	if to.ID == d.PolicyID {
		return unsupported("the device already uses this policy")
	}
	return nil
}

// targets finds assets as commands need them.
type targets struct{ in Inventory }

func (t targets) Asset(ctx context.Context, companyID, id string) (asset.Asset, error) {
	return t.in.CommandTarget(ctx, companyID, id)
}

// look reads the situation of a request. The error is of what could not be read.
func (s *Service) look(ctx context.Context, p access.Principal, r Request) (Situation, error) {
	now := Situation{Type: r.Type, Companion: s.Push != nil}
	a, err := asset.Find(ctx, targets{s.Inventory}, p, r.AssetID)
	if err != nil {
		return now.without(err)
	}
	now.Asset = &a
	ref, moves := r.Body.(PolicyRef)
	if now.Moves = moves; !moves {
		return now, nil
	}
	target, err := policy.Find(ctx, s.Inventory, p, string(ref))
	if err != nil {
		return now.without(err)
	}
	now.Policy = &target
	return now, nil
}

func (s Situation) without(err error) (Situation, error) {
	if fault.CodeOf(err) != fault.NotFound {
		return s, err
	}
	s.missing = err
	return s, nil
}

// Foresee says what Execute would do now, by the same decisions, as far as it does not
// depend on the vendor. It sends and stores nothing. Its error is Execute's refusal;
// any other means that it could not be found out.
func (s *Service) Foresee(ctx context.Context, call operation.Call, r Request) (operation.Forecast, error) {
	now, err := s.look(ctx, call.Principal, r)
	if err != nil {
		return operation.Forecast{}, err
	}
	forecast := now.forecast()
	if now.Policy != nil && now.Asset.Device != nil {
		contrast, err := s.contrast(ctx, call.Principal.CompanyID, now.Asset.ID, now.Asset.Device.PolicyID, *now.Policy)
		if err != nil {
			return operation.Forecast{}, err
		}
		foreseeMove(&forecast, contrast.Contrast)
	}
	if err := now.Decide(); err != nil {
		return forecast, err
	}
	order, err := s.order(ctx, call, now, r.Body)
	if err != nil {
		return forecast, err
	}
	_, prepared := s.prepareDelivery(ctx, &order)
	if prepared != nil && failed(prepared.Code) {
		if prepared.Code == outcome.NotSent && prepared.Cause != nil {
			return forecast, prepared.Cause // it is not the call that would fail
		}
		if prepared.Code == outcome.Unreachable { // before anything is counted
			return forecast, prepared.fault()
		}
	}
	refused, err := s.Store.WhyNot(ctx, order.Command)
	if err != nil {
		return forecast, err
	}
	if refused != nil {
		if r, waits := errors.AsType[*approval.Refusal](refused); waits && r.Verdict != approval.Refused {
			forecast.RequiresConfirmation = forecast.Impact == approval.HighImpact
		}
		return forecast, s.refusal(refused)
	}
	if prepared != nil && failed(prepared.Code) {
		return forecast, fault.From(prepared.fault())
	}
	return forecast, nil
}

// forecast describes what the command does to its device.
func (s Situation) forecast() operation.Forecast {
	if s.missing != nil {
		return operation.Forecast{}
	}
	row := s.Type.Row()
	effects := slices.Clone(row.EffectsOn(s.Asset.Device))
	if s.Policy != nil {
		effects = append(effects, "The other policy is "+strconv.Quote(s.Policy.Name)+".")
	}
	return operation.Forecast{Devices: 1, Effects: effects, Irreversible: row.Irreversible}
}

// foreseeMove says what a move to another policy changes on the device.
func foreseeMove(f *operation.Forecast, c approval.Contrast) {
	f.Impact, f.Irreversible = c.Impact, f.Irreversible || c.Irreversible()
	for _, m := range c.Changes {
		f.Effects = append(f.Effects, fmt.Sprintf("%s: %s, now %s.", m.Setting, m.To, m.From))
	}
	for _, one := range c.Unnamed {
		f.Effects = append(f.Effects, "Differs, too: "+one+".")
	}
	for _, warning := range c.Warnings {
		f.Effects = append(f.Effects, "Warning: "+warning)
	}
}
