package account

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// Federation signs people in by their company's own provider.
type Federation struct {
	Providers ProviderStore
	Users     UserStore
	Passkeys  PasskeyStore
	Steps     PendingStore
	Client    ProviderClient
	Sealer    access.Sealer
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

// Save saves a provider on behalf of a user. A provider decides who its
// company's users are, so it takes the right to manage users, and every right
// and policy of each user whose address is in its domains. It is fault.Refused if the
// provider is no longer the one that was seen: asking it takes a while.
func (s Federation) Save(ctx context.Context, by User, seen, p IdentityProvider) error {
	if missing := (ManageCompany | ManageUsers) &^ by.Rights; missing != 0 {
		return fault.New(fault.Forbidden, "saving company sign-in needs the right %s: an administrator can grant it",
			strings.Join(missing.Names(), " and "))
	}
	if err := p.Check(); err != nil {
		return err
	}
	if rights, _ := p.Role.Rights(); !by.Rights.Has(rights) || by.Policies != nil && p.CreatesUsers {
		return fault.InvalidField("role", "may do more than you")
	}
	if p.Enabled {
		if err := s.Client.Check(ctx, p); err != nil {
			return err
		}
	}
	if p.SavedBy, p.SavedRights = by.Name, by.Rights; by.Policies != nil {
		p.SavedRights = 0
	}
	return s.Providers.SaveProvider(ctx, p, func(now IdentityProvider, users []User) error {
		if !now.UpdatedAt.Equal(seen.UpdatedAt) || !now.UpdatedAt.IsZero() && !reflect.DeepEqual(now, seen) {
			return fault.New(fault.Refused, "another administrator saved company sign-in while the provider was asked: nothing of "+
				"yours is saved; save again to add it to theirs")
		}
		for _, u := range users {
			if slices.Contains(p.Domains, domainOf(u.Email)) && u.MayDoMoreThan(by) {
				return fault.New(fault.Forbidden, "cannot save company sign-in for %s: %s may do more than you; an administrator "+
					"can save it", domainOf(u.Email), u.Name)
			}
		}
		return nil
	})
}

// ProviderResult is how a sign-in at a provider ended: which user the person is.
type ProviderResult struct {
	User   User
	SignIn ProviderSignIn
	// ProvedAt is when the provider last asked the person to sign in; zero if it
	// does not say.
	ProvedAt time.Time
	// Confirm, if set, is the token of a LinkingIdentity step: the person has an
	// account here that was never signed in to by this provider, and first
	// proves that it is theirs.
	Confirm string
	// InvitedBy, if set, is who made the invitation that the person accepted.
	InvitedBy string
}

// Finish signs in a person who comes back from the provider to which StartByEmail,
// StartInvited or StartProof sent them. It fails with fault.Refused, and the reason in
// words, if the person may not sign in.
func (s Federation) Finish(ctx context.Context, cookie string, back Return) (ProviderResult, error) {
	signIn, err := s.open(cookie, back.State)
	if err != nil {
		return ProviderResult{}, err
	}
	result := ProviderResult{SignIn: signIn}
	p, err := s.Providers.Provider(ctx, signIn.CompanyID)
	if err == nil && !p.Enabled {
		err = fault.New(fault.Refused, "company sign-in was turned off")
	}
	if err != nil {
		return result, err
	}
	secret, err := s.openSecret(p)
	if err != nil {
		return result, err
	}
	claims, err := s.Client.Exchange(ctx, p, secret, signIn, back)
	if err != nil {
		return result, err
	}
	result.ProvedAt = claims.AuthTime
	if signIn.Proves != "" && s.Now().Sub(claims.AuthTime) > ReauthFresh {
		return result, fault.New(fault.Refused, "%s did not ask you to sign in again, so it proves nothing", p.Name)
	}
	if err := s.resolve(ctx, p, claims, &result); err != nil {
		return result, err
	}
	return result, signIn.checkProves(result.User.ID, result.User.Email)
}

// checkProves refuses a proof of one user's identity by another, or by who is no user: id is empty.
func (s ProviderSignIn) checkProves(id, email string) error {
	if s.Proves != "" && s.Proves != id {
		return fault.New(fault.Refused, "you came back as another user, %s", email)
	}
	return nil
}

// resolve finds, links or makes the user. An address counts only if the
// provider verified it and its domain is the company's.
func (s Federation) resolve(ctx context.Context, p IdentityProvider, c Claims, result *ProviderResult) error {
	id, err := s.Providers.IdentityUser(ctx, p.CompanyID, p.Issuer, c.Subject)
	if err == nil {
		if result.User, err = enabled(s.Users.UserByID(ctx, p.CompanyID, id)); err == nil {
			err = p.admits(result.User, true)
		}
		return err
	}
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	email, err := NormalEmail(c.Email)
	if err != nil || !c.EmailVerified {
		return fault.New(fault.Refused, "%s has not verified your e-mail address", p.Name)
	}
	if err := p.checkDomain(email); err != nil {
		return err
	}
	if result.SignIn.Invitation != "" {
		return s.linkInvited(ctx, p, c.Subject, email, result)
	}
	u, err := s.Users.UserByEmail(ctx, email)
	if err == nil || fault.CodeOf(err) == fault.NotFound {
		if wrong := result.SignIn.checkProves(u.ID, email); wrong != nil {
			return wrong
		}
	}
	switch {
	case err == nil && u.CompanyID != p.CompanyID:
		return fault.New(fault.Refused, "your address belongs to another company here")
	case err == nil:
		return s.linkFirst(ctx, p, c, u, result)
	case fault.CodeOf(err) != fault.NotFound:
		return err
	case !p.CreatesUsers:
		return fault.New(fault.Refused, "you are not a user here yet: ask an administrator to invite %s", email)
	}
	result.User = s.newUser(p, email, c.Name)
	return s.Providers.LinkIdentity(ctx, IdentityLink{p.CompanyID, result.User.ID, p.Issuer, c.Subject}, &result.User, p.checkUnproved)
}

// linkInvited accepts an invitation: its token proves that the account is the person's, and
// the provider that the person has its address.
func (s Federation) linkInvited(ctx context.Context, p IdentityProvider, subject, email string, result *ProviderResult) error {
	u, by, err := invitedBy(ctx, s.Steps, s.Users, result.SignIn.Invitation)
	if err == nil && (u.CompanyID != p.CompanyID || u.Email != email) {
		err = fault.New(fault.Refused, "you came back as %s, and the invitation is for %s", email, u.Email)
	}
	if err != nil {
		return err
	}
	result.InvitedBy = by.Name
	link := IdentityLink{p.CompanyID, u.ID, p.Issuer, subject}
	result.User, err = s.Providers.LinkInvited(ctx, access.HashSecret(result.SignIn.Invitation), link, by, p.checkProved)
	if fault.CodeOf(err) == fault.NotFound {
		err = errInvitationOver()
	}
	return err
}

// linkFirst links a user who exists. One who has a password or a passkey proves
// once that the account is theirs: without that, the person who set the provider up could get
// into any account of its domains. A user who has neither is linked without a proof if they
// may do no more than users whom the provider makes, and none is linked whom the issuer knows
// by another subject: the address may be another person's by then. One who may do more was
// invited, and accepts the invitation with its token.
func (s Federation) linkFirst(ctx context.Context, p IdentityProvider, c Claims, u User, result *ProviderResult) (err error) {
	if result.User, err = enabled(u, nil); err != nil {
		return err
	}
	link := IdentityLink{p.CompanyID, u.ID, p.Issuer, c.Subject}
	known, err := s.Passkeys.Passkeys(ctx, u.ID)
	if err != nil {
		return err
	}
	if u.PasswordHash == "" && len(known) == 0 {
		return s.Providers.LinkIdentity(ctx, link, nil, p.checkUnproved)
	}
	if err := p.checkProved(p, u); err != nil {
		return err
	}
	data, err := json.Marshal(Linking{IdentityLink: link, Next: result.SignIn.Next, Provider: p.Name, ClientID: p.ClientID})
	if err != nil {
		return err
	}
	result.Confirm, err = Begin(ctx, s.Steps, PendingSignIn{Kind: LinkingIdentity, CompanyID: u.CompanyID, UserID: u.ID, Data: data,
		ExpiresAt: s.Now().Add(PendingLife)})
	return err
}

// Linking is what a LinkingIdentity step goes on with.
type Linking struct {
	IdentityLink
	Next     string `json:"next"`
	Provider string `json:"provider"` // its name
	ClientID string `json:"clientId"`
}

// Linking shows the step that a token is for, and its user; fault.Refused if it
// is over.
func (s Federation) Linking(ctx context.Context, token string) (l Linking, u User, err error) {
	step, err := s.Steps.Step(ctx, access.HashSecret(token), LinkingIdentity)
	if fault.CodeOf(err) == fault.NotFound {
		return l, u, errTooLate()
	}
	if err == nil {
		err = json.Unmarshal(step.Data, &l)
	}
	if err == nil {
		u, err = enabled(s.Users.UserByID(ctx, step.CompanyID, step.UserID))
	}
	return l, u, err
}

// Link links the user of the step, who has proved that the account is theirs.
func (s Federation) Link(ctx context.Context, token string, l Linking) error {
	_, err := s.Steps.TakeStep(ctx, access.HashSecret(token), LinkingIdentity)
	if fault.CodeOf(err) == fault.NotFound {
		return errTooLate()
	}
	if err != nil {
		return err
	}
	return s.Providers.LinkIdentity(ctx, l.IdentityLink, nil, IdentityProvider{Issuer: l.Issuer, ClientID: l.ClientID}.checkProved)
}

func errTooLate() error {
	return fault.New(fault.Refused, "this sign-in took too long or was used already: start again")
}

// newUser is one whom the provider makes.
func (s Federation) newUser(p IdentityProvider, email, called string) User {
	if called = strings.TrimSpace(called); !resource.IsLabel(called, MaxUserName) {
		called = email
	}
	rights, _ := p.Role.Rights() // Check knows the role
	return User{ID: resource.NewID(), CompanyID: p.CompanyID, Email: email, Name: called, Role: p.Role, Rights: rights, CreatedAt: s.Now()}
}

func enabled(u User, err error) (User, error) {
	if err == nil && u.Disabled {
		err = fault.New(fault.Refused, "your account is disabled: ask an administrator")
	}
	return u, err
}

func domainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }
