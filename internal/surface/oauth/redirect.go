package oauth

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// redirectFault says why a redirect URI cannot be registered; empty: it can.
// Only https and loopback are allowed, without fragment or user information.
func redirectFault(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || !u.IsAbs() || u.Opaque != "" || u.Host == "":
		return "must be an absolute address"
	case u.Fragment != "" || strings.Contains(text, "#"):
		return "must not have a fragment"
	case u.User != nil:
		return "must not carry a user name"
	case strings.ContainsAny(text, " \t\r\n\\") || !isPrintable(text):
		return "must be plain ASCII"
	case !hostShape.MatchString(u.Host):
		return "must name a host by letters, digits, dots and hyphens, or an IP address"
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	}
	return "must use https, or http on a loopback address"
}

// hostShape is a host with an optional port. A host also stands in the page's
// security policy, so it must not hold what separates things there.
var hostShape = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func isPrintable(text string) bool {
	for _, r := range text {
		if r < 0x20 || r > 0x7e {
			return false
		}
	}
	return true
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
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
	anyPort := *got
	anyPort.Host = want.Host
	return anyPort.String() == registered
}

// redirectAllowed returns whether any of the registered URIs matches.
func redirectAllowed(registered []string, requested string) bool {
	for _, uri := range registered {
		if redirectMatches(uri, requested) {
			return true
		}
	}
	return false
}

// loopbackOnly reports whether a client can only be reached on the person's
// own machine: then nothing tells who it is, and consent warns.
func loopbackOnly(uris []string) bool {
	for _, uri := range uris {
		if u, err := url.Parse(uri); err != nil || !isLoopback(u.Hostname()) {
			return false
		}
	}
	return len(uris) > 0
}
