package outbound

import "net/netip"

// Public reports whether an address is globally reachable: no private,
// loopback, link-local, multicast or reserved address, and none that leads to
// one by translation or tunneling.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !special(a)
}

// special reports the networks of the IANA registries of special-purpose
// addresses (RFC 6890) that Go's own predicates do not know, site-local
// addresses (RFC 3879), and IPv4-compatible ones (RFC 4291).
func special(a netip.Addr) bool {
	for _, text := range [...]string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16",
		"3fff::/20", "5f00::/16", "fec0::/10",
	} {
		if netip.MustParsePrefix(text).Contains(a) {
			return true
		}
	}
	return false
}

// Within returns the rule that allows public addresses and those of networks.
func Within(networks []netip.Prefix) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		if Public(a) {
			return true
		}
		for _, network := range networks {
			if network.Contains(a.Unmap().WithZone("")) {
				return true
			}
		}
		return false
	}
}
