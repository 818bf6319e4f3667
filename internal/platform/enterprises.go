package platform

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
)

// Enterprises notes which companies' enterprises the platform no longer has, until the
// context ends. Over all replicas it looks once in Schedule.Enterprises.
func (p *Platform) Enterprises(ctx context.Context) error {
	return p.every(ctx, p.cfg.Schedule.Enterprises/2, "listing enterprises", func(ctx context.Context) error {
		// The lease is not given back: it says that this was done.
		held, err := p.store.Leases.Lease(ctx, "platform/enterprises", resource.NewLeaseHolder("platform"),
			p.cfg.Schedule.Enterprises*9/10)
		if err != nil || !held {
			return err
		}
		return p.noteLost(ctx)
	})
}

func (p *Platform) noteLost(ctx context.Context) error {
	owners, err := p.store.Companies.Companies(ctx)
	if err != nil || !slices.ContainsFunc(owners, company.Company.Connected) {
		return err
	}
	listed, err := p.displayNames(ctx, background)
	if err != nil {
		return err
	}
	known, err := p.store.Enterprises.EnterpriseTroubles(ctx)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if _, has := listed[owner.Enterprise]; owner.Connected() {
			err = errors.Join(err, p.noteOne(ctx, owner, has, !known[owner.ID].LostSince.IsZero()))
		}
	}
	return err
}

// noteOne notes whether the platform has a company's enterprise. What is lost is not
// asked for again until it is in the list.
func (p *Platform) noteOne(ctx context.Context, owner company.Company, listed, knownLost bool) error {
	if listed != knownLost {
		return nil
	}
	if !listed {
		if lost, err := p.lacks(ctx, owner); err != nil || !lost {
			return err
		}
		p.log.ErrorContext(ctx, "the platform does not have a company's enterprise", slog.String("company", owner.Slug),
			slog.String("enterprise", owner.Enterprise), slog.String("remedy", disconnectRemedy(owner)))
	}
	return p.store.Enterprises.SetEnterpriseLost(ctx, owner.ID, owner.Enterprise, !listed, p.now())
}

func disconnectRemedy(owner company.Company) string {
	return "restore it at the platform, or `muster company disconnect --company " + owner.Slug + " --confirm " + owner.Slug + "`"
}

// displayNames lists the project's enterprises, completely: by their names, what people call them.
func (p *Platform) displayNames(ctx context.Context, r rank) (map[string]string, error) {
	names, token := map[string]string{}, ""
	for {
		answer, err := ask(ctx, p, methodListEnterprises, r,
			p.am.Enterprises.List().ProjectId(p.cfg.Project).PageSize(100).PageToken(token))
		if err != nil {
			return nil, err
		}
		for _, e := range answer.Enterprises {
			if e != nil {
				names[e.Name] = e.EnterpriseDisplayName
			}
		}
		if answer.NextPageToken == "" || answer.NextPageToken == token {
			return names, nil
		}
		token = answer.NextPageToken
	}
}

// lacks asks the platform by name for an enterprise that is in no list. That it is
// denied says the same as that it is missing: the platform took our credentials for
// the list.
func (p *Platform) lacks(ctx context.Context, owner company.Company) (bool, error) {
	err := p.enterpriseExists(ctx, owner.Enterprise)
	if code := codeOf(err); code == outcome.Missing || code == outcome.Denied {
		return true, nil
	}
	return false, err
}

// strangers remembers the enterprises of other installations whose notifications came
// here, so that each is logged once and noted at most once a minute.
type strangers struct {
	mu    sync.Mutex
	noted map[string]time.Time
}

// maxStrangers bounds what is remembered.
const maxStrangers = 1000

// note reports whether an enterprise is new, and whether it is time to note it again.
func (s *strangers) note(enterprise string, now time.Time) (first, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.noted[enterprise]
	if known && now.Sub(last).Abs() < time.Minute || !known && len(s.noted) >= maxStrangers {
		return false, false
	}
	if s.noted == nil {
		s.noted = map[string]time.Time{}
	}
	s.noted[enterprise] = now
	return !known, true
}

