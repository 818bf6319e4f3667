package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/surface/web"
)

// Consent asks a signed-in person whether a client may act for them. It asks
// every time: an earlier consent, or a session, never answers for the person.
type Consent struct {
	Server    *Server
	Sessions  web.Sessions
	Companies company.Store
}

// Mount adds the authorize endpoint.
func (c Consent) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET "+AuthorizePath, c.ask)
	mux.HandleFunc("POST "+AuthorizePath, c.decide)
}

const maxConsentForm = 32 << 10 // bytes

// ask checks the request, has the person sign in, and shows the question.
func (c Consent) ask(w http.ResponseWriter, r *http.Request) {
	a, err := c.Server.parseAuthorization(r, r.URL.Query())
	if err != nil {
		c.refuse(w, r, a, err)
		return
	}
	v, ok := c.person(w, r, r.URL.RequestURI())
	if !ok || !c.enabled(w, r, v) {
		return
	}
	c.show(w, r, a, v)
}

// decide carries out the person's answer.
func (c Consent) decide(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxConsentForm)
	var query url.Values
	err := r.ParseForm()
	if err == nil {
		query, err = url.ParseQuery(r.PostForm.Get("request"))
	}
	if err != nil {
		c.notice(w, r, http.StatusBadRequest, "This form cannot be read", "Go back to the application and start again.")
		return
	}
	a, err := c.Server.parseAuthorization(r, query)
	if err != nil {
		c.refuse(w, r, a, err)
		return
	}
	if !c.answer(w, r, a, false) {
		c.answer(w, r, a, true)
	}
}

// answer carries out a checked request's answer if the person who is signed in now is the one who
// was asked; another is asked themselves. It reports false, and writes nothing, if what the person
// may do moved before their consent was recorded, unless this is the last attempt.
func (c Consent) answer(w http.ResponseWriter, r *http.Request, a authorization, last bool) bool {
	v, ok := c.person(w, r, AuthorizePath+"?"+a.Query.Encode())
	if !ok || !c.enabled(w, r, v) {
		return true
	}
	if asked := r.PostForm.Get("user"); asked != "" && asked != v.User.ID { // another person has signed in since the page was shown
		c.show(w, r, a, v)
		return true
	}
	if r.PostForm.Get("decision") != "allow" {
		c.refuse(w, r, a, &protocolFault{accessDenied, "the person did not consent"})
		return true
	}
	if err := v.Principal.Settings.Stop.Refuses(access.User); err != nil {
		c.notice(w, r, http.StatusForbidden, "Changes are stopped", fault.From(err).Detail)
		return true
	}
	permit := access.NewPermit(v.Principal, c.Sessions.Again(r))
	err := c.allow(w, r.WithContext(access.WithPermit(r.Context(), permit)), a, v)
	switch {
	case err == nil:
	case errors.Is(err, access.ErrMoved) && !last:
		return false
	case errors.Is(err, access.ErrMoved):
		c.notice(w, r, http.StatusServiceUnavailable, "Nothing was allowed", "What you may do changed at this moment. Try again.")
	default:
		c.refuse(w, r, a, err)
	}
	return true
}

// allow records the consent and sends the code to the client. An error is of the record.
func (c Consent) allow(w http.ResponseWriter, r *http.Request, a authorization, v web.Person) error {
	chosen, err := access.ParseScopes(r.PostForm["scope"])
	if err != nil {
		c.notice(w, r, http.StatusBadRequest, "This form cannot be read", "Go back to the application and start again.")
		return nil
	}
	chosen &= grantable(v.Principal)
	if chosen == 0 {
		c.refuse(w, r, a, &protocolFault{accessDenied, "the person granted no scope"})
		return nil
	}
	if chosen&^reading != 0 && !v.Session.Fresh(c.Sessions.Now()) {
		http.Redirect(w, r, web.ProveAddress(AuthorizePath+"?"+a.Query.Encode()), http.StatusSeeOther)
		return nil
	}
	code := access.NewSecret("mac_")
	if err := c.Server.Store.SaveCode(r.Context(), oauth.AuthorizationCode{Hash: access.HashSecret(code), CompanyID: v.User.CompanyID,
		UserID: v.User.ID, ClientID: a.Client.ID, ClientName: displayName(a.Client), Scopes: chosen, RedirectURI: a.RedirectURI,
		CodeChallenge: a.Challenge, Resource: c.Server.Resource, ExpiresAt: c.Server.Now().Add(CodeLifetime)}); err != nil {
		return err
	}
	c.goOn(w, r, "Access allowed", a.answer(c.Server.Issuer, url.Values{"code": {code}}), a)
	return nil
}

