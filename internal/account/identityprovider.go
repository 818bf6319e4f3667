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

// IdentityProvider is a company's own OpenID Connect provider. The zero value stands for none.
type IdentityProvider struct {
	CompanyID string
	Name      string // on the sign-in page
	Issuer    string
	ClientID  string
	Secret    []byte // the client's secret, sealed; empty: none
	// Domains are the domains of the e-mail addresses that the provider signs in. An address of another domain is
	// refused, also if the provider vouches for it.
	Domains []string
	Enabled bool
	// CreatesUsers makes a user with Role for a person who signs in and has none.
	CreatesUsers bool
	Role         Role
	UpdatedAt    time.Time
	// SavedBy is the name of the person who saved the provider last, and SavedRights are the rights that the person had
	// for all policies then; empty and 0: not known.
	SavedBy     string
	SavedRights Right
}

// exceeds reports whether u has a right that neither the users whom the provider makes have, nor the person who saved the
// provider. Who controls the provider can sign in as any user of its domains, and must not gain rights by that.
func (p IdentityProvider) exceeds(u User) bool {
	rights, _ := p.Role.Rights()
	return !(rights | p.SavedRights).Has(u.Rights)
}

// checkRights returns fault.Refused if an enabled provider signs u in and u has more rights than exceeds allows.
func (p IdentityProvider) checkRights(u User) error {
	if !p.Enabled || p.checkDomain(u.Email) != nil || !p.exceeds(u) {
		return nil
	}
	return fault.New(fault.Refused, "cannot give %s these rights: company sign-in for %s was saved by %s, who may do less; save company "+
		"sign-in again first, or give fewer rights",
		u.Email, domainOf(u.Email), p.savedBy())
}

func (p IdentityProvider) savedBy() string { return cmp.Or(p.SavedBy, "a person who is not known") }

// admits returns fault.Refused if the provider must not sign u in: because of the domain of the address, or because u has
// more rights than exceeds allows. known says that u is linked to the provider already. Then rights are compared only
// if SavedRights are known; a provider of before they were stored must be saved again for that.
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

// Check returns nil, or fault.InvalidArguments with every field that is wrong.
func (p IdentityProvider) Check() error {
	var wrong fault.Wrong
	must := wrong.Must
	// ProviderClient decides whether http is allowed: that is a setting of the operator.
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

// checkUnproved is the LinkCheck for a user without a password, whom only the provider identifies. Such a user may have no
// more rights than the users whom the provider makes. p is the provider that the person came back from, now the provider
// as it is stored at the time of the link.
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

// checkProved is the LinkCheck for a user who has proved that the account is theirs. p and now are as in checkUnproved: if
// the issuer or the client has changed in between, the person must start again.
func (p IdentityProvider) checkProved(now IdentityProvider, u User) error {
	if !now.Enabled || now.Issuer != p.Issuer || now.ClientID != p.ClientID {
		return fault.New(fault.Refused, "company sign-in was changed: start again")
	}
	if _, err := enabled(u, nil); err != nil {
		return err
	}
	return now.admits(u, false)
}

// checkDomain returns fault.Refused if the address is not of one of the provider's Domains.
func (p IdentityProvider) checkDomain(email string) error {
	if slices.Contains(p.Domains, domainOf(email)) {
		return nil
	}
	return fault.New(fault.Refused, "addresses at %s do not sign in here", domainOf(email))
}
