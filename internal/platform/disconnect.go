package platform

import (
	"context"
	"errors"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
)

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
	listed, err := p.enterpriseNames(ctx, urgent)
	if err != nil {
		return company.Company{}, notBound(err)
	}
	lost := false
	if !listed[owner.Enterprise] {
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
