package oauth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/outbound"
	"github.com/musterhq/muster/internal/validate"
)

// Limits of a client's metadata document.
const (
	documentTimeout  = 5 * time.Second
	documentLimit    = 5 << 10 // bytes
	documentCacheMax = time.Hour
	documentCacheMin = time.Minute
)

// clientMetadata is what a client says of itself, in its own document or at
// registration (RFC 7591).
type clientMetadata struct {
	ClientID      string   `json:"client_id,omitempty"`
	ClientName    string   `json:"client_name,omitempty"`
	ClientURI     string   `json:"client_uri,omitempty"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types,omitempty"`
	ResponseTypes []string `json:"response_types,omitempty"`
	AuthMethod    string   `json:"token_endpoint_auth_method,omitempty"`
	Scope         string   `json:"scope,omitempty"`
}

const (
	maxRedirects  = 10
	maxClientName = 100
	maxURI        = 2048
)

// check returns what is wrong with the redirect URIs and the name.
func (m clientMetadata) check() *protocolFault {
	if n := len(m.RedirectURIs); n == 0 || n > maxRedirects {
		return &protocolFault{invalidRedirect, fmt.Sprintf("redirect_uris must list 1 to %d addresses", maxRedirects)}
	}
	for _, uri := range m.RedirectURIs {
		if len(uri) > maxURI {
			return &protocolFault{invalidRedirect, "redirect_uris: an address is too long"}
		}
		if why := redirectFault(uri); why != "" {
			return &protocolFault{invalidRedirect, "redirect_uris: an address " + why}
		}
	}
	if len(m.ClientName) > maxClientName {
		return &protocolFault{invalidMetadata, fmt.Sprintf("client_name is longer than %d bytes", maxClientName)}
	}
	if !utf8.ValidString(m.ClientName) || strings.ContainsFunc(m.ClientName, unicode.IsControl) {
		return &protocolFault{invalidMetadata, "client_name must be UTF-8 without control characters"}
	}
	return nil
}

// isDocumentID reports whether a client id is the address of a metadata
// document: https, with a path, without fragment, user information or dots.
func isDocumentID(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Fragment == "" && u.User == nil && len(id) <= maxURI &&
		u.Path != "" && u.Path != "/" && !strings.Contains(u.Path, "/.") && isPrintable(id)
}

// DocumentFetcher fetches client metadata documents. A client id cannot make
// the service reach into its own network: see package outbound.
type DocumentFetcher struct {
	client *http.Client

	mu     sync.Mutex
	failed map[string]time.Time // until when a document is not fetched again
}

// The documents that are fetched at a time: from one host, so that a slow one
// does not keep others waiting, and in all.
const (
	fetchesPerHost = 2
	fetchesAtOnce  = 32
)

// NewDocumentFetcher returns a fetcher; allow nil means port 443 of public
// addresses only.
func NewDocumentFetcher(allow func(netip.Addr) bool) *DocumentFetcher {
	return newDocumentFetcher(allow, nil)
}

func newDocumentFetcher(allow func(netip.Addr) bool, roots *x509.CertPool) *DocumentFetcher {
	o := outbound.Options{Allow: allow, Timeout: documentTimeout, MaxBody: documentLimit + 1, PerHost: fetchesPerHost,
		Total: fetchesAtOnce, Roots: roots}
	if allow == nil {
		o.Port = 443
	}
	return &DocumentFetcher{client: outbound.NewClient(o), failed: map[string]time.Time{}}
}

var errDocument = errors.New("the client's metadata document cannot be used")

// fetch returns the client that the document at id describes, and how long it
// may be kept. A document that could not be used is not fetched again for a
// minute.
func (f *DocumentFetcher) fetch(ctx context.Context, id string, now time.Time) (oauth.Client, time.Duration, error) {
	f.mu.Lock()
	until := f.failed[id]
	f.mu.Unlock()
	if access.Holds(until.Add(-documentCacheMin), documentCacheMin, now) {
		return oauth.Client{}, 0, fmt.Errorf("%w: it could not be used a moment ago", errDocument)
	}
	client, keep, err := f.download(ctx, id)
	if err != nil && ctx.Err() == nil { // not because the caller went away
		f.remember(id, now)
	}
	return client, keep, err
}

// failuresKept bounds the documents that are remembered as not usable.
const failuresKept = 1000

func (f *DocumentFetcher) remember(id string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.failed, func(_ string, until time.Time) bool { return !now.Before(until) })
	if len(f.failed) >= failuresKept {
		clear(f.failed)
	}
	f.failed[id] = now.Add(documentCacheMin)
}

func (f *DocumentFetcher) download(ctx context.Context, id string) (oauth.Client, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return oauth.Client{}, 0, errDocument
	}
	request.Header.Set("Accept", "application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return oauth.Client{}, 0, fmt.Errorf("%w: %w", errDocument, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return oauth.Client{}, 0, fmt.Errorf("%w: status %d", errDocument, response.StatusCode)
	}
	if !isJSON(response.Header.Get("Content-Type")) {
		return oauth.Client{}, 0, fmt.Errorf("%w: its content type is not JSON", errDocument)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, documentLimit+1))
	if err != nil || len(body) > documentLimit {
		return oauth.Client{}, 0, fmt.Errorf("%w: it is longer than %d bytes or broke off", errDocument, documentLimit)
	}
	client, err := parseDocument(id, body)
	return client, cacheFor(response.Header.Get("Cache-Control")), err
}

// isJSON reports whether a content type is JSON. A host that serves uploads
// under other types must not lend its name to a client.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

// parseDocument reads a metadata document found at id.
func parseDocument(id string, body []byte) (oauth.Client, error) {
	var m clientMetadata
	if err := json.Unmarshal(body, &m); err != nil {
		return oauth.Client{}, fmt.Errorf("%w: it is not a JSON object with each member once", errDocument)
	}
	switch wrong := m.check(); {
	case validate.Blank(m.ClientName):
		return oauth.Client{}, fmt.Errorf("%w: client_name is missing", errDocument)
	case m.ClientID != id:
		return oauth.Client{}, fmt.Errorf("%w: its client_id is not its own address", errDocument)
	case m.AuthMethod != "" && m.AuthMethod != "none":
		return oauth.Client{}, fmt.Errorf("%w: only public clients are supported", errDocument)
	case wrong != nil:
		return oauth.Client{}, fmt.Errorf("%w: %s", errDocument, wrong.Description)
	}
	return oauth.Client{ID: id, Name: m.ClientName, RedirectURIs: m.RedirectURIs}, nil
}

// cacheFor reads max-age, within our own bounds.
func cacheFor(header string) time.Duration {
	for directive := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(strings.ToLower(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return documentCacheMin
		case "max-age":
			if d, err := time.ParseDuration(strings.Trim(value, `"`) + "s"); err == nil {
				return min(max(d, documentCacheMin), documentCacheMax)
			}
		}
	}
	return 10 * time.Minute
}
