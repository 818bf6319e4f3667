package client

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/script"
)

// Hold calls send, whose first request over the transport stops before its body. The service has begun to read the body
// when Hold returns: the caller was let in, and nothing was decided. finish sends the body and returns what send returned;
// where send failed, it ends the script.
func Hold[T any](send func(over http.RoundTripper) T) (finish func() T) {
	reading, ended := make(chan struct{}), make(chan struct{})
	g := &gate{begun: sync.OnceFunc(func() { close(reading) }), open: make(chan struct{}),
		inner: http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}}
	var result T
	var failed error
	go func() {
		defer close(ended)
		failed = script.Attempt(func() { result = send(g) })
	}()
	select {
	case <-reading:
	case <-ended: // refused before its body was read
	}
	return func() T {
		close(g.open)
		<-ended
		script.Need(failed)
		return result
	}
}

// gate is a transport that holds its first request.
type gate struct {
	once  sync.Once
	begun func()        // called when the service begins to read the body
	open  chan struct{} // closed when the body may go
	inner http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.once.Do(func() {
		r = r.Clone(r.Context())
		r.Header.Set("Expect", "100-continue")
		r.Body, r.GetBody = gated{r.Body, g}, nil
	})
	return g.inner.RoundTrip(r)
}

// gated is a body that the transport reads when the service asks for it, and that waits then.
type gated struct {
	io.ReadCloser
	gate *gate
}

// Read implements io.Reader.
func (b gated) Read(p []byte) (int, error) {
	b.gate.begun()
	<-b.gate.open
	return b.ReadCloser.Read(p)
}
