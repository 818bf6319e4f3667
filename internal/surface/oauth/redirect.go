package oauth

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
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
