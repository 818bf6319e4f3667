package emulator

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// refuseBrowsers refuses calls of the control API that a web page could have a
// browser make: from another origin, under a name that an attacker may point at
// this machine (DNS rebinding), or in a form that browsers send without asking.
// Programs send none of these; curl's form media type stays good as long as no
// browser says that a page sent it.
func (e *Emulator) refuseBrowsers(r *http.Request) error {
	if !e.knownHost(r.Host) {
		return fail(http.StatusForbidden, "The control API is not served under the host name %q: call it by an IP address, localhost, a name without a dot, or the emulator's public address.", r.Host)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return fail(http.StatusForbidden, "The control API does not take calls from pages of other origins.")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if from, err := url.Parse(origin); err != nil || from.Host != r.Host {
			return fail(http.StatusForbidden, "The control API does not take calls from pages of other origins.")
		}
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media == "text/plain" || media == "multipart/form-data" {
		return fail(http.StatusUnsupportedMediaType, "The control API takes application/json, not %s.", media)
	}
	return nil
}

// knownHost reports whether the host name cannot be pointed at this machine by others:
// addresses, names of the machine itself and of its own network, and the
// emulator's public address.
func (e *Emulator) knownHost(host string) bool {
	if public, err := url.Parse(e.options.PublicURL); err == nil && public.Host != "" && strings.EqualFold(public.Host, host) {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	// No name below these can be registered (RFC 6761, ICANN's reservation of internal).
	host = strings.ToLower(host)
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".test")
}