const (
	// foreignFor is how long a notification of an enterprise that no company here has
	// is given back, for the installation that has it.
	foreignFor = 10 * time.Minute
	// It is asked for again after as long as it is old, within these.
	soonestAgain, latestAgain = time.Second, 10 * time.Second
)

// consumeForeign handles a notification of an enterprise that no company here has.
// Another installation uses the same subscription, and gets what is given back.
func (p *Platform) consumeForeign(ctx context.Context, n *notification, enterprise string) (string, error) {
	former, err := p.store.Enterprises.FormerEnterprise(ctx, enterprise)
	switch {
	case err != nil:
		return failed, err
	case former:
		return ignored, nil
	}
	first, due := p.strangers.note(enterprise, p.now())
	if due {
		err = p.store.Enterprises.NoteForeign(ctx, enterprise, p.now())
	}
	if first {
		p.log.WarnContext(ctx, "notifications of another installation's enterprise: give each installation a topic and a "+
			"subscription of its own",
			slog.String("enterprise", oneLine(enterprise)), slog.String("subscription", p.cfg.Subscription))
	}
	return Foreign, err
}

// again is when a notification with this outcome is asked for again; zero: it is
// acknowledged.
func (p *Platform) again(n *notification, result string) time.Duration {
	age := p.now().Sub(n.published)
	switch {
	case result == failed:
		return redeliverAfter
	case result == Foreign && age < foreignFor:
		return min(max(age, soonestAgain), latestAgain).Truncate(time.Second)
	}
	return 0
}

// Disconnect gives up a company's enterprise. One that the platform no longer has is
// forgotten: its devices end, and it stays open what became of their commands. One
// that lives is deleted at the platform, and that is refused (fault.Refused) while it
// manages devices. What is to be given up is stored before the platform is told, and
// everything may be done again: after a kill, call it again.
func (p *Platform) Disconnect(ctx context.Context, companyID string) (company.Company, error) {
	owner, err := p.store.Companies.CompanyByID(ctx, companyID)
	if err != nil {
		return company.Company{}, err
	}
	if !owner.Connected() {
		return company.Company{}, fault.New(fault.Refused, "the company is not connected to the platform")
	}
	listed, err := p.displayNames(ctx, urgent)
	if err != nil {
		return company.Company{}, notBound(err)
	}
	lost := false
	if _, has := listed[owner.Enterprise]; !has {
		if lost, err = p.lacks(ctx, owner); err != nil {
			return company.Company{}, notBound(err)
		}
	}
	if err := p.store.Enterprises.BeginDisconnection(ctx, owner.ID, owner.Enterprise, lost, p.now()); err != nil {
		return company.Company{}, err
	}
	if !lost {
		if err := p.deleteEnterprise(ctx, owner); err != nil {
			return company.Company{}, err
		}
	}
	if err := p.store.Enterprises.FinishDisconnection(ctx, owner.ID, owner.Enterprise, p.now()); err != nil {
		return company.Company{}, err
	}
	return p.store.Companies.CompanyByID(ctx, companyID)
}

// deleteEnterprise deletes an enterprise without devices. The intent to do so is taken
// back where the platform certainly did nothing.
func (p *Platform) deleteEnterprise(ctx context.Context, owner company.Company) error {
	devices, err := p.deviceNames(ctx, owner.Enterprise)
	switch {
	case err != nil:
		err = notBound(err)
	case len(devices) > 0:
		err = fault.New(fault.Refused, "%d devices are managed through %s at the platform: wipe them or relinquish their ownership first",
			len(devices), owner.Enterprise)
	default:
		_, failure := ask(ctx, p, methodDeleteEnterprise, urgent, p.am.Enterprises.Delete(owner.Enterprise))
		switch codeOf(failure) {
		case outcome.Done, outcome.Missing:
			return nil
		case outcome.Unknown:
			return fault.New(fault.Provider, "it is not known whether the platform deleted %s: run the command again",
				owner.Enterprise).Because(failure)
		default: // it failed
		}
		err = notBound(failure)
	}
	return errors.Join(err, p.store.Enterprises.CancelDisconnection(ctx, owner.Enterprise))
}
