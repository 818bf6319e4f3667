package platform

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
)

const (
	operationsLease = "platform/operations"
	operationsTTL   = 5 * time.Minute
	maxPolls        = 100 // commands of one round and state
	// forgotten is how long after a command the vendor may still deliver its
	// notification. An operation that is unknown after that has no outcome.
	forgotten = 7 * 24 * time.Hour
)

// Operations asks the vendor for what became of commands whose notification
// does not come, until the context ends: those that it accepted, and those
// whose answer was lost. One replica at a time does it.
func (p *Platform) Operations(ctx context.Context) error {
	return p.every(ctx, p.cfg.Schedule.Commands, "asking after commands", func(ctx context.Context) error {
		held, err := p.store.Leases.Lease(ctx, operationsLease, p.holder, operationsTTL)
		if err != nil || !held {
			return err
		}
		defer p.release(ctx, operationsLease, p.holder)
		return p.pollDue(ctx)
	})
}

func (p *Platform) pollDue(ctx context.Context) error {
	denied := map[string]bool{}
	for _, state := range []command.State{command.Sent, command.Unconfirmed} {
		now := p.now()
		due, err := p.store.Records.CommandsToPoll(ctx, state, now.Add(-p.cfg.Schedule.FirstPoll), now, maxPolls)
		if err != nil {
			return err
		}
		for _, c := range due {
			if err := p.pollOne(ctx, c, denied); err != nil {
				return err
			}
		}
	}
	return nil
}

// pollOne asks after one command and notes when to ask again. In a company of
// denied, whose enterprise the vendor denied in this round, it only notes that.
// The error ends the round: the quota is used up, or the vendor cannot be reached.
func (p *Platform) pollOne(ctx context.Context, c command.Command, denied map[string]bool) error {
	var err error
	if !denied[c.CompanyID] {
		err = p.resolve(ctx, c)
	}
	switch codeOf(err) {
	case outcome.NotSent, outcome.Throttled:
		return err
	case outcome.Denied:
		denied[c.CompanyID] = true
	default: // the platform answered
	}
	if err != nil {
		level := slog.LevelWarn
		if c.Expired(p.now()) {
			level = slog.LevelDebug // it is asked each minute
		}
		p.log.Log(ctx, level, "cannot tell what became of a command", "command", c.ID, "error", err)
	}
	return p.store.Records.SetPolled(ctx, c.ID, p.askNext(c, err == nil && !denied[c.CompanyID]))
}

// askNext is when to ask after a command again. Before it ends without a word of its device, the platform is asked once
// more, and again until it answers.
func (p *Platform) askNext(c command.Command, answered bool) time.Time {
	now, last := p.now(), c.ExpiresAt()
	next := now.Add(p.cfg.Schedule.after(now.Sub(c.CreatedAt)))
	switch {
	case !answered && c.Expired(now):
		return now.Add(command.AskAgain)
	case last.After(now) && last.Before(next):
		return last
	}
	return next
}

// resolve brings a command to its end if the vendor knows of one.
func (p *Platform) resolve(ctx context.Context, c command.Command) error {
	a, err := p.store.Records.Asset(ctx, c.CompanyID, c.AssetID)
	if err != nil {
		return err
	}
	if a.Device == nil || a.Device.Epoch != c.Epoch {
		return nil // the store ended it, or is about to
	}
	owner, err := p.store.Companies.CompanyByID(ctx, c.CompanyID)
	if err != nil || !owner.Connected() {
		return err
	}
	switch {
	case c.Ref != "":
		return p.resolveByName(ctx, owner, c, a.Device.Name)
	case c.Type == command.ChangePolicy:
		return p.resolveMove(ctx, owner, c, a.Device.Name)
	case c.State == command.Unconfirmed:
		return p.resolveByList(ctx, owner, c, a.Device.Name)
	}
	return nil
}

// resolveByName reads the command's operation.
func (p *Platform) resolveByName(ctx context.Context, owner company.Company, c command.Command, device string) error {
	answer, err := ask(ctx, p, methodGetOperation, background, p.am.Enterprises.Devices.Operations.Get(c.Ref))
	if codeOf(err) == outcome.Missing {
		return p.resolveForgotten(ctx, owner, c, device)
	}
	if err != nil || answer == nil || !answer.Done {
		return err
	}
	o := readOperation(answer)
	o.Name = c.Ref
	return p.consumeLate(ctx, owner, c, &o, p.asOf(answer.Header))
}

