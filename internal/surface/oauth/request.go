package oauth

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/oauth"
)

// authorization is a checked authorization request.
type authorization struct {
	Client      oauth.Client
	RedirectURI string
	State       string
	Challenge   string
	Scopes      access.Permission // asked for; none asked: the two that read
	Query       url.Values        // as it came
}

// answer is the address to send the browser to, with the issuer in it. A query
// that the redirect URI has itself stays as it is (RFC 6749, 3.1.2).
func (a authorization) answer(issuer string, parameters url.Values) string {
	if a.State != "" {
		parameters.Set("state", a.State)
	}
	parameters.Set("iss", issuer)
	base, own, _ := strings.Cut(a.RedirectURI, "?")
	if own != "" {
		own += "&"
	}
	return base + "?" + own + parameters.Encode()
}

// reading are the scopes that change nothing: what a client asks for to begin
// with, and what a person can grant without proving who they are again.
const reading = access.DevicesRead | access.PoliciesRead

// challengeShape is that of an S256 challenge: 32 bytes in base64url.
var challengeShape = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

const maxState = 4096

// parseAuthorization checks the parameters before anyone is asked to sign in.
// An error that is not a *protocolFault, or one with an empty RedirectURI
// beside it, must not be sent to the redirect URI: it is not trusted yet.
func (s *Server) parseAuthorization(r *http.Request, query url.Values) (authorization, error) {
	a := authorization{State: query.Get("state"), Query: query}
	if twice := givenTwice(query); twice != nil {
		return authorization{}, twice
	}
	client, err := s.client(r, query.Get("client_id"))
	if err != nil {
		return authorization{}, err
	}
	a.Client = client
	redirect := query.Get("redirect_uri")
	if redirect == "" || !redirectAllowed(client.RedirectURIs, redirect) {
		return authorization{}, &protocolFault{invalidRequest, "redirect_uri is not one that the client registered"}
	}
	a.RedirectURI = redirect
	return s.parseGrant(a)
}

// parseGrant checks what may be answered at the redirect URI.
func (s *Server) parseGrant(a authorization) (authorization, error) {
	query := a.Query
	switch {
	case len(a.State) > maxState:
		a.State = ""
		return a, &protocolFault{invalidRequest, "state is too long"}
	case query.Get("response_type") != "code":
		return a, &protocolFault{unsupportedResponse, "response_type must be code"}
	case query.Get("code_challenge") == "":
		return a, &protocolFault{invalidRequest, "code_challenge is missing: PKCE is required"}
	case query.Get("code_challenge_method") != "S256":
		return a, &protocolFault{invalidRequest, "code_challenge_method must be S256"}
	case !challengeShape.MatchString(query.Get("code_challenge")):
		return a, &protocolFault{invalidRequest, "code_challenge must be 43 characters of base64url"}
	}
	a.Challenge = query.Get("code_challenge")
	if !s.isTarget(query["resource"]) {
		return a, &protocolFault{invalidTarget, "resource must be " + s.Resource}
	}
	scopes, err := access.ParseScopes(strings.Fields(query.Get("scope")))
	if err != nil {
		return a, &protocolFault{invalidScope, "scope names one that does not exist: see scopes_supported"}
	}
	a.Scopes = cmp.Or(scopes, reading)
	return a, nil
}

// isTarget reports whether a request is for our resource, whether it is named
// (with or without a trailing slash) or, by older clients, left out.
func (s *Server) isTarget(asked []string) bool {
	for _, resource := range asked {
		u, err := url.Parse(resource)
		if err != nil || u.Fragment != "" {
			return false
		}
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host) // RFC 3986, 6.2.2.1
		if strings.TrimSuffix(u.String(), "/") != s.Resource {
			return false
		}
	}
	return true
}

// givenTwice refuses a parameter that is given twice; resource (RFC 8707) can be. It keeps strangers' text out of our own
// messages.
func givenTwice(parameters url.Values) *protocolFault {
	known := []string{"client_id", "client_secret", "redirect_uri", "response_type", "state", "scope", "code_challenge",
		"code_challenge_method", "grant_type", "code", "code_verifier", "refresh_token", "token"}
	for key, values := range parameters {
		if len(values) > 1 && key != "resource" {
			if !slices.Contains(known, key) {
				key = "of unknown name"
			}
			return &protocolFault{invalidRequest, "the parameter " + key + " is given twice"}
		}
	}
	return nil
}

// protocolFault is an error of RFC 6749 and its relatives.
type protocolFault struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// The codes that are used.
const (
	invalidRequest       = "invalid_request"
	invalidClient        = "invalid_client"
	invalidGrant         = "invalid_grant"
	invalidScope         = "invalid_scope"
	invalidTarget        = "invalid_target"
	invalidRedirect      = "invalid_redirect_uri"
	invalidMetadata      = "invalid_client_metadata"
	unsupportedGrant     = "unsupported_grant_type"
	unsupportedResponse  = "unsupported_response_type"
	accessDenied         = "access_denied"
	temporaryUnavailable = "temporarily_unavailable"
)

func (f *protocolFault) Error() string { return f.Code + ": " + f.Description }

// limitFault is a refusal for the rate of requests.
type limitFault struct {
	protocolFault
	Seconds int // to wait
}

// status is the HTTP status of the fault where it is answered as JSON.
func (f *protocolFault) status() int {
	switch f.Code {
	case invalidClient:
		return http.StatusUnauthorized
	case temporaryUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
