package mcp

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
)

// caller is who a request comes from.
type caller struct {
	principal  access.Principal
	connection oauth.Connection // zero for a key
	record     *record          // of the request that it sends
	since      time.Time        // when the caller was let in
	again      func(context.Context) (access.Principal, error)
}

// atMost is the caller with all that it could come to have: a connection with
// every scope that its person may consent to.
func (c caller) atMost() access.Principal {
	p := c.principal
	if p.Kind == access.Connection {
		p.Permissions = c.connection.Grantable
	}
	return p
}

const callerKey = "caller"

// connectionSeen is how far a connection's last use may lag behind.
const connectionSeen = 10 * time.Second

// credentials finds the caller by an API key or a bearer token, never both,
// and takes the secret from the request before anyone else sees it.
func (c Config) credentials(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys, tokens := r.Header.Values("X-API-Key"), r.Header.Values("Authorization")
		switch {
		case r.URL.Query().Has("access_token") || r.URL.Query().Has("api_key"):
			reply(w, http.StatusBadRequest, "Bad Request", "credentials in the address are refused: send a header")
			return
		case len(keys)+len(tokens) > 1:
			reply(w, http.StatusBadRequest, "Bad Request", "send either X-API-Key or Authorization, once")
			return
		}
		key, token := strings.Join(keys, ""), strings.Join(tokens, "")
		found, err := c.identify(r.Context(), key, token)
		switch fault.CodeOf(err) {
		case "":
		case fault.Unauthorized:
			switch {
			case len(tokens) > 0 && isKey(tokens[0]): // a client that sent a key must not be led into an OAuth sign-in
				w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			case len(keys) == 0:
				w.Header().Set("WWW-Authenticate", c.challenge(len(tokens) > 0))
			}
			reply(w, http.StatusUnauthorized, "Unauthorized", fault.From(err).Detail)
			return
		default:
			c.Log.ErrorContext(r.Context(), "cannot authenticate", "error", err)
			reply(w, http.StatusServiceUnavailable, "Service Unavailable", operation.NotSentDetail)
			return
		}
		found.record, found.since = recordOf(r.Context()), c.Now()
		found.again = func(ctx context.Context) (access.Principal, error) {
			now, err := c.identify(ctx, key, token)
			return now.principal, err
		}
		found.record.caller = found
		clean := r.Clone(r.Context())
		clean.Header.Del("X-API-Key")
		clean.Header.Set("Authorization", "Bearer -") // the SDK's carrier wants one; carry ignores it
		if c.Customize == nil && acceptsJSON(r.Header.Values("Accept")) {
			clean.Header.Set("Accept", "application/json, text/event-stream") // the SDK wants both; we answer JSON alone
		}
		next.ServeHTTP(w, clean)
	})
}

// acceptsJSON reports whether a client can read our answers, which are JSON: it
// says so, or says nothing.
func acceptsJSON(accept []string) bool {
	for _, media := range strings.Split(strings.Join(accept, ","), ",") {
		switch media, _, _ = strings.Cut(media, ";"); strings.ToLower(strings.TrimSpace(media)) {
		case "application/json", "application/*", "*/*":
			return true
		}
	}
	return len(accept) == 0
}

// identify returns the caller, or fault.Unauthorized.
func (c Config) identify(ctx context.Context, key, authorization string) (caller, error) {
	if authorization == "" {
		p, err := c.Keys.Authenticate(ctx, key)
		return caller{principal: p}, err
	}
	refused := fault.New(fault.Unauthorized, "access token missing, invalid, expired or revoked")
	token, ok := bearer(authorization)
	if !ok {
		return caller{}, refused
	}
	if isKey(authorization) { // some clients can send no other header
		p, err := c.Keys.Authenticate(ctx, token)
		return caller{principal: p}, err
	}
	connection, p, err := c.Connections.ConnectionByToken(ctx, access.HashSecret(token))
	if fault.CodeOf(err) == fault.NotFound {
		return caller{}, refused
	}
	if err == nil && c.Now().Sub(connection.LastUsedAt) > connectionSeen {
		_ = c.Connections.TouchConnection(ctx, connection.ID, connection.GrantID) // may be lost, as on a full disk: reading goes on
	}
	return caller{principal: p, connection: connection}, err
}

var bearerShape = regexp.MustCompile(`^(?i:Bearer) ([A-Za-z0-9._~+/-]{1,256}={0,2})$`)

// bearer returns the token of an Authorization header (RFC 6750, 2.1).
func bearer(authorization string) (token string, ok bool) {
	found := bearerShape.FindStringSubmatch(authorization)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// isKey reports whether the token of an Authorization header is an API key rather than
// an access token, none of which begins so.
func isKey(authorization string) bool {
	token, ok := bearer(authorization)
	return ok && strings.HasPrefix(token, "mk_")
}

// challenge is the WWW-Authenticate header of a 401.
func (c Config) challenge(presented bool) string {
	text := `Bearer resource_metadata="` + c.ResourceMetadata + `", scope="` + access.DevicesRead.Scopes()[0] + ` ` +
		access.PoliciesRead.Scopes()[0] + `"`
	if presented {
		text += `, error="invalid_token", error_description="the access token is invalid, expired or revoked"`
	}
	return text
}

// carry hands the caller to the SDK, which gives it to each handler.
func carry(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	found := recordOf(ctx).caller
	return &auth.TokenInfo{UserID: found.principal.BudgetKey(), Extra: map[string]any{callerKey: found}}, nil
}

// originCheck refuses every request that a browser sends for another site's
// page. Comparing Origin with Host would not do: a name that an attacker
// rebinds to this machine is both. So the origin must be the public URL's, or
// that of a page on this very machine which the request's Host names too.
func (c Config) originCheck(next http.Handler) http.Handler {
	public := originOf(c.PublicURL)
	crossSite := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Values("Origin")
		allowed := len(given) == 1 && (given[0] == public && public != "" || isLocalPage(given[0], r.Host))
		if len(given) == 0 {
			allowed = crossSite.Check(r) == nil
		}
		if !allowed {
			reply(w, http.StatusForbidden, "Forbidden", "requests from another origin are refused")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// originOf is the origin of an address as browsers write it; "" for none.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// isLocalPage reports whether origin is that of a page which this machine
// itself serves at host.
func isLocalPage(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host != host {
		return false
	}
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}
