// Package oauth is Muster's authorization server: OAuth 2.1 for MCP clients
// that carry no API key (contract 4.5, 5.5).
//
// One issuer, one resource, authorization code with PKCE S256 and rotating
// refresh tokens, opaque tokens kept as hashes. Clients are known by their own
// metadata document or register themselves; every one of them is strange until
// a person consents, and consent is always ours to ask.
package oauth

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
)

// How long the parts live.
const (
	CodeLifetime         = 60 * time.Second
	AccessLifetime       = 15 * time.Minute
	RefreshLifetime      = 30 * 24 * time.Hour
	RegistrationLifetime = 24 * time.Hour // without a connection
)

// How often one network may have strangers' requests served in an hour.
const (
	registrationsPerHour = 30
	refusalsPerHour      = 120  // registrations that were refused
	documentsPerHour     = 600  // a document is kept for a minute at least
	tokensPerHour        = 3000 // of one client
)

// Server answers the endpoints of the authorization server.
type Server struct {
	Issuer    string // the public URL, without a trailing slash
	Resource  string // the MCP endpoint's address
	Store     oauth.Store
	Throttle  account.Throttle
	Documents *DocumentFetcher
	Now       func() time.Time
	Log       *slog.Logger
	// ClientAddress returns the address a request came from, for throttling.
	ClientAddress func(*http.Request) string
}

// Paths of the endpoints, under the issuer.
const (
	AuthorizePath = "/oauth/authorize"
	TokenPath     = "/oauth/token"
	RegisterPath  = "/oauth/register"
	RevokePath    = "/oauth/revoke"
	ServerPath    = "/.well-known/oauth-authorization-server"
	ResourcePath  = "/.well-known/oauth-protected-resource"
)

// Mount adds the endpoints that programs call. The authorize endpoint is
// Consent's, because it shows pages.
func (s *Server) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET "+ServerPath, s.serveServerMetadata)
	mux.HandleFunc("GET "+ResourcePath, s.serveResourceMetadata)
	mux.HandleFunc("GET "+ResourcePath+"/mcp", s.serveResourceMetadata)
	mux.HandleFunc("POST "+RegisterPath, s.serveRegister)
	mux.HandleFunc("POST "+TokenPath, s.serveToken)
	mux.HandleFunc("POST "+RevokePath, s.serveRevoke)
}

// serverMetadata is RFC 8414's document.
type serverMetadata struct {
	Issuer                     string   `json:"issuer"`
	AuthorizationEndpoint      string   `json:"authorization_endpoint"`
	TokenEndpoint              string   `json:"token_endpoint"`
	RegistrationEndpoint       string   `json:"registration_endpoint"`
	RevocationEndpoint         string   `json:"revocation_endpoint"`
	ScopesSupported            []string `json:"scopes_supported"`
	ResponseTypesSupported     []string `json:"response_types_supported"`
	ResponseModesSupported     []string `json:"response_modes_supported"`
	GrantTypesSupported        []string `json:"grant_types_supported"`
	AuthMethodsSupported       []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods      []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethodsSupported  []string `json:"code_challenge_methods_supported"`
	IssParameterSupported      bool     `json:"authorization_response_iss_parameter_supported"`
	ClientIDDocumentsSupported bool     `json:"client_id_metadata_document_supported"`
}

func (s *Server) serveServerMetadata(w http.ResponseWriter, _ *http.Request) {
	methods := []string{"none", "client_secret_basic", "client_secret_post"}
	writeJSON(w, http.StatusOK, "public, max-age=300", serverMetadata{
		Issuer: s.Issuer, AuthorizationEndpoint: s.Issuer + AuthorizePath, TokenEndpoint: s.Issuer + TokenPath,
		RegistrationEndpoint: s.Issuer + RegisterPath, RevocationEndpoint: s.Issuer + RevokePath,
		ScopesSupported: access.All.Scopes(), ResponseTypesSupported: []string{"code"},
		ResponseModesSupported: []string{"query"},
		GrantTypesSupported:    []string{"authorization_code", "refresh_token"},
		AuthMethodsSupported:   methods, RevocationAuthMethods: methods,
		ChallengeMethodsSupported: []string{"S256"}, IssParameterSupported: true, ClientIDDocumentsSupported: true,
	})
}

