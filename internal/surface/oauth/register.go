package oauth

import (
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/edge"
)

const maxRegistration = 16 << 10 // bytes

// registered is the answer to a registration (RFC 7591, 3.2.1).
type registered struct {
	clientMetadata
	ClientSecret        string `json:"client_secret,omitempty"`
	ClientIDIssuedAt    int64  `json:"client_id_issued_at"`                // Unix seconds
	ClientSecretExpires *int64 `json:"client_secret_expires_at,omitempty"` // 0: never; nil: there is no secret
}

// serveRegister registers a client (RFC 7591). A registration that does not lead to a connection within
// RegistrationLifetime is removed.
func (s *Server) serveRegister(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRegistration))
	var m clientMetadata
	wrong := &protocolFault{invalidMetadata, "the body must be a JSON object of at most 16 KiB, with no member twice"}
	if err == nil && json.Unmarshal(body, &m) == nil {
		wrong = m.normalize()
	}
	// Refusals have a limit of their own: a client that repeats a wrong registration must not use up the registrations of
	// the other clients in its network.
	what, perHour := "register:", registrationsPerHour
	if wrong != nil {
		what, perHour = "refused:", refusalsPerHour
	}
	if err := s.limit(r, what, perHour); err != nil {
		s.fail(w, r, err)
		return
	}
	if wrong != nil {
		s.refuse(w, wrong)
		return
	}
	answer, client := m.admit(s.Now())
	if err := s.Store.SaveOAuthClient(r.Context(), client); err != nil {
		s.fail(w, r, err)
		return
	}
	edge.JSON(w, http.StatusCreated, edge.NoStore, answer)
}

// normalize fills in the defaults of RFC 7591 and returns what is wrong with the registration; nil: nothing.
func (m *clientMetadata) normalize() *protocolFault {
	if wrong := m.check(); wrong != nil {
		return wrong
	}
	if m.GrantTypes == nil {
		m.GrantTypes = []string{"authorization_code", "refresh_token"}
	}
	if m.ResponseTypes == nil {
		m.ResponseTypes = []string{"code"}
	}
	ofApp := slices.ContainsFunc(m.RedirectURIs, func(uri string) bool { return appScheme(uri) != "" })
	if m.AuthMethod == "" {
		if m.AuthMethod = "client_secret_basic"; ofApp {
			m.AuthMethod = "none" // RFC 7591, 2: the server may choose; an application cannot keep a secret
		}
	}
	switch {
	case !slices.Contains(m.GrantTypes, "authorization_code"):
		return &protocolFault{invalidMetadata, "grant_types must contain authorization_code"}
	case !slices.Equal(m.ResponseTypes, []string{"code"}):
		return &protocolFault{invalidMetadata, "response_types must be code"}
	case !slices.Contains([]string{"none", "client_secret_basic", "client_secret_post"}, m.AuthMethod):
		return &protocolFault{invalidMetadata, "token_endpoint_auth_method must be none, client_secret_basic or client_secret_post"}
	}
	if ofApp && m.AuthMethod != "none" {
		return &protocolFault{invalidRedirect, "redirect_uris: a scheme of an application needs token_endpoint_auth_method none"}
	}
	return nil
}

// admit gives the client an id and, unless its token_endpoint_auth_method is none, a secret. It returns the answer, which
// alone has the secret, and the client to store.
func (m clientMetadata) admit(now time.Time) (registered, oauth.Client) {
	m.ClientID = "mc_" + resource.NewID()
	client := oauth.Client{ID: m.ClientID, Name: m.ClientName, RedirectURIs: m.RedirectURIs, Dynamic: true,
		CreatedAt: now, ExpiresAt: now.Add(RegistrationLifetime)}
	answer := registered{clientMetadata: m, ClientIDIssuedAt: now.Unix()}
	if m.AuthMethod != "none" {
		answer.ClientSecret = access.NewSecret("mcs_")
		answer.ClientSecretExpires = new(int64)
		client.SecretHash = sha256.Sum256([]byte(answer.ClientSecret))
	}
	return answer, client
}
