package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/surface/edge"
)

const maxTokenForm = 16 << 10 // bytes

// tokenAnswer is the answer of RFC 6749, section 5.1. Scope is the scope that was granted, which may be less
// than the client asked for.
type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
}

// serveToken answers the authorization code and refresh token grants.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	form, client, err := s.readClientForm(w, r)
	if err == nil {
		err = s.grant(w, r, client, form)
	}
	if err != nil {
		s.fail(w, r, err)
	}
}

// grant answers an authenticated client with new tokens.
func (s *Server) grant(w http.ResponseWriter, r *http.Request, client oauth.Client, form url.Values) error {
	if !s.isTarget(form["resource"]) {
		return &protocolFault{invalidTarget, "resource must be " + s.Resource}
	}
	scopes, err := access.ParseScopes(strings.Fields(form.Get("scope")))
	if err != nil {
		return &protocolFault{invalidScope, "scope names one that does not exist: see scopes_supported"}
	}
	now := s.Now()
	answer := tokenAnswer{AccessToken: access.NewSecret("mat_"), RefreshToken: access.NewSecret("mrt_"), TokenType: "Bearer",
		ExpiresIn: int(AccessLifetime.Seconds())}
	issue := oauth.Tokens{Access: access.HashSecret(answer.AccessToken), AccessExpires: now.Add(AccessLifetime),
		Refresh: access.HashSecret(answer.RefreshToken), RefreshExpires: now.Add(RefreshLifetime)}
	var connection oauth.Connection
	switch form.Get("grant_type") {
	case "authorization_code":
		connection, err = s.Store.RedeemCode(r.Context(), access.HashSecret(form.Get("code")), codeCheck(client, form), issue)
		if fault.CodeOf(err) == fault.Forbidden {
			return &protocolFault{invalidGrant, fault.From(err).Detail}
		}
	case "refresh_token":
		connection, err = s.Store.RotateToken(r.Context(), access.HashSecret(form.Get("refresh_token")), client.ID, scopes, issue)
	default:
		return &protocolFault{unsupportedGrant, "grant_type must be authorization_code or refresh_token"}
	}
	switch fault.CodeOf(err) {
	case "":
	case fault.Refused:
		return &protocolFault{invalidGrant, "the code or token is unknown, expired, used, or not this client's"}
	case fault.Forbidden:
		return &protocolFault{invalidScope, "scope is more than the person granted: ask for it at the authorization endpoint"}
	default:
		return err
	}
	answer.Scope = strings.Join(connection.Scopes.Scopes(), " ")
	edge.JSON(w, http.StatusOK, edge.NoStore, answer)
	return nil
}

var verifierShape = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// codeCheck returns the check of a stored code: it is the client's, for the same redirect URI, and the verifier of
// PKCE (RFC 7636) matches its challenge.
func codeCheck(client oauth.Client, form url.Values) func(oauth.AuthorizationCode) error {
	return func(code oauth.AuthorizationCode) error {
		verifier := form.Get("code_verifier")
		sum := sha256.Sum256([]byte(verifier))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		verified := verifierShape.MatchString(verifier) && subtle.ConstantTimeCompare([]byte(challenge), []byte(code.CodeChallenge)) == 1
		if code.ClientID != client.ID || code.RedirectURI != form.Get("redirect_uri") || !verified {
			return fault.New(fault.Refused, "the code is not for this client, redirect URI or verifier")
		}
		return nil
	}
}

// authenticate finds the client by its id, and checks the secret of a confidential one. Both are in the form or,
// URL-encoded, in Basic authentication (RFC 6749, section 2.3.1).
func (s *Server) authenticate(r *http.Request, form url.Values) (oauth.Client, error) {
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		if secret != "" {
			return oauth.Client{}, &protocolFault{invalidRequest, "the client proves itself in two ways at once"}
		}
		basicID, idErr := url.QueryUnescape(user)
		basicSecret, secretErr := url.QueryUnescape(password)
		if idErr != nil || secretErr != nil || id != "" && id != basicID {
			return oauth.Client{}, &protocolFault{invalidClient, "the client's credentials are not well-formed"}
		}
		id, secret = basicID, basicSecret
	}
	if isDocumentID(id) { // it has no secret, and its document says nothing that counts here: its host may be away
		return oauth.Client{ID: id}, nil
	}
	client, err := s.client(r, id)
	if err != nil {
		return oauth.Client{}, err
	}
	sum := sha256.Sum256([]byte(secret))
	if client.Confidential() && subtle.ConstantTimeCompare(sum[:], client.SecretHash[:]) != 1 {
		return oauth.Client{}, &protocolFault{invalidClient, "the client's secret is not right"}
	}
	return client, nil
}

// serveRevoke revokes a token's connection (RFC 7009). An unknown token is no error.
func (s *Server) serveRevoke(w http.ResponseWriter, r *http.Request) {
	form, client, err := s.readClientForm(w, r)
	if err == nil {
		err = s.Store.RevokeToken(r.Context(), access.HashSecret(form.Get("token")), client.ID)
	}
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", edge.NoStore)
	w.WriteHeader(http.StatusOK)
}

// readClientForm reads a client's form, authenticates the client, and counts the request in the limit of its network.
func (s *Server) readClientForm(w http.ResponseWriter, r *http.Request) (url.Values, oauth.Client, error) {
	form, wrong := readForm(w, r)
	if wrong != nil {
		return nil, oauth.Client{}, wrong
	}
	client, err := s.authenticate(r, form)
	if err == nil {
		who := client.ID
		if isDocumentID(who) {
			who = "document" // any stranger can make up an address
		}
		err = s.limit(r, "token:"+who+":", tokensPerHour)
	}
	return form, client, err
}

// readForm reads a form from the body. It ignores the query, and refuses a parameter that is givenTwice.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, *protocolFault) {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(strings.ToLower(media)) != "application/x-www-form-urlencoded" {
		return nil, &protocolFault{invalidRequest, "the body must be a form (application/x-www-form-urlencoded)"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxTokenForm)
	if err := r.ParseForm(); err != nil {
		return nil, &protocolFault{invalidRequest, "the body is not a readable form of at most 16 KiB"}
	}
	return r.PostForm, givenTwice(r.PostForm)
}
