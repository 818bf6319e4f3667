package oauth

import (
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/edge"
)

// redirectFault says why a redirect URI cannot be registered; empty: it can.
// Allowed are https, http on a loopback address (RFC 8252, 7.3) and schemes of
// applications (RFC 8252, 7.1), without fragment or user information.
func redirectFault(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || !u.IsAbs() || u.Opaque != "" || u.Host == "" && !isPrivateUse(u.Scheme):
		return "must be an absolute address"
	case u.Fragment != "" || strings.Contains(text, "#"):
		return "must not have a fragment"
	case u.User != nil:
		return "must not carry a user name"
	case strings.ContainsAny(text, " \t\r\n\\") || !isPrintable(text):
		return "must be plain ASCII"
	case u.Host != "" && !hostShape.MatchString(u.Host):
		return "must name a host by letters, digits, dots and hyphens, or an IP address"
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	case u.Scheme == "http":
		return "must use https, or http on a loopback address"
	case !isPrivateUse(u.Scheme):
		return "must not use the scheme " + u.Scheme + ": use https, a loopback address, or a scheme of your application, such as " +
			"com.example.app"
	}
	return ""
}

// isPrivateUse reports whether a scheme may belong to an application that registered it with
// its operating system (RFC 8252, 7.1). Others have a meaning of their own in browsers and
// systems, open programs of theirs, or run code.
func isPrivateUse(scheme string) bool {
	switch scheme {
	case "", "http", "https", "urn", "javascript", "data", "file", "filesystem", "blob", "about", "vbscript", "view-source",
		"ws", "wss", "ftp", "mailto", "tel", "sms", "intent", "content", "chrome", "android-app", "search-ms", "microsoft-edge",
		"ldap", "smb", "ssh", "itms-services", "jar":
		return false
	}
	return !strings.HasPrefix(scheme, "ms-")
}

// appScheme is the scheme by which a redirect URI opens an application; empty
// for https and loopback addresses.
func appScheme(redirect string) string {
	if u, err := url.Parse(redirect); err == nil && isPrivateUse(u.Scheme) {
		return u.Scheme
	}
	return ""
}

// hostShape is a host with an optional port. It is shown on the consent page.
var hostShape = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// redirectMatches compares a requested redirect URI with a registered one:
// exactly, except that a loopback's port may vary (RFC 8252, 7.3).
func redirectMatches(registered, requested string) bool {
	if registered == requested {
		return true
	}
	want, err := url.Parse(registered)
	if err != nil || want.Scheme != "http" || !isLoopback(want.Hostname()) {
		return false
	}
	got, err := url.Parse(requested)
	if err != nil || redirectFault(requested) != "" || got.Hostname() != want.Hostname() {
		return false
	}
	return strings.Replace(requested, "//"+got.Host, "//"+want.Host, 1) == registered
}

// redirectAllowed returns whether any of the registered URIs matches.
func redirectAllowed(registered []string, requested string) bool {
	return slices.ContainsFunc(registered, func(uri string) bool { return redirectMatches(uri, requested) })
}

// toLoopback reports whether an answer goes to a program on the person's own
// computer: nothing shows which one that is, so the consent page warns.
func toLoopback(redirect string) bool {
	u, err := url.Parse(redirect)
	return err == nil && u.Scheme == "http" && isLoopback(u.Hostname())
}

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
