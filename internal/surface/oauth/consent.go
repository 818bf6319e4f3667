package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/surface/web"
)

// Consent asks a signed-in person whether a client may act for them. It asks
// every time: an earlier consent, or a session, never answers for the person.
type Consent struct {
	Server   *Server
	Sessions web.Sessions
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
	v, ok := c.visitor(w, r, r.URL.RequestURI())
	if !ok || !c.enabled(w, r, v) {
		return
	}
	c.show(w, r, a, v)
}

// decide carries out the person's answer.
func (c Consent) decide(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxConsentForm)
	if err := r.ParseForm(); err != nil {
		c.notice(w, r, http.StatusBadRequest, "This form cannot be read", "Go back to the application and start again.")
		return
	}
	query, err := url.ParseQuery(r.PostForm.Get("request"))
	if err != nil {
		c.notice(w, r, http.StatusBadRequest, "This form cannot be read", "Go back to the application and start again.")
		return
	}
	a, err := c.Server.parseAuthorization(r, query)
	if err != nil {
		c.refuse(w, r, a, err)
		return
	}
	v, ok := c.visitor(w, r, AuthorizePath+"?"+query.Encode())
	if !ok || !c.enabled(w, r, v) {
		return
	}
	web.AllowFormTo(w, formTarget(a.RedirectURI))
	if r.PostForm.Get("decision") != "allow" {
		c.refuse(w, r, a, &protocolFault{accessDenied, "the person did not consent"})
		return
	}
	c.allow(w, r, a, v)
}

// allow records the consent and sends the code to the client.
func (c Consent) allow(w http.ResponseWriter, r *http.Request, a authorization, v web.Visitor) {
	chosen, err := access.ParseScopes(r.PostForm["scope"])
	if err != nil {
		c.notice(w, r, http.StatusBadRequest, "This form cannot be read", "Go back to the application and start again.")
		return
	}
	chosen &= grantable(v.Principal)
	if chosen == 0 {
		c.refuse(w, r, a, &protocolFault{accessDenied, "the person granted no scope"})
		return
	}
	code := access.NewSecret("mac_")
	_, err = c.Server.Store.Connect(r.Context(),
		access.OAuthConnection{CompanyID: v.User.CompanyID, UserID: v.User.ID, ClientID: a.Client.ID, ClientName: displayName(a.Client), Scopes: chosen},
		access.AuthorizationCode{Hash: access.HashSecret(code), ClientID: a.Client.ID, RedirectURI: a.RedirectURI,
			CodeChallenge: a.Challenge, Resource: a.Resource, ExpiresAt: c.Server.Now().Add(CodeLifetime)})
	if err != nil {
		c.refuse(w, r, a, err)
		return
	}
	http.Redirect(w, r, a.answer(c.Server.Issuer, url.Values{"code": {code}}), http.StatusSeeOther)
}

// refuse answers an error: at the redirect URI once that is known to be the
// client's, on a page of ours before.
func (c Consent) refuse(w http.ResponseWriter, r *http.Request, a authorization, err error) {
	var limited *limitFault
	if errors.As(err, &limited) {
		w.Header().Set("Retry-After", strconv.Itoa(limited.Seconds))
		c.notice(w, r, http.StatusTooManyRequests, "Too many requests", "Too many applications were introduced from your address. Nothing was granted. Try again later.")
		return
	}
	var known *protocolFault
	if !errors.As(err, &known) {
		c.Server.Log.ErrorContext(r.Context(), "authorization failed", "error", err)
		known = &protocolFault{serverError, "an unexpected error occurred; try again"}
	}
	if a.RedirectURI == "" {
		c.notice(w, r, known.status(), "This request cannot be trusted",
			"The application sent you here with a request that Muster refuses: "+known.Description+". Nothing was granted. "+
				"Start the connection again in the application. If this page comes back, its maker has to mend it.")
		return
	}
	http.Redirect(w, r, a.answer(c.Server.Issuer, url.Values{"error": {known.Code}, "error_description": {known.Description}}), http.StatusSeeOther)
}

// visitor returns who is signed in, or sends them to sign in first.
func (c Consent) visitor(w http.ResponseWriter, r *http.Request, back string) (web.Visitor, bool) {
	v, ok, err := c.Sessions.Visitor(r)
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
func (c Consent) enabled(w http.ResponseWriter, r *http.Request, v web.Visitor) bool {
	if !v.Principal.Settings.OAuthConnections {
		c.notice(w, r, http.StatusForbidden, "Connections are turned off",
			"Your company has not enabled OAuth connections. An administrator can turn them on under AI agent access.")
	}
	return v.Principal.Settings.OAuthConnections
}

func (c Consent) notice(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := web.Notice(title, text, "").Render(r.Context(), w); err != nil {
		c.Server.Log.DebugContext(r.Context(), "page broke off", "error", err)
	}
}

func (c Consent) show(w http.ResponseWriter, r *http.Request, a authorization, v web.Visitor) {
	web.AllowFormTo(w, formTarget(a.RedirectURI))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := consentPage(question(a, v)).Render(r.Context(), w); err != nil {
		c.Server.Log.DebugContext(r.Context(), "page broke off", "error", err)
	}
}
