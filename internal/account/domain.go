package account

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// Domain is a domain of e-mail addresses that belongs to a company. The operator
// says so; the only company of an installation is given what it names.
type Domain struct {
	Name      string
	CompanyID string
	AddedAt   time.Time
}

// DomainStore keeps domains.
type DomainStore interface {
	AddDomain(ctx context.Context, d Domain) error // fault.Refused if it is another company's
	// RemoveDomain ends company sign-in for the domain; fault.NotFound if it is
	// not the company's.
	RemoveDomain(ctx context.Context, companyID, domain string) error
	// Domains returns a company's domains, by name.
	Domains(ctx context.Context, companyID string) ([]Domain, error)
}

// DomainOwners knows whose domains are.
type DomainOwners interface {
	// ForeignDomain reports whether a domain belongs to another company.
	ForeignDomain(ctx context.Context, companyID, domain string) (bool, error)
}

// CheckDomain returns fault.InvalidArguments unless d is a domain such as
// example.com.
func CheckDomain(d string) error {
	if IsDomain(d) {
		return nil
	}
	return fault.Invalid("the domain must be such as example.com",
		fault.Field{Field: "domain", Message: "must be a domain such as example.com, in lower case"})
}