// resourceMetadata is RFC 9728's document.
type resourceMetadata struct {
	Resource               string   `json:"resource"`
	AuthorizationServers   []string `json:"authorization_servers"`
	ScopesSupported        []string `json:"scopes_supported"`
	BearerMethodsSupported []string `json:"bearer_methods_supported"`
	ResourceName           string   `json:"resource_name"`
}

func (s *Server) serveResourceMetadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "public, max-age=300", resourceMetadata{
		// What a client needs to begin with; more is asked for when a tool needs it.
		Resource: s.Resource, AuthorizationServers: []string{s.Issuer}, ScopesSupported: reading.Scopes(),
		BearerMethodsSupported: []string{"header"}, ResourceName: "Muster",
	})
}

// client finds a client by its id: the store's, or its own document's. An
// unknown one is a *protocolFault.
func (s *Server) client(r *http.Request, id string) (oauth.Client, error) {
	now := s.Now()
	known, err := s.Store.OAuthClient(r.Context(), id)
	if err == nil && (known.ExpiresAt.IsZero() || now.Before(known.ExpiresAt)) {
		return known, nil
	}
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return oauth.Client{}, err
	}
	if !isDocumentID(id) {
		return oauth.Client{}, &protocolFault{invalidClient, "no client has this client_id"}
	}
	if err := s.limit(r, "document:", documentsPerHour); err != nil {
		return oauth.Client{}, err
	}
	fetched, keep, err := s.Documents.fetch(r.Context(), id, now)
	if err != nil {
		s.Log.InfoContext(r.Context(), "client metadata document refused", "client_id", id, "err", err)
		return oauth.Client{}, &protocolFault{invalidClient, "the client's metadata document cannot be used"}
	}
	fetched.CreatedAt, fetched.ExpiresAt = now, now.Add(keep)
	return fetched, s.Store.SaveOAuthClient(r.Context(), fetched)
}

// limit counts what strangers may ask for, by the network they ask from. The
// count is the database's: the same on every replica.
func (s *Server) limit(r *http.Request, what string, perHour int) error {
	now := s.Now()
	_, spent, closes, err := s.Throttle.Spend(r.Context(), what+account.Network(s.ClientAddress(r)), perHour, time.Hour, now)
	if err != nil || spent {
		return err
	}
	return &limitFault{
		protocolFault{temporaryUnavailable, "too many requests from this address: try again later"},
		max(1, int(math.Ceil(closes.Sub(now).Seconds()))),
	}
}

func writeJSON(w http.ResponseWriter, status int, cache string, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", cache)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone away: nothing to do
}

const noStore = "no-store"

func (s *Server) refuse(w http.ResponseWriter, f *protocolFault) {
	if f.Code == invalidClient {
		w.Header().Set("WWW-Authenticate", `Basic realm="Muster"`)
	}
	writeJSON(w, f.status(), noStore, f)
}

// fail answers an error of a program's endpoint; what is unexpected is logged
// and not told.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var limited *limitFault
	var known *protocolFault
	switch {
	case errors.As(err, &limited):
		w.Header().Set("Retry-After", strconv.Itoa(limited.Seconds))
		writeJSON(w, http.StatusTooManyRequests, noStore, limited.protocolFault)
	case errors.As(err, &known):
		s.refuse(w, known)
	default:
		s.Log.ErrorContext(r.Context(), "OAuth endpoint failed", "path", r.URL.Path, "error", err)
		s.refuse(w, &protocolFault{serverError, "an unexpected error occurred; try again"})
	}
}
