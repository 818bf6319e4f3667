// Package outbound makes HTTP requests to addresses that strangers and
// companies choose, without letting them reach into the service's own network.
//
// An address is checked when it is dialed, so a name that resolves to another
// address a moment later gains nothing. There are no redirects and no proxy;
// time, length and number of requests are limited.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Options are the limits of a client.
type Options struct {
	Allow   func(netip.Addr) bool // nil: Public
	Port    uint16                // the one port that may be dialed; 0: any
	Timeout time.Duration         // of a whole request, its body included
	MaxBody int64                 // bytes of an answer's body; reading more fails
	PerHost int                   // requests to one host at a time; more wait
	Total   int                   // requests to all hosts at a time; more wait
	Roots   *x509.CertPool        // nil: the system's
	Plain   bool                  // http as well, to every address of Allow
}

// NewClient returns a client within o. It speaks https; http only with o.Plain, or to a
// loopback address that o.Allow names.
func NewClient(o Options) *http.Client {
	if o.Allow == nil {
		o.Allow = Public
	}
	dialer := &net.Dialer{Timeout: o.Timeout, Control: func(_, address string, _ syscall.RawConn) error { return o.permits(address) }}
	g := &guard{options: o, total: make(chan struct{}, o.Total), hosts: map[string]*host{}, next: &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: o.Timeout,
		ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: &tls.Config{RootCAs: o.Roots}}}
	return &http.Client{Timeout: o.Timeout, Transport: g,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (o Options) permits(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !o.Allow(to.Addr().Unmap().WithZone("")) {
		return fmt.Errorf("the address %s %w", address, ErrNotPublic)
	}
	if o.Port != 0 && to.Port() != o.Port {
		return fmt.Errorf("port %d is not allowed; use %d", to.Port(), o.Port)
	}
	return nil
}

// ErrNotPublic says that an address is not one of those that may be dialed.
var ErrNotPublic = errors.New("is not public")

// ErrScheme says that an address is neither https, nor http on a loopback
// address that is allowed.
var ErrScheme = errors.New("the address must be https")

// CheckScheme returns ErrScheme unless an address with this scheme and host
// name may be asked under the rule allow.
func CheckScheme(scheme, hostname string, allow func(netip.Addr) bool) error {
	if scheme == "https" {
		return nil
	}
	if scheme != "http" {
		return ErrScheme
	}
	if hostname == "localhost" {
		hostname = "127.0.0.1"
	}
	if a, err := netip.ParseAddr(hostname); err != nil || !a.IsLoopback() || !allow(a) {
		return ErrScheme
	}
	return nil
}

// guard is the transport of a client.
type guard struct {
	options Options
	next    http.RoundTripper
	total   chan struct{}

	mu    sync.Mutex
	hosts map[string]*host
}

// host counts the requests to one host; it is dropped when there are none.
type host struct {
	slots chan struct{}
	users int // under way and waiting; guarded by guard.mu
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := CheckScheme(r.URL.Scheme, r.URL.Hostname(), g.options.Allow); err != nil && !(g.options.Plain && r.URL.Scheme == "http") {
		return nil, err
	}
	release, err := g.acquire(r.Context(), r.URL.Host)
	if err != nil {
		return nil, err
	}
	response, err := g.next.RoundTrip(r)
	if err != nil {
		release()
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, left: g.options.MaxBody, release: release}
	return response, nil
}

// acquire waits for the host's turn first, so that a slow host holds none of
// the slots that others wait for.
func (g *guard) acquire(ctx context.Context, name string) (release func(), err error) {
	h := g.enter(name)
	if err := wait(ctx, h.slots); err != nil {
		g.leave(name, h)
		return nil, err
	}
	if err := wait(ctx, g.total); err != nil {
		<-h.slots
		g.leave(name, h)
		return nil, err
	}
	return sync.OnceFunc(func() {
		<-g.total
		<-h.slots
		g.leave(name, h)
	}), nil
}

func wait(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *guard) enter(name string) *host {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, known := g.hosts[name]
	if !known {
		h = &host{slots: make(chan struct{}, g.options.PerHost)}
		g.hosts[name] = h
	}
	h.users++
	return h
}

func (g *guard) leave(name string, h *host) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(g.hosts, name)
	}
}

// body ends with an error after a number of bytes, and gives the slots back
// when it is closed.
type body struct {
	io.ReadCloser
	left    int64
	release func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("the answer is too long")
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

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
		"168.63.129.16/32", // public by its number, but Azure's metadata
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
	in := In(networks)
	return func(a netip.Addr) bool {
		return Public(a) || in(a)
	}
}

// In returns the rule that allows addresses of networks alone.
func In(networks []netip.Prefix) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a.Unmap().WithZone("")) })
	}
}