// consumeLate is consumeOperation for an operation that was asked after. When the device carried it out is not known, and
// lost mode may have ended or begun again since: the platform's word of the device decides.
func (p *Platform) consumeLate(ctx context.Context, owner company.Company, c command.Command, o *operation, at time.Time) error {
	_, err := p.consumeOperation(ctx, owner, o, at)
	if err == nil && (c.Type == command.StartLostMode || c.Type == command.StopLostMode) {
		_, err = p.revisit(ctx, owner, o.device())
	}
	return err
}

// resolveForgotten deals with an operation that the vendor does not know. If
// the device is gone as well, that settles the command; else the vendor has
// dropped the operation, and after a week nothing can come any more.
func (p *Platform) resolveForgotten(ctx context.Context, owner company.Company, c command.Command, device string) error {
	d, err := p.revisit(ctx, owner, device)
	if err != nil || d == nil || p.now().Sub(c.CreatedAt) < forgotten {
		return err
	}
	_, _, err = p.store.Commands.Settle(ctx, command.Feedback{
		CommandID: c.ID, Outcome: "the platform no longer knows the command, and never told what became of it",
	})
	return err
}

// resolveMove looks at the device: applying its report settles a move that the
// device made, and a move that the vendor does not have in mind will not come.
func (p *Platform) resolveMove(ctx context.Context, owner company.Company, c command.Command, device string) error {
	d, err := p.revisit(ctx, owner, device)
	if err != nil || d == nil || policyID(owner.Enterprise, d.PolicyName) == c.PolicyID {
		return err
	}
	_, _, err = p.store.Commands.Settle(ctx, command.Feedback{
		CommandID: c.ID, Outcome: "the platform holds another policy for the device: the change was overtaken, or never made",
	})
	return err
}

// resolveByList looks for the operation of a command whose answer was lost.
func (p *Platform) resolveByList(ctx context.Context, owner company.Company, c command.Command, device string) error {
	if c.Type.Row().Vendor == "" {
		return nil
	}
	operations, err := p.operationsOf(ctx, device)
	if codeOf(err) == outcome.Missing {
		_, err = p.revisit(ctx, owner, device)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(operations, func(a, b operation) int {
		return int(a.createdAt().Sub(c.CreatedAt).Abs() - b.createdAt().Sub(c.CreatedAt).Abs())
	})
	for _, o := range operations {
		if !slices.Contains(commandTypes(&o.Metadata), c.Type) || o.createdAt().IsZero() {
			continue
		}
		adopted, err := p.adopt(ctx, c, &o)
		if err != nil {
			return err
		}
		if adopted && o.Done {
			err = p.consumeLate(ctx, owner, c, &o, p.now())
		}
		if adopted || err != nil {
			return err
		}
	}
	return nil
}

// adopt gives the command the name of an operation that is no other command's.
func (p *Platform) adopt(ctx context.Context, c command.Command, o *operation) (bool, error) {
	switch _, err := p.store.Records.CommandByRef(ctx, o.Name); {
	case err == nil:
		return false, nil
	case fault.CodeOf(err) != fault.NotFound:
		return false, err
	}
	_, err := p.store.Commands.Adopt(ctx, o.Name, command.Observation{AssetID: c.AssetID, Type: c.Type, IssuedAt: o.createdAt()})
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// maxOperationPages bounds a device's list of operations.
const maxOperationPages = 10

func (p *Platform) operationsOf(ctx context.Context, device string) ([]operation, error) {
	var all []operation
	token := ""
	for range maxOperationPages {
		answer, err := ask(ctx, p, methodListOperations, background,
			p.am.Enterprises.Devices.Operations.List(device+"/operations").PageSize(100).PageToken(token))
		if err != nil {
			return nil, err
		}
		if answer == nil {
			return nil, errors.New("platform: an empty answer")
		}
		for _, o := range answer.Operations {
			if o != nil {
				all = append(all, readOperation(o))
			}
		}
		if token = answer.NextPageToken; token == "" {
			break
		}
	}
	return all, nil
}
