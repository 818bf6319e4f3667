// Package dns finds the service's address on devices where Go cannot: a binary
// without cgo looks for /etc/resolv.conf, which Android does not have. It asks,
// in this order, the servers that Android says it uses, those that were given at
// provisioning, Android's own resolver through ping, and at last its memory:
// the server that answers must still prove to be the service.
package dns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// The limits of one look-up.
const (
	serverTime = 3 * time.Second
	maxServers = 8
	maxKept    = 16 // hosts in memory
)

// Resolver finds addresses.
type Resolver struct {
	// Run starts one of the device's programs and returns what it wrote. It fails if the program does not
	// start, takes too long, or ends with another status than 0.
	Run    func(ctx context.Context, tool string, args ...string) (string, error)
	Given  []string // servers from provisioning, as IP or IP:port
	Memory string   // the file that keeps the last good addresses; empty: none
	// System is asked first where the machine has its own set-up; nil: it has not.
	System *net.Resolver

	mu sync.Mutex // the memory file
}

// Lookup returns the addresses of a host, the likeliest first.
func (r *Resolver) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	if !hostForm.MatchString(host) || len(host) > 253 {
		return nil, fmt.Errorf("%.100q is not the name of a host", host)
	}
	var failed []error
	for _, ask := range []func(context.Context, string) ([]netip.Addr, error){r.system, r.android, r.given, r.ping} {
		found, err := ask(ctx, host)
		if err == nil && len(found) > 0 {
			return found, nil
		}
		failed = append(failed, err)
	}
	if kept := r.remembered(host); len(kept) > 0 {
		return kept, nil
	}
	return nil, fmt.Errorf("cannot find the address of %s: %w", host, errors.Join(failed...))
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

func (r *Resolver) system(ctx context.Context, host string) ([]netip.Addr, error) {
	if r.System == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	return r.System.LookupNetIP(ctx, "ip", host)
}

// android asks the servers of the networks that the device is in.
func (r *Resolver) android(ctx context.Context, host string) ([]netip.Addr, error) {
	text, err := r.Run(ctx, "dumpsys", "connectivity")
	if err != nil {
		return nil, err
	}
	return r.ask(ctx, host, ParseServers(text))
}

func (r *Resolver) given(ctx context.Context, host string) ([]netip.Addr, error) {
	var servers []netip.AddrPort
	for _, text := range r.Given {
		if at, err := parseServer(text); err == nil {
			servers = append(servers, at)
		}
	}
	return r.ask(ctx, host, servers)
}

func parseServer(text string) (netip.AddrPort, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(ip, 53), nil
	}
	return netip.ParseAddrPort(text)
}

// ask asks one server after the other.
func (r *Resolver) ask(ctx context.Context, host string, servers []netip.AddrPort) ([]netip.Addr, error) {
	var failed []error
	for _, server := range servers[:min(len(servers), maxServers)] {
		one := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server.String())
		}}
		ctx, cancel := context.WithTimeout(ctx, serverTime)
		found, err := one.LookupNetIP(ctx, "ip", host)
		cancel()
		if err == nil && len(found) > 0 {
			for i := range found {
				found[i] = found[i].Unmap()
			}
			return found, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// ping lets Android's own resolver find the address: ping prints it. Whether
// anything answers does not matter.
func (r *Resolver) ping(ctx context.Context, host string) ([]netip.Addr, error) {
	text, err := r.Run(ctx, "ping", "-c", "1", "-W", "1", host)
	if ip, ok := ParsePing(text); ok {
		return []netip.Addr{ip}, nil
	}
	return nil, err
}

var serverList = regexp.MustCompile(`DnsAddresses: \[([^\]\n]{0,1000})\]`)

// ParseServers reads the name servers from `dumpsys connectivity`, each once.
func ParseServers(text string) []netip.AddrPort {
	var found []netip.AddrPort
	seen := map[netip.Addr]bool{}
	for _, m := range serverList.FindAllStringSubmatch(text, maxServers) {
		for word := range strings.FieldsFuncSeq(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			_, word, _ = strings.Cut(word, "/") // "host/address", the host mostly empty
			ip, err := netip.ParseAddr(word)
			if err != nil || seen[ip] || ip.IsUnspecified() || ip.IsMulticast() {
				continue
			}
			seen[ip] = true
			found = append(found, netip.AddrPortFrom(ip, 53))
		}
	}
	return found[:min(len(found), maxServers)]
}

var pinged = regexp.MustCompile(`^PING6? [^ ()]{1,253} ?\(([0-9A-Fa-f:.]{2,45})\)`)

// ParsePing reads the address from ping's first line.
func ParsePing(text string) (netip.Addr, bool) {
	m := pinged.FindStringSubmatch(text)
	if m == nil {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(m[1])
	return ip, err == nil && !ip.IsUnspecified()
}

// Dial connects to a host's first address that answers, and remembers it.
func (r *Resolver) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := r.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	var failed []error
	for _, ip := range found {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(ip.String(), port))
		if err == nil {
			r.remember(host, ip)
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

func (r *Resolver) remembered(host string) []netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ip, ok := r.load()[host]; ok {
		return []netip.Addr{ip}
	}
	return nil
}

func (r *Resolver) load() map[string]netip.Addr {
	kept := map[string]netip.Addr{}
	text, err := os.ReadFile(r.Memory)
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return map[string]netip.Addr{} // a lost memory is made again
	}
	return kept
}

// remember keeps an address that a connection was made to. Losing it costs
// nothing but the last resort.
func (r *Resolver) remember(host string, ip netip.Addr) {
	if r.Memory == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.load()
	if _, numeric := netip.ParseAddr(host); numeric == nil || kept[host] == ip || len(kept) >= maxKept {
		return
	}
	kept[host] = ip
	text, err := json.Marshal(kept)
	if err != nil {
		return
	}
	fresh := r.Memory + ".new"
	if os.MkdirAll(filepath.Dir(r.Memory), 0o700) == nil && os.WriteFile(fresh, text, 0o600) == nil {
		_ = os.Rename(fresh, r.Memory)
	}
}