// goOn leads to an answer for the client.
func (c Consent) goOn(w http.ResponseWriter, r *http.Request, title, address string, a authorization) {
	web.Answer(w, r, c.Server.Log, http.StatusOK, web.Onward(title, "You go back to "+destination(a.RedirectURI)+".", address))
}

// refuse answers an error: on a page of ours until the redirect URI is known to
// be the client's and the person is signed in, because anyone can register a
// client with any redirect URI (RFC 9700, 4.11.2); after that at the redirect
// URI.
func (c Consent) refuse(w http.ResponseWriter, r *http.Request, a authorization, err error) {
	if limited, ok := errors.AsType[*limitFault](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(limited.Seconds))
		c.notice(w, r, http.StatusTooManyRequests, "Too many requests",
			"Too many applications were introduced from your address. Nothing was granted. Try again later.")
		return
	}
	known, ok := errors.AsType[*protocolFault](err)
	if !ok {
		c.Server.Log.ErrorContext(r.Context(), "authorization failed", "error", err)
		known = failed()
	}
	_, signedIn, err := c.Sessions.Person(r)
	trusted := a.RedirectURI != "" && err == nil && signedIn
	if !ok && !trusted {
		w.Header().Set("Retry-After", retryAfter)
		c.notice(w, r, known.status(), "Something went wrong here", "Nothing was granted. Try again in a moment.")
		return
	}
	if a.RedirectURI == "" {
		c.notice(w, r, http.StatusBadRequest, "This request cannot be trusted",
			"The application sent you here with a request that Muster refuses: "+known.Description+". Nothing was granted. "+
				"Start the connection again in the application. If this page comes back, its developer has to correct it.")
		return
	}
	to := a.answer(c.Server.Issuer, url.Values{"error": {known.Code}, "error_description": {known.Description}})
	if !trusted {
		web.Answer(w, r, c.Server.Log, http.StatusBadRequest, refusedPage(known.Description, destination(a.RedirectURI), to))
		return
	}
	if r.Method == http.MethodGet {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	c.goOn(w, r, "Nothing was allowed", to, a)
}

// person returns who is signed in, or sends them to sign in first.
func (c Consent) person(w http.ResponseWriter, r *http.Request, back string) (web.Person, bool) {
	v, ok, err := c.Sessions.Person(r)
	switch {
	case err != nil:
		c.Server.Log.ErrorContext(r.Context(), "cannot read session", "error", err)
		c.notice(w, r, http.StatusInternalServerError, "Something went wrong here", "Try again in a moment.")
	case !ok:
		http.Redirect(w, r, web.SignInAddress(back), http.StatusSeeOther)
	}
	return v, ok
}

// enabled says so if the company does not allow connections.
func (c Consent) enabled(w http.ResponseWriter, r *http.Request, v web.Person) bool {
	if !v.Principal.Settings.OAuthConnections {
		c.notice(w, r, http.StatusForbidden, "Connections are turned off",
			"Your company has not enabled OAuth connections. An administrator can turn them on under AI agent access.")
	}
	return v.Principal.Settings.OAuthConnections
}

func (c Consent) notice(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	web.Answer(w, r, c.Server.Log, status, web.Notice(title, text, ""))
}

func (c Consent) show(w http.ResponseWriter, r *http.Request, a authorization, v web.Person) {
	owner, err := c.Companies.CompanyByID(r.Context(), v.User.CompanyID)
	var has access.Permission
	if err == nil {
		has, err = c.Server.Store.ConsentedScopes(r.Context(), v.User.ID, a.Client.ID)
	}
	if err != nil {
		c.refuse(w, r, a, err)
		return
	}
	q := question(a, v, owner.Name, has)
	if !v.Session.Fresh(c.Sessions.Now()) {
		q.Prove = web.ProveAddress(AuthorizePath + "?" + a.Query.Encode())
		q.locked()
	}
	web.Answer(w, r, c.Server.Log, http.StatusOK, consentPage(q))
}
