package access

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"
)

// IdentityProvider is a company's own OpenID Connect provider.
type IdentityProvider struct {
	CompanyID string
	Name      string // on the sign-in page
	Issuer    string
	ClientID  string
	Secret    []byte // sealed; empty: none
	// Domains are the domains of e-mail addresses that sign in there. Nobody
	// else is let in, whatever the provider says.
	Domains []string
	Enabled bool
	// CreatesUsers lets in people who are not known yet, with Role.
	CreatesUsers bool
	Role         Role
	UpdatedAt    time.Time
}

// Check returns fault.InvalidArguments, naming every field at fault.
func (p IdentityProvider) Check() error {
	var faults []fault.Field
	must := func(kept bool, field, message string) {
		if !kept {
			faults = append(faults, fault.Field{Field: field, Message: message})
		}
	}
	issuer, err := url.Parse(p.Issuer)
	local := err == nil && (issuer.Hostname() == "localhost" || issuer.Hostname() == "127.0.0.1")
	must(err == nil && issuer.Host != "" && (issuer.Scheme == "https" || issuer.Scheme == "http" && local) && issuer.RawQuery == "" && issuer.Fragment == "",
		"issuer", "must be the provider's https address")
	must(p.ClientID != "" && len(p.ClientID) <= 500, "clientId", "must be the client's id at the provider")
	must(name.IsLabel(p.Name, 60), "name", "must have 1 to 60 printable characters")
	_, known := p.Role.Rights()
	must(known && p.Role != Admin, "role", "must be manager, operator or viewer")
	must(len(p.Domains) > 0 && len(p.Domains) <= 50 && !slices.ContainsFunc(p.Domains, func(d string) bool { return !isDomain(d) }),
		"domains", "must be 1 to 50 domains such as example.com")
	if len(faults) > 0 {
		return fault.Invalid(faults[0].Field+" "+faults[0].Message, faults...)
	}
	return nil
}

func isDomain(d string) bool {
	_, err := NormalEmail("a@" + d)
	return err == nil && d == strings.ToLower(d) && strings.Contains(d, ".") && len(d) <= 253
}

// Claims are what a provider says about a person, verified.
type Claims struct {
	Subject       string
	Email         string
	EmailVerified bool
	Name          string
	AuthTime      time.Time // when the person last signed in there; zero: not told
}

// ProviderStore keeps providers and who is who there.
type ProviderStore interface {
	Provider(ctx context.Context, companyID string) (IdentityProvider, error)
	ProviderByDomain(ctx context.Context, domain string) (IdentityProvider, error) // enabled ones
	SaveProvider(ctx context.Context, p IdentityProvider) error                    // fault.Refused if a domain is another company's
	IdentityUser(ctx context.Context, companyID, issuer, subject string) (userID string, err error)
	LinkIdentity(ctx context.Context, companyID, issuer, subject, userID string) error
}

// ProviderClient speaks OpenID Connect. secret is the client's, open.
type ProviderClient interface {
	// Address is where the person is sent; anew asks the provider to have them
	// sign in again although they are signed in there.
	Address(ctx context.Context, p IdentityProvider, secret, state, nonce, verifier string, anew bool) (string, error)
	Exchange(ctx context.Context, p IdentityProvider, secret, code, nonce, verifier string) (Claims, error)
}

