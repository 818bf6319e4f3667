// Package oauth is Muster's authorization server: OAuth 2.1 for MCP clients
// that carry no API key (contract 4.5, 5.5).
//
// One issuer, one resource, authorization code with PKCE S256 and rotating
// refresh tokens, opaque tokens kept as hashes. Clients are known by their own
// metadata document or register themselves; every one of them is strange until
// a person consents, and consent is always ours to ask.
package oauth

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/edge"
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
	const read, send = "GET, HEAD", "POST"
	for _, e := range []struct {
		methods, path string
		serve         http.HandlerFunc
	}{
		{read, ServerPath, s.serveServerMetadata},
		{read, ResourcePath, s.serveResourceMetadata},
		{read, ResourcePath + "/mcp", s.serveResourceMetadata},
		{send, RegisterPath, s.serveRegister},
		{send, TokenPath, s.serveToken},
		{send, RevokePath, s.serveRevoke},
	} {
		method, _, _ := strings.Cut(e.methods, ",") // that of GET takes HEAD, too
		mux.HandleFunc(method+" "+e.path, e.serve)
		mux.HandleFunc(e.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", e.methods)
			edge.JSON(w, http.StatusMethodNotAllowed, edge.NoStore, &protocolFault{invalidRequest, "this address takes " + e.methods})
		})
	}
}

// serveServerMetadata answers RFC 8414's document.
func (s *Server) serveServerMetadata(w http.ResponseWriter, _ *http.Request) {
	methods := []string{"none", "client_secret_basic", "client_secret_post"}
	edge.JSON(w, http.StatusOK, "public, max-age=300", map[string]any{
		"issuer":                                         s.Issuer,
		"authorization_endpoint":                         s.Issuer + AuthorizePath,
		"token_endpoint":                                 s.Issuer + TokenPath,
		"registration_endpoint":                          s.Issuer + RegisterPath,
		"revocation_endpoint":                            s.Issuer + RevokePath,
		"scopes_supported":                               access.All.Scopes(),
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":          methods,
		"revocation_endpoint_auth_methods_supported":     methods,
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
	})
}

// serveResourceMetadata answers RFC 9728's document.
func (s *Server) serveResourceMetadata(w http.ResponseWriter, _ *http.Request) {
	edge.JSON(w, http.StatusOK, "public, max-age=300", map[string]any{
		"resource": s.Resource, "authorization_servers": []string{s.Issuer}, "resource_name": "Muster",
		// What a client needs to begin with; more is asked for when a tool needs it.
		"scopes_supported": reading.Scopes(), "bearer_methods_supported": []string{"header"},
	})
}

// client finds a client by its id: the store's, or its own document's. An
// unknown one is a *protocolFault.
func (s *Server) client(r *http.Request, id string) (oauth.Client, error) {
	now := s.Now()
	known, err := s.Store.OAuthClient(r.Context(), id)
	if err == nil && holds(known, now) {
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
		s.Log.InfoContext(r.Context(), "client metadata document refused", "client_id", id, "error", err)
		return oauth.Client{}, &protocolFault{invalidClient, "the client's metadata document cannot be used"}
	}
	fetched.CreatedAt, fetched.ExpiresAt = now, now.Add(keep)
	return fetched, s.Store.SaveOAuthClient(r.Context(), fetched)
}

// holds reports whether a client that is kept can be used. A document that was fetched while the clock was ahead would be kept
// for as much longer.
func holds(c oauth.Client, now time.Time) bool {
	ahead := isDocumentID(c.ID) && c.ExpiresAt.After(now.Add(documentCacheMax+access.ClockStep))
	return c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt) && !ahead
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
		operation.Seconds(closes.Sub(now)),
	}
}

func (s *Server) refuse(w http.ResponseWriter, f *protocolFault) {
	if f.Code == invalidClient {
		w.Header().Set("WWW-Authenticate", `Basic realm="Muster"`)
	}
	edge.JSON(w, f.status(), edge.NoStore, f)
}

// retryAfter is how long a client waits after a failure of our own, in seconds.
const retryAfter = "5"

// failed is the fault of a failure of our own, whose cause is not told. It is not server_error: after that, some clients
// have their person sign in again.
func failed() *protocolFault {
	return &protocolFault{temporaryUnavailable, "an unexpected error occurred; try again"}
}

// fail answers an error of a program's endpoint; what is unexpected is logged
// and not told.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	limited, isLimit := errors.AsType[*limitFault](err)
	known, isKnown := errors.AsType[*protocolFault](err)
	switch {
	case isLimit:
		w.Header().Set("Retry-After", strconv.Itoa(limited.Seconds))
		edge.JSON(w, http.StatusTooManyRequests, edge.NoStore, limited.protocolFault)
	case isKnown:
		s.refuse(w, known)
	default:
		s.Log.ErrorContext(r.Context(), "OAuth endpoint failed", "path", r.URL.Path, "error", err)
		w.Header().Set("Retry-After", retryAfter)
		s.refuse(w, failed())
	}
}
