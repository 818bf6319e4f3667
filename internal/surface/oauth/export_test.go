package oauth

import (
	"crypto/x509"
	"net/http"
	"net/netip"
	"net/url"
)

// What the tests of the rules look at.
var (
	RedirectFault   = redirectFault
	RedirectAllowed = redirectAllowed
	ToLoopback      = toLoopback
	IsDocumentID    = isDocumentID
	ParseDocument   = parseDocument
	CacheFor        = cacheFor
)

// FetcherThatTrusts is a fetcher that believes a test's certificates.
func FetcherThatTrusts(allow func(netip.Addr) bool, roots *x509.CertPool) *DocumentFetcher {
	return newDocumentFetcher(allow, roots)
}

// ParseAuthorization checks an authorization request's parameters, as the
// authorize endpoint does; to is where an answer would go, empty if nowhere.
func (s *Server) ParseAuthorization(r *http.Request, query url.Values) (to string, err error) {
	a, err := s.parseAuthorization(r, query)
	if a.RedirectURI == "" {
		return "", err
	}
	return a.answer(s.Issuer, url.Values{}), err
}
