package servertest

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
)

// Proxy is a load balancer without affinity: each request goes to the next
// replica in turn.
type Proxy struct {
	URL      string
	Replicas []*Replica
	requests atomic.Int64
}

// StartBehindProxy starts count replicas behind one public address.
func (e *Env) StartBehindProxy(count int) *Proxy {
	e.TB.Helper()
	f := &Proxy{}
	server := httptest.NewServer(f)
	e.TB.Cleanup(server.Close)
	f.URL = server.URL
	for range count {
		f.Replicas = append(f.Replicas, e.Start(func(c *config.Service, _ *service.Options) { c.PublicURL = f.URL }))
	}
	return f
}

// ServeHTTP implements http.Handler.
func (f *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := f.requests.Add(1) % int64(len(f.Replicas))
	f.Replicas[n].Handler().ServeHTTP(w, r)
}

// At is the address of one replica, beside the front.
func (f *Proxy) At(i int) string { return "http://" + f.Replicas[i].Addr().String() }
