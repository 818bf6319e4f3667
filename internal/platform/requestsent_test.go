package platform_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/platform"
)

const (
	enterprise = "enterprises/LC01"
	device     = enterprise + "/devices/d1"
)

// order is a LOCK for a device that exists nowhere but in the test's server.
func order(t command.Type, body any) command.Order {
	now := time.Now()
	return command.Order{
		Command: command.Command{ID: "c1", CompanyID: "co1", AssetID: "a1", Epoch: 1, Type: t, State: command.Prepared,
			CreatedAt: now, Deadline: now.Add(t.Lifetime(asset.Platform))},
		AssetID: "a1",
		Device:  asset.Device{Name: device, Management: asset.Platform, Ownership: asset.CompanyOwned, Mode: asset.FullyManaged},
		Body:    body,
	}
}

// oneCompany is the store of the only company that there is.
type oneCompany struct{ companies }

type companies = platform.Companies

func (oneCompany) CompanyByID(_ context.Context, id string) (company.Company, error) {
	return company.Company{ID: id, Slug: "acme", Enterprise: enterprise}, nil
}

func at(t *testing.T, address string, change func(*platform.Config)) *platform.Platform {
	t.Helper()
	cfg := platform.Config{Endpoint: address, Now: time.Now, CallTimeout: 5 * time.Second, Stores: platform.Stores{Companies: oneCompany{}}}
	if change != nil {
		change(&cfg)
	}
	p, err := platform.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The vendor's answers, and what becomes of them (contract 7.1).
func TestSend_ClassifiesEveryAnswer(t *testing.T) {
	t.Parallel()
	vendorError := func(code int, status, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"error":{"code":%d,"message":%q,"status":%q}}`, code, message, status)
		}
	}
	html := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "<html><body>Bad gateway</body></html>")
		}
	}
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		gone   bool // the enterprise is gone as well
		want   outcome.Code
		says   string
	}{
		{name: "accepted", answer: text(`{"name":"` + device + `/operations/1"}`), want: outcome.Accepted},
		{name: "done", answer: text(`{"name":"` + device + `/operations/1","done":true,"metadata":{"type":"LOCK"}}`), want: outcome.Done},
		{name: "done with an error code",
			answer: text(`{"name":"` + device + `/operations/1","done":true,"metadata":{"errorCode":"API_LEVEL"}}`),
			want:   outcome.Refused, says: "Android version"},
		{name: "done with an error", answer: text(`{"name":"` + device + `/operations/1","done":true,"error":{"code":1}}`),
			want: outcome.Refused, says: "cancelled: "},
		{name: "not modified", answer: html(304), want: outcome.Unknown},
		{name: "400", answer: vendorError(400, "INVALID_ARGUMENT", "Invalid value at 'x'."), want: outcome.Refused,
			says: "Invalid value at 'x'"},
		{name: "400 precondition", answer: vendorError(400, "FAILED_PRECONDITION", "no"), want: outcome.Refused},
		{name: "401", answer: vendorError(401, "UNAUTHENTICATED", "who"), want: outcome.Denied},
		{name: "403", answer: vendorError(403, "PERMISSION_DENIED", "no"), want: outcome.Denied},
		{name: "403 for an exhausted quota", answer: text403quota, want: outcome.Throttled},
		{name: "404, enterprise there", answer: vendorError(404, "NOT_FOUND", "Requested entity was not found."), want: outcome.Gone},
		{name: "404, enterprise gone", answer: vendorError(404, "NOT_FOUND", "Requested entity was not found."), gone: true,
			want: outcome.Denied},
		{name: "500 that means 404", answer: vendorError(500, "INTERNAL", "Requested entity was not found."), want: outcome.Gone},
		{name: "409", answer: vendorError(409, "ABORTED", "again"), want: outcome.Conflict},
		{name: "429", answer: vendorError(429, "RESOURCE_EXHAUSTED", "Quota exceeded"), want: outcome.Throttled},
		{name: "500", answer: vendorError(500, "INTERNAL", "oops"), want: outcome.Unknown},
		{name: "502 in HTML", answer: html(502), want: outcome.Unknown},
		{name: "503", answer: vendorError(503, "UNAVAILABLE", "later"), want: outcome.Unknown},
		{name: "504", answer: vendorError(504, "DEADLINE_EXCEEDED", "slow"), want: outcome.Unknown},
		{name: "200 in HTML", answer: html(200), want: outcome.Unknown},
		{name: "200 without a name", answer: text(`{}`), want: outcome.Unknown},
		{name: "400 in HTML", answer: html(400), want: outcome.Refused, says: "gave no reason"},
		{name: "a redirect", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, want: outcome.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var commands atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ":issueCommand") || r.URL.Path == "/elsewhere" {
					commands.Add(1)
					c.answer(w, r)
					return
				}
				if c.gone {
					vendorError(403, "PERMISSION_DENIED", "not yours")(w, r)
					return
				}
				text(`{"name":"`+enterprise+`"}`)(w, r)
			}))
			defer server.Close()
			r := at(t, server.URL, nil).Send(t.Context(), order(command.Lock, nil))
			if r.Code != c.want {
				t.Errorf("outcome %v (%s; %v); want %v", r.Code, r.Detail, r.Cause, c.want)
			}
			if !strings.Contains(r.Detail, c.says) {
				t.Errorf("detail %q does not say %q", r.Detail, c.says)
			}
			if n := commands.Load(); n != 1 {
				t.Errorf("the command was sent %d times", n)
			}
			if (r.Ref != "") != (strings.Contains(c.name, "accepted") || strings.Contains(c.name, "done")) {
				t.Errorf("ref %q", r.Ref)
			}
		})
	}
}

func text403quota(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(403)
	_, _ = io.WriteString(w, `{"error":{"code":403,"message":"Quota","errors":[{"reason":"rateLimitExceeded","message":"Quota"}]}}`)
}

// wire serves raw connections: what it returns is written, or the connection
// is reset if it returns false.
func wire(t *testing.T, serve func(request *http.Request, w net.Conn) bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					if !serve(r, c) {
						_ = c.(*net.TCPConn).SetLinger(0)
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// The phases in which an attempt may fail without a whole answer.
func TestSend_ClassifiesByPhase(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + closed.Addr().String()
	_ = closed.Close()
	hanging := make(chan struct{})
	t.Cleanup(func() { close(hanging) })
	var attempts atomic.Int32
	count := func(serve func(w net.Conn) bool) func(*http.Request, net.Conn) bool {
		return func(_ *http.Request, w net.Conn) bool { attempts.Add(1); return serve(w) }
	}
	for _, c := range []struct {
		name    string
		address func(t *testing.T) string
		want    outcome.Code
	}{
		{"connection refused", func(*testing.T) string { return refusing }, outcome.NotSent},
		{"no such host", func(*testing.T) string { return "http://nowhere.invalid" }, outcome.NotSent},
		{"no answer in time", func(t *testing.T) string {
			return wire(t, func(*http.Request, net.Conn) bool { <-hanging; return false })
		}, outcome.Unknown},
		{"reset after the request", func(t *testing.T) string {
			return wire(t, func(*http.Request, net.Conn) bool { return false })
		}, outcome.Unknown},
		{"truncated body", func(t *testing.T) string {
			return wire(t, func(_ *http.Request, w net.Conn) bool {
				_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"name\":")
				return false
			})
		}, outcome.Unknown},
		{"not HTTP", func(t *testing.T) string {
			return wire(t, count(func(w net.Conn) bool { _, _ = io.WriteString(w, "SSH-2.0\r\n"); return false }))
		}, outcome.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := at(t, c.address(t), func(cfg *platform.Config) { cfg.CallTimeout = 300 * time.Millisecond })
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the caller has gone away: it changes nothing
			r := p.Send(ctx, order(command.Lock, nil))
			if r.Code != c.want {
				t.Errorf("outcome %v (%s; %v), want %v", r.Code, r.Detail, r.Cause, c.want)
			}
			if r.Cause == nil {
				t.Error("no cause for the log")
			}
		})
	}
}

// A command is never replayed on a kept connection that the server closed.
func TestSend_NeverReplays(t *testing.T) {
	t.Parallel()
	var commands atomic.Int32
	address := wire(t, func(_ *http.Request, w net.Conn) bool {
		if commands.Add(1) > 1 {
			return false
		}
		body := `{"name":"` + device + `/operations/1"}`
		fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return true
	})
	p := at(t, address, nil)
	if r := p.Send(t.Context(), order(command.Lock, nil)); r.Code != outcome.Accepted {
		t.Fatalf("first: %+v", r)
	}
	if r := p.Send(t.Context(), order(command.Lock, nil)); r.Code != outcome.Unknown {
		t.Errorf("second: %+v", r)
	}
	if n := commands.Load(); n != 2 {
		t.Errorf("%d commands reached the server, want 2", n)
	}
}

// Whatever the vendor repeats of a request, the new password is nowhere.
func TestSend_ConcealsThePassword(t *testing.T) {
	t.Parallel()
	const password = "Tr0ub4dor-marker"
	for name, answer := range map[string]func(http.ResponseWriter){
		"refused": func(w http.ResponseWriter) {
			w.WriteHeader(400)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": 400, "status": "INVALID_ARGUMENT",
				"message": "Invalid value at 'command.new_password', " + password}})
		},
		"failed at once": func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"name":%q,"done":true,"error":{"code":3,"message":%q},"metadata":{"newPassword":%q}}`,
				device+"/operations/1", "bad: "+password, password)
		},
		"failed there": func(w http.ResponseWriter) { http.Error(w, password, 500) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
			defer server.Close()
			log := &logged{}
			p := at(t, server.URL, func(c *platform.Config) { c.Logger = log.logger() })
			body := command.PasswordBody{NewPassword: password}
			r := p.Send(t.Context(), order(command.ChangeScreenLockPassword, body)).WithoutSecret(body)
			if r.Code == outcome.Accepted || r.Code == outcome.Done {
				t.Fatalf("outcome %v", r.Code)
			}
			all := fmt.Sprintf("%+v %v %s", r, r.Cause, log.String())
			for err := r.Cause; err != nil; err = errors.Unwrap(err) {
				all += fmt.Sprintf("%+v", err)
			}
			if strings.Contains(all, password) {
				t.Errorf("the password shows: %s", all)
			}
		})
	}
}

// answers serves one JSON body to every request.
func answers(body string) func(*http.Request, net.Conn) bool {
	return func(_ *http.Request, w net.Conn) bool {
		fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return true
	}
}
