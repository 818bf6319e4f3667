package service_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/service"
)

// A request that lasts longer than the limit is cut off, with a warning: the service ends
// without an error.
func TestShutdown_CutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	begun, log := make(chan struct{}), &bytes.Buffer{}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served, asked := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	go func() {
		answer, err := http.Get("http://" + listener.Addr().String())
		if err == nil {
			err = answer.Body.Close()
		}
		asked <- err
	}()
	<-begun
	if err := service.Shutdown([]*http.Server{server}, time.Millisecond, slog.New(slog.NewTextHandler(log, nil))); err != nil {
		t.Errorf("the end of the service fails: %v", err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("the server ended with %v", err)
	}
	if <-asked == nil {
		t.Error("the request was answered")
	}
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("the log has no warning: %s", log)
	}
}
