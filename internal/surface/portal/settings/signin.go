package settings

import (
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// signInForm is what the form of the identity provider shows.
type signInForm struct {
	account.IdentityProvider
	Was         account.IdentityProvider // what it is by now
	DomainsText string
	HasSecret   bool
	Redirect    string // to be registered at the provider
	Wrong       map[string]string
	Problem     string
}

func (s *Section) signIn(v *frame.Visit, p account.IdentityProvider) error {
	return s.showSignIn(v, http.StatusOK, signInForm{IdentityProvider: p, Was: p})
}

// provider is the company's, or what the form of a first one begins with.
func (s *Section) provider(v *frame.Visit) (account.IdentityProvider, error) {
	p, err := s.Federation.Providers.Provider(v.Context(), v.Company.ID)
	if fault.CodeOf(err) == fault.NotFound {
		return account.IdentityProvider{CompanyID: v.Company.ID, Role: account.Viewer, Name: v.Company.Name}, nil
	}
	return p, err
}

func (s *Section) showSignIn(v *frame.Visit, status int, f signInForm) error {
	f.DomainsText = strings.Join(f.Domains, "\n")
	f.HasSecret, f.Redirect = len(f.Secret) > 0, v.PublicURL+web.CallbackPath
	return v.ShowStatus(status, "Company sign-in", frame.SettingsPath, signInPage(v, f))
}

// saveSignIn saves the provider. The client's secret is never shown
// again; an empty field leaves it.
func (s *Section) saveSignIn(v *frame.Visit, before account.IdentityProvider) error {
	p := s.given(v, before)
	err := s.Federation.Save(v.Context(), v.User, before, p)
	switch code := fault.CodeOf(err); code {
	case fault.InvalidArguments, fault.Refused, fault.Provider, fault.Forbidden:
		status := frame.Either(code == fault.Forbidden, http.StatusForbidden, http.StatusUnprocessableEntity)
		return s.showSignIn(v, status, signInForm{IdentityProvider: p, Was: before,
			Wrong: frame.Fields(err), Problem: frame.Sentence(fault.From(err).Detail)})
	default: // saved, or a fault of the service
	}
	return v.Finish(frame.CompanySignInPath, err, "Company sign-in saved.")
}

// given is the form's provider. What the form was shown with and still has is left as it is
// by now: as before has it.
func (s *Section) given(v *frame.Visit, before account.IdentityProvider) account.IdentityProvider {
	p := s.withClient(v, before)
	frame.Set(v, "name", &p.Name, trimmed(v, "name"))
	frame.Set(v, "enabled", &p.Enabled, v.Form.Get("enabled") == "true")
	frame.Set(v, "createsUsers", &p.CreatesUsers, v.Form.Get("createsUsers") == "true")
	frame.Set(v, "role", &p.Role, account.Role(v.Form.Get("role")))
	p.Domains = domainsIn(v.Form.Get("domains"))
	if was, sent := v.Was("domains"); sent {
		p.Domains = account.ApplyDifference(before.Domains, domainsIn(was), p.Domains)
	}
	return p
}

// withClient is p with the form's client at the provider, if one of its fields was changed:
// issuer, client ID and secret belong together.
func (s *Section) withClient(v *frame.Visit, p account.IdentityProvider) account.IdentityProvider {
	secret := trimmed(v, "clientSecret")
	if secret == "" && v.Kept("issuer") && v.Kept("clientId") {
		return p
	}
	if issuer := trimmed(v, "issuer"); issuer != p.Issuer {
		p.Issuer, p.Secret = issuer, nil // the secret of one provider is not sent to another
	}
	p.ClientID = trimmed(v, "clientId")
	if secret != "" {
		p.Secret = s.Federation.SealSecret(v.Company.ID, secret)
	}
	return p
}

func domainsIn(text string) []string {
	return strings.Fields(strings.ToLower(strings.ReplaceAll(text, ",", " ")))
}

func secretHelp(f signInForm) string {
	return frame.Either(f.HasSecret, "A secret is stored, encrypted. Leave this empty to keep it.",
		"Stored encrypted and never shown again. Leave this empty for a public client.")
}
