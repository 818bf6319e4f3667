package account

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Claims are what a provider says about a person, verified.
type Claims struct {
	Subject       string
	Email         string
	EmailVerified bool
	Name          string
	AuthTime      time.Time // when the person last signed in there; zero: not told
}

// ProviderStore keeps providers, and which user is who there. Each method fails as the database
// does, and with the faults that it names.
type ProviderStore interface {
	// Provider returns the company's provider, or fault.NotFound.
	Provider(ctx context.Context, companyID string) (IdentityProvider, error)
	// ProviderByDomain returns the enabled provider of the company that has the domain, or
	// fault.NotFound.
	ProviderByDomain(ctx context.Context, domain string) (IdentityProvider, error)
	// HasProviders reports whether any company has one that is enabled.
	HasProviders(ctx context.Context) (bool, error)
	// SaveProvider saves a provider unless check, which gets the provider that there is
	// (zero: none) and the company's users, refuses; nothing of either changes before it is saved. It is fault.Refused
	// if a domain does not belong to the company.
	SaveProvider(ctx context.Context, p IdentityProvider, check func(now IdentityProvider, users []User) error) error
	// IdentityUser returns the user to whom the provider's account is linked, or
	// fault.NotFound.
	IdentityUser(ctx context.Context, companyID, issuer, subject string) (userID string, err error)
	// LinkIdentity links a user, who is made first if made is not nil, unless check refuses;
	// neither the user nor the provider changes between check and link. It fails with
	// fault.NotFound without the user or the provider, fault.Refused if the account is linked to
	// another user, and fault.Forbidden while changes in the portal are stopped.
	LinkIdentity(ctx context.Context, l IdentityLink, made *User, check LinkCheck) error
	// LinkInvited is LinkIdentity of a user whose invitation it takes: fault.NotFound or
	// fault.Refused if that is over.
	LinkInvited(ctx context.Context, token access.SecretHash, l IdentityLink, by Inviter, check LinkCheck) (User, error)
}

// LinkCheck decides about a link, by the provider and the user as they are then.
type LinkCheck func(p IdentityProvider, u User) error

// IdentityLink says that a subject at an issuer is a user.
type IdentityLink struct {
	CompanyID string `json:"companyId"`
	UserID    string `json:"userId"`
	Issuer    string `json:"issuer"`
	Subject   string `json:"subject"`
}

// ProviderClient speaks OpenID Connect. secret is the client's, open. Each method fails with
// fault.Provider if the provider does not answer, or its description does not follow OpenID Connect.
type ProviderClient interface {
	// Check asks the provider for its description, without a cache.
	Check(ctx context.Context, p IdentityProvider) error
	// Address is where the person is sent. If signIn.Proves is set, the provider is
	// asked to have them sign in again although they are signed in there.
	Address(ctx context.Context, p IdentityProvider, signIn ProviderSignIn) (string, error)
	// Exchange redeems the code that the person brought back and returns what the provider
	// says of them; fault.Refused if the answer is not one to signIn, or the provider refuses
	// the code.
	Exchange(ctx context.Context, p IdentityProvider, secret string, signIn ProviderSignIn, back Return) (Claims, error)
}

// Domain is a domain of e-mail addresses that belongs to a company. The operator
// says so; the only company of an installation is given what it names.
type Domain struct {
	Name      string
	CompanyID string
	AddedAt   time.Time
}

// DomainStore keeps domains. Each method fails as the database does, and with the faults that it names.
type DomainStore interface {
	AddDomain(ctx context.Context, d Domain) error // fault.Refused if it is another company's
	// RemoveDomain ends company sign-in for the domain; fault.NotFound if it is
	// not the company's.
	RemoveDomain(ctx context.Context, companyID, domain string) error
	// Domains returns a company's domains, by name.
	Domains(ctx context.Context, companyID string) ([]Domain, error)
}

// DomainOwners knows whose domains are. It fails as the database does.
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
