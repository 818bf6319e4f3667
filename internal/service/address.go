package service

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress finds out where a request came from.
type clientAddress struct{ proxies []netip.Prefix }

// of is the peer's address, whatever a header says; only from a proxy that the
// operator trusts it is the last address in X-Forwarded-For that no trusted
// proxy has.
func (c clientAddress) of(r *http.Request) string {
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil || !c.trusts(peer) {
			break
		}
		peer = next.Unmap().WithZone("").String()
	}
	return peer
}

func (c clientAddress) trusts(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap().WithZone("")) })
}