// Sealer seals with the service's own keys, which are not in the database.
type Sealer interface {
	Seal(purpose string, data []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// Federation lets people in by their company's own provider.
type Federation struct {
	Providers ProviderStore
	Users     UserStore
	Steps     StepStore
	Client    ProviderClient
	Sealer    Sealer
	Now       func() time.Time
}

// SealSecret seals a client's secret for one company.
func (s Federation) SealSecret(companyID, secret string) []byte {
	if secret == "" {
		return nil
	}
	return s.Sealer.Seal("identity provider of "+companyID, []byte(secret))
}

func (s Federation) openSecret(p IdentityProvider) (string, error) {
	if len(p.Secret) == 0 {
		return "", nil
	}
	secret, err := s.Sealer.Open("identity provider of "+p.CompanyID, p.Secret)
	return string(secret), err
}

// Journey is somebody on the way to their provider and back.
type Journey struct {
	Next   string `json:"next"`   // where they go then
	Proves string `json:"proves"` // the user who proves anew who they are; empty: signs in
	Nonce  string `json:"nonce"`
	PKCE   string `json:"pkce"`
}

// StartByEmail begins the sign-in of somebody with the address: fault.NotFound
// if no provider serves its domain.
func (s Federation) StartByEmail(ctx context.Context, email, next string) (address, state string, err error) {
	normal, err := NormalEmail(email)
	if err != nil {
		return "", "", err
	}
	p, err := s.Providers.ProviderByDomain(ctx, domainOf(normal))
	if err != nil {
		return "", "", err
	}
	return s.start(ctx, p, Journey{Next: next}, false)
}

// StartProof begins to prove anew that it is u.
func (s Federation) StartProof(ctx context.Context, u UserAccount, next string) (address, state string, err error) {
	p, err := s.Providers.Provider(ctx, u.CompanyID)
	if err == nil && !p.Enabled {
		err = fault.New(fault.NotFound, "company sign-in is turned off")
	}
	if err != nil {
		return "", "", err
	}
	return s.start(ctx, p, Journey{Next: next, Proves: u.ID}, true)
}

func (s Federation) start(ctx context.Context, p IdentityProvider, j Journey, anew bool) (address, state string, err error) {
	secret, err := s.openSecret(p)
	if err != nil {
		return "", "", err
	}
	j.Nonce, j.PKCE = randomText(secretLength), randomText(64)
	data, err := json.Marshal(j)
	if err != nil {
		return "", "", err
	}
	state, err = Begin(ctx, s.Steps, Step{Kind: AtProvider, CompanyID: p.CompanyID, UserID: j.Proves, Data: data, ExpiresAt: s.Now().Add(StepLife)})
	if err != nil {
		return "", "", err
	}
	address, err = s.Client.Address(ctx, p, secret, state, j.Nonce, j.PKCE, anew)
	return address, state, err
}

// Finish ends what Start began: it returns who has come back. It fails with
// fault.Refused, with what is wrong in words, if nobody is let in.
func (s Federation) Finish(ctx context.Context, state, code string) (UserAccount, Journey, error) {
	step, err := s.Steps.TakeStep(ctx, HashSecret(state), AtProvider)
	if fault.CodeOf(err) == fault.NotFound {
		return UserAccount{}, Journey{}, fault.New(fault.Refused, "this sign-in took too long, or was used already: start again")
	}
	var j Journey
	if err == nil {
		err = json.Unmarshal(step.Data, &j)
	}
	if err != nil {
		return UserAccount{}, j, err
	}
	p, err := s.Providers.Provider(ctx, step.CompanyID)
	if err == nil && !p.Enabled {
		err = fault.New(fault.Refused, "company sign-in was turned off")
	}
	if err != nil {
		return UserAccount{}, j, err
	}
	secret, err := s.openSecret(p)
	if err != nil {
		return UserAccount{}, j, err
	}
	claims, err := s.Client.Exchange(ctx, p, secret, code, j.Nonce, j.PKCE)
	if err != nil {
		return UserAccount{}, j, err
	}
	if j.Proves != "" && s.Now().Sub(claims.AuthTime) > ReauthFresh {
		return UserAccount{}, j, fault.New(fault.Refused, "%s did not ask you to sign in again, so it proves nothing", p.Name)
	}
	u, err := s.resolve(ctx, p, claims)
	if err == nil && j.Proves != "" && u.ID != j.Proves {
		return UserAccount{}, j, fault.New(fault.Refused, "you came back as %s, who is somebody else", u.Email)
	}
	return u, j, err
}

// resolve finds, links or makes the user. An address counts only if the
// provider verified it and its domain is the company's.
func (s Federation) resolve(ctx context.Context, p IdentityProvider, c Claims) (UserAccount, error) {
	id, err := s.Providers.IdentityUser(ctx, p.CompanyID, p.Issuer, c.Subject)
	if err == nil {
		u, err := s.Users.UserByID(ctx, p.CompanyID, id)
		return enabled(u, err)
	}
	if fault.CodeOf(err) != fault.NotFound {
		return UserAccount{}, err
	}
	email, err := NormalEmail(c.Email)
	if err != nil || !c.EmailVerified {
		return UserAccount{}, fault.New(fault.Refused, "%s has not verified your e-mail address", p.Name)
	}
	if !slices.Contains(p.Domains, domainOf(email)) {
		return UserAccount{}, fault.New(fault.Refused, "addresses at %s do not sign in here", domainOf(email))
	}
	u, err := s.Users.UserByEmail(ctx, email)
	switch {
	case err == nil && u.CompanyID != p.CompanyID:
		return UserAccount{}, fault.New(fault.Refused, "your address belongs to another company here")
	case err == nil:
		if u, err = enabled(u, nil); err != nil {
			return UserAccount{}, err
		}
	case fault.CodeOf(err) != fault.NotFound:
		return UserAccount{}, err
	case !p.CreatesUsers:
		return UserAccount{}, fault.New(fault.Refused, "you are not a user here yet: ask an administrator to invite %s", email)
	default:
		if u, err = s.create(ctx, p, email, c.Name); err != nil {
			return UserAccount{}, err
		}
	}
	return u, s.Providers.LinkIdentity(ctx, p.CompanyID, p.Issuer, c.Subject, u.ID)
}

func (s Federation) create(ctx context.Context, p IdentityProvider, email, called string) (UserAccount, error) {
	if called = strings.TrimSpace(called); !name.IsLabel(called, MaxUserName) {
		called = email
	}
	rights, _ := p.Role.Rights() // Check knows the role
	u := UserAccount{ID: name.NewID(), CompanyID: p.CompanyID, Email: email, Name: called, Role: p.Role, Rights: rights, CreatedAt: s.Now()}
	return u, s.Users.CreateUser(ctx, u)
}

func enabled(u UserAccount, err error) (UserAccount, error) {
	if err == nil && u.Disabled {
		err = fault.New(fault.Refused, "your account is disabled: ask an administrator")
	}
	return u, err
}

func domainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }
