// Package oauth is Muster's authorization server: OAuth 2.1 for MCP clients
// that carry no API key (contract 4.5, 5.5).
//
// One issuer, one resource, authorization code with PKCE S256 and rotating
// refresh tokens, opaque tokens kept as hashes. Clients are known by their own
// metadata document or register themselves; every one of them is strange until
// a person consents, and consent is always ours to ask.
package oauth

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// How long the parts live.
const (
	CodeLifetime         = 60 * time.Second
	AccessLifetime       = 15 * time.Minute
	RefreshLifetime      = 30 * 24 * time.Hour
	RegistrationLifetime = 24 * time.Hour // without any consent
	registrationsPerHour = 30             // from one client address
)

// Server answers the endpoints of the authorization server.
type Server struct {
	Issuer    string // the public URL, without a trailing slash
	Resource  string // the MCP endpoint's address
	Store     access.OAuthStore
	Throttle  access.Throttle
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
		Resource: s.Resource, AuthorizationServers: []string{s.Issuer}, ScopesSupported: access.All.Scopes(),
		BearerMethodsSupported: []string{"header"}, ResourceName: "Muster",
	})
}

// client finds a client by its id: the store's, or its own document's.
func (s *Server) client(ctx context.Context, id string) (access.OAuthClient, error) {
	now := s.Now()
	known, err := s.Store.OAuthClient(ctx, id)
	if err == nil && (known.ExpiresAt.IsZero() || now.Before(known.ExpiresAt)) {
		return known, nil
	}
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return access.OAuthClient{}, err
	}
	if !isDocumentID(id) {
		return access.OAuthClient{}, fault.New(fault.NotFound, "no client has this client_id")
	}
	fetched, keep, err := s.Documents.fetch(ctx, id)
	if err != nil {
		return access.OAuthClient{}, fault.New(fault.NotFound, "the client's metadata document cannot be used").Because(err)
	}
	fetched.CreatedAt, fetched.ExpiresAt = now, now.Add(keep)
	return fetched, s.Store.SaveOAuthClient(ctx, fetched)
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

// unexpected logs err and answers without telling it.
func (s *Server) unexpected(w http.ResponseWriter, r *http.Request, err error) {
	s.Log.ErrorContext(r.Context(), "OAuth endpoint failed", "path", r.URL.Path, "error", err)
	s.refuse(w, &protocolFault{serverError, "an unexpected error occurred; try again"})
}
