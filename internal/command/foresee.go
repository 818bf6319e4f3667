package command

import (
	"context"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
)

// Foresee says what Execute would do now, by the same decisions, as far as it does not
// depend on the vendor. It sends and stores nothing. Its error is Execute's refusal;
// any other means that it could not be found out.
func (s *Service) Foresee(ctx context.Context, call operation.Call, r Request) (operation.Forecast, error) {
	now, err := s.look(ctx, call.Principal, r)
	if err != nil {
		return operation.Forecast{}, err
	}
	forecast := now.forecast()
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
