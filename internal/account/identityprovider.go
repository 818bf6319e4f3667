package account

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// IdentityProvider is a company's own OpenID Connect provider.
type IdentityProvider struct {
	CompanyID string
	Name      string // on the sign-in page
	Issuer    string
	ClientID  string
	Secret    []byte // sealed; empty: none
	// Domains are the domains of e-mail addresses that sign in there. All
	// others are refused, whatever the provider says.
	Domains []string
	Enabled bool
	// CreatesUsers lets in people who are not known yet, with Role.
	CreatesUsers bool
	Role         Role
	UpdatedAt    time.Time
	// SavedBy is the name of who saved it last, and SavedRights what that person might do
	// then, with all policies; empty and 0: not known.
	SavedBy     string
	SavedRights Right
}

// exceeds reports whether a user may do more than the users whom the provider makes and
// than the person who saved it, who decides whom it takes for whom.
func (p IdentityProvider) exceeds(u User) bool {
	rights, _ := p.Role.Rights()
	return !(rights | p.SavedRights).Has(u.Rights)
}

// checkRights returns fault.Refused for a user whom the provider signs in and whose rights
// exceed it.
func (p IdentityProvider) checkRights(u User) error {
	if !p.Enabled || p.checkDomain(u.Email) != nil || !p.exceeds(u) {
		return nil
	}
	return fault.New(fault.Refused, "cannot give %s these rights: company sign-in for %s was saved by %s, who may do less; save company "+
		"sign-in again first, or give fewer rights",
		u.Email, domainOf(u.Email), p.savedBy())
}

func (p IdentityProvider) savedBy() string { return cmp.Or(p.SavedBy, "a person who is not known") }

// admits returns fault.Refused for a user whom the provider does not sign in. known is for
// one who is linked already: one whose rights were never compared stays so until the
// provider is saved again.
func (p IdentityProvider) admits(u User, known bool) error {
	if err := p.checkDomain(u.Email); err != nil {
		return err
	}
	if !p.exceeds(u) || known && p.SavedRights == 0 {
		return nil
	}
	return fault.New(fault.Refused, "company sign-in for %s was saved by %s, who may do less than you: sign in with your password or "+
		"passkey, and have an administrator save company sign-in again",
		domainOf(u.Email), p.savedBy())
}

// Check returns fault.InvalidArguments, naming every field at fault.
func (p IdentityProvider) Check() error {
	var wrong fault.Wrong
	must := wrong.Must
	// Whether http is allowed depends on the operator: ProviderClient knows.
	issuer, err := url.Parse(p.Issuer)
	must(err == nil && issuer.Host != "" && (issuer.Scheme == "https" || issuer.Scheme == "http") && issuer.User == nil &&
		issuer.RawQuery == "" && issuer.Fragment == "" && len(p.Issuer) <= 500, "issuer", "must be the provider's https address")
	must(p.ClientID != "" && len(p.ClientID) <= 500, "clientId", "must be the client's id at the provider")
	must(resource.IsLabel(p.Name, 60), "name", "must have 1 to 60 printable characters")
	_, known := p.Role.Rights()
	must(known && p.Role != Admin, "role", "must be manager, operator or viewer")
	must(len(p.Domains) > 0 && len(p.Domains) <= 50 && !slices.ContainsFunc(p.Domains, func(d string) bool { return !IsDomain(d) }),
		"domains", "must be 1 to 50 domains such as example.com")
	return wrong.Err("")
}

// IsDomain reports whether d is a domain of e-mail addresses in its normal form.
func IsDomain(d string) bool {
	_, err := NormalEmail("a@" + d)
	return err == nil && d == strings.ToLower(d) && strings.Contains(d, ".") && len(d) <= 253
}

// checkUnproved is the LinkCheck of a user who has proved nothing here, and whom only the
// provider identifies: they may do no more than the users whom the provider makes.
func (p IdentityProvider) checkUnproved(now IdentityProvider, u User) error {
	if u.PasswordHash != "" {
		return errTooLate()
	}
	if rights, _ := now.Role.Rights(); !rights.Has(u.Rights) {
		return fault.New(fault.Refused, "you may do more than users whom %s makes: open your invitation, and go on with company sign-in "+
			"or set a password there", now.Name)
	}
	return p.checkProved(now, u)
}

// checkProved is the LinkCheck of a user who has proved that the account is theirs. p is the
// provider that the person came back from.
func (p IdentityProvider) checkProved(now IdentityProvider, u User) error {
	if !now.Enabled || now.Issuer != p.Issuer || now.ClientID != p.ClientID {
		return fault.New(fault.Refused, "company sign-in was changed: start again")
	}
	if _, err := enabled(u, nil); err != nil {
		return err
	}
	return now.admits(u, false)
}

// checkDomain returns fault.Refused for an address of a domain that the provider does not, or
// no longer, sign in.
func (p IdentityProvider) checkDomain(email string) error {
	if slices.Contains(p.Domains, domainOf(email)) {
		return nil
	}
	return fault.New(fault.Refused, "addresses at %s do not sign in here", domainOf(email))
}
