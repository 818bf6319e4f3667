package mcp

import (
	"net"
	"net/http"
	"net/url"
)

// originCheck refuses every request that a browser sends for another site's
// page. Comparing Origin with Host would not do: a name that an attacker
// rebinds to this machine is both. So the origin must be the public URL's, or
// that of a page on this very machine which the request's Host names too.
func (c Config) originCheck(next http.Handler) http.Handler {
	public := originOf(c.PublicURL)
	crossSite := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Values("Origin")
		switch {
		case len(given) == 0:
			if crossSite.Check(r) == nil {
				next.ServeHTTP(w, r)
				return
			}
		case len(given) == 1 && (given[0] == public && public != "" || isLocalPage(given[0], r.Host)):
			next.ServeHTTP(w, r)
			return
		}
		reply(w, http.StatusForbidden, "Forbidden", "requests from another origin are refused")
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
