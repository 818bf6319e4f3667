package cli

import (
	"context"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// DomainCommands say which e-mail domains belong to a company. With one company
// on the installation they are not needed.
type DomainCommands struct {
	Add    DomainAdd    `cmd:"" help:"Say that an e-mail domain belongs to a company."`
	List   DomainList   `cmd:"" help:"List a company's e-mail domains."`
	Remove DomainRemove `cmd:"" help:"Take an e-mail domain from a company; its people can no longer sign in through the company's identity provider."`
}

// OneDomain names a company and a domain.
type OneDomain struct {
	OfCompany
	Domain string `arg:"" help:"The domain, such as example.com."`
}

// normal is the domain in its normal form.
func (d OneDomain) normal() string { return strings.ToLower(strings.TrimSpace(d.Domain)) }

// Validate wants a domain.
func (d OneDomain) Validate() error { return account.CheckDomain(d.normal()) }

// DomainAdd adds a domain.
type DomainAdd struct{ OneDomain }

// Run adds the domain. Adding it again changes nothing.
func (c *DomainAdd) Run(env *Env) error {
	domain := c.normal()
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		added := account.Domain{Name: domain, CompanyID: owner.ID, AddedAt: env.Now()}
		return answerf(viewDomain(owner.Slug, added), "%s belongs to %s.\n", domain, owner.Slug), admin.Domains.AddDomain(ctx, added)
	})
}

// DomainRemove removes a domain.
type DomainRemove struct{ OneDomain }

// Run removes the domain.
func (c *DomainRemove) Run(env *Env) error {
	domain := c.normal()
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		err := admin.Domains.RemoveDomain(ctx, owner.ID, domain)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.NotFound, "company %s has no domain %s: `muster company domain list --company %s` shows those there are",
				owner.Slug, domain, owner.Slug)
		}
		return answerf(domainView{Company: owner.Slug, Domain: domain}, "%s no longer belongs to %s.\n", domain, owner.Slug), err
	})
}

// DomainList lists domains.
type DomainList struct{ OfCompany }

// Run prints the list.
func (c *DomainList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		all, err := admin.Domains.Domains(ctx, owner.ID)
		view := func(d account.Domain) domainView { return viewDomain(owner.Slug, d) }
		return list(all, view, []string{"DOMAIN", "ADDED"}, func(d account.Domain) []string { return []string{d.Name, day(d.AddedAt)} }),
			err
	})
}

type domainView struct {
	Company string               `json:"company"`
	Domain  string               `json:"domain"`
	AddedAt *operation.Timestamp `json:"addedAt,omitempty"`
}

func viewDomain(slug string, d account.Domain) domainView {
	return domainView{slug, d.Name, operation.TimestampOf(d.AddedAt)}
}
