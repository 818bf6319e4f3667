package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// rpcAnswer is an answer of JSON-RPC.
type rpcAnswer struct {
	JSONRPC string
	ID      json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

func newAssistant(t *testing.T, has access.Permission) (*servertest.Env, servertest.Assistant) {
	t.Helper()
	env := servertest.New(t)
	replica := env.Start()
	return env, servertest.WithKey(t, replica.PublicURL(), env.Key(env.Company("acme", servertest.Everything()), has)).Legacy()
}

func TestIDs_ComeBackUnchangedOrAreRefused(t *testing.T) {
	t.Parallel()
	_, assistant := newAssistant(t, access.DevicesRead)
	for id, taken := range map[string]bool{
		"1": true, "0": true, "-7": true, `"1.5"`: true, `"ä"`: true, `""`: true, "9007199254740992": true, "-9007199254740992": true,
		"9007199254740993": false, "-9007199254740993": false, "1.5": false, "1e3": false, "1180591620717411303424": false,
		"true": false, "{}": false, "[1]": false, "null": false,
	} {
		t.Run(id, func(t *testing.T) {
			for _, call := range []string{`"tools/list"`, `"tools/call","params":{"name":"count_assets","arguments":{}}`} {
				got := assistant.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":` + call + `}`)
				var answer rpcAnswer
				got.JSON(t, &answer)
				if taken {
					if got.Status != http.StatusOK || answer.Result == nil || string(answer.ID) != id {
						t.Errorf("id %s, %s: %d, id %s, want it back", id, call, got.Status, answer.ID)
					}
					continue
				}
				if got.Status != http.StatusBadRequest || answer.Error == nil || answer.Error.Code != -32600 {
					t.Errorf("id %s, %s: %d %s, want error -32600", id, call, got.Status, got.Body)
				}
				if string(answer.ID) != "null" {
					t.Errorf("id %s, %s: the answer has the id %s, want none", id, call, answer.ID)
				}
			}
		})
	}
}

func TestRefusals_AreInOurWords(t *testing.T) {
	t.Parallel()
	_, assistant := newAssistant(t, access.DevicesRead)
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":"q","method":"` + method + `","params":` + params + `}`
	}
	deep := request("tools/call", `{"name":"count_assets","arguments":{"a":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}}`)
	for what, c := range map[string]struct {
		body         string
		status, code int
		headers      []string
	}{
		"a name that is a number":    {request("tools/call", `{"name":7,"arguments":{}}`), 200, -32602, nil},
		"params that are a list":     {request("tools/call", `["secret"]`), 200, -32602, nil},
		"no params":                  {`{"jsonrpc":"2.0","id":"q","method":"tools/call"}`, 200, -32602, nil},
		"_meta that is a text":       {request("tools/list", `{"_meta":"secret"}`), 200, -32602, nil},
		"_meta of a ping":            {request("ping", `{"_meta":["secret"]}`), 200, -32602, nil},
		"a cursor that is an object": {request("tools/list", `{"cursor":{"secret":1}}`), 200, -32602, nil},
		"capabilities that are words": {request("initialize",
			`{"protocolVersion":"2025-11-25","capabilities":"secret","clientInfo":{"name":"t","version":"1"}}`), 200, -32602, nil},
		"a client without a name": {request("initialize",
			`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":["secret"],"version":"1"}}`), 200, -32602, nil},
		"deep arguments":            {deep, 400, -32600, nil},
		"an id that is an object":   {strings.Replace(request("tools/list", "{}"), `"q"`, `{"secret":1}`, 1), 400, -32600, nil},
		"a method that is a number": {`{"jsonrpc":"2.0","id":"q","method":7}`, 400, -32600, nil},
		"no method":                 {`{"jsonrpc":"2.0","id":"q"}`, 400, -32600, nil},
		"an argument twice": {request("tools/call", `{"name":"get_asset","arguments":{"assetId":"a","assetId":"b"}}`), 400,
			-32600, nil},
		"another revision":     {request("tools/list", "{}"), 400, -32600, []string{"Mcp-Protocol-Version", "1999-01-01"}},
		"another type of body": {request("tools/list", "{}"), 415, -32600, []string{"Content-Type", "text/plain"}},
	} {
		t.Run(what, func(t *testing.T) {
			each := assistant
			each.Header = assistant.Header.Clone()
			for i := 0; i+1 < len(c.headers); i += 2 {
				each.Header[c.headers[i]] = []string{c.headers[i+1]}
			}
			got := each.Send(c.body)
			var answer rpcAnswer
			if err := json.Unmarshal(got.Body, &answer); err != nil || answer.Error == nil {
				t.Errorf("%s: %d %s, %v, want an error", what, got.Status, got.Body, err)
				return
			}
			if got.Status != c.status || answer.Error.Code != c.code || answer.Error.Message == "" {
				t.Errorf("%s: %d %s, want %d with error %d", what, got.Status, got.Body, c.status, c.code)
				return
			}
			for _, internal := range []string{"Go ", "json:", "unmarshal", "mcp.", "jsonrpc2", "struct", "secret", "handling"} {
				if strings.Contains(answer.Error.Message, internal) {
					t.Errorf("%s: the message %q holds %q", what, answer.Error.Message, internal)
				}
			}
			if c.status == http.StatusOK && string(answer.ID) != `"q"` {
				t.Errorf("%s: id %s", what, answer.ID)
			}
		})
	}
	// Arguments that are no object are the tool's to refuse, in its own terms.
	failed := assistant.Call("count_assets", `[1]`).Failed(t)
	if failed.Code != "invalid_arguments" || !strings.Contains(failed.Message, "arguments") || strings.Contains(failed.Message, "body") {
		t.Errorf("a list as arguments: %+v", failed)
	}
}

// People paste the address with a slash behind it.
func TestBody_TooLongOrBroken(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	key := env.Key(env.Company("acme", servertest.Everything()), access.DevicesRead)
	host := strings.TrimPrefix(replica.PublicURL(), "http://")
	for body, want := range map[string]int{"no chunk\r\n": http.StatusBadRequest,
		"50000\r\n" + strings.Repeat(" ", 0x50000) + "\r\n0\r\n\r\n": http.StatusRequestEntityTooLarge} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			_, _ = io.WriteString(conn, "POST "+mcp.Path+" HTTP/1.1\r\nHost: "+host+"\r\nX-API-Key: "+key+
				"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream"+
				"\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
		}()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != want || !strings.Contains(string(text), "-32600") {
			t.Errorf("a body that begins with %.9q: %d %s, want %d", body, answer.StatusCode, text, want)
		}
	}
}

func TestPath_ASlashAtItsEndChangesNothing(t *testing.T) {
	t.Parallel()
	_, assistant := newAssistant(t, access.DevicesRead)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	want := assistant.Send(list).Want(t, http.StatusOK)
	slashed := assistant
	slashed.URL = strings.TrimSuffix(assistant.URL, "/") + mcp.Path + "/#" // Send adds the path: it becomes the fragment
	if got := slashed.Send(list); got.Status != http.StatusOK || string(got.Body) != string(want.Body) {
		t.Errorf("%d %.200s", got.Status, got.Body)
	}
	slashed.Header = http.Header{}
	if got := slashed.Send(list); got.Status != http.StatusUnauthorized ||
		!strings.Contains(got.Header.Get("Www-Authenticate"), "resource_metadata=") {
		t.Errorf("without credentials: %d, challenge %q", got.Status, got.Header.Get("Www-Authenticate"))
	}
}

// What runs no tool and what is refused counts against the ceiling of reads, so
// that no caller can ask without end.
func TestCeiling_CountsWhatSpendsNoBudget(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.ReadsPerMinute = 3 })
	acme := env.Company("acme", servertest.Everything())
	for what, body := range map[string]string{
		"tools/list":           `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"ping":                 `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"a method not offered": `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`,
		"no JSON":              `{`,
		"an unknown tool":      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","arguments":{}}}`,
		"a forbidden tool":     `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe_device","arguments":{"assetId":"a"}}}`,
		"wrong arguments":      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_assets","arguments":{"a":1}}}`,
	} {
		t.Run(what, func(t *testing.T) {
			assistant := servertest.WithKey(t, replica.PublicURL(), env.Key(acme, access.DevicesRead)).Legacy()
			for range 3 {
				if got := assistant.Send(body); got.Status == http.StatusTooManyRequests ||
					strings.Contains(string(got.Body), "rate_limited") {
					t.Fatalf("too early: %d %s", got.Status, got.Body)
				}
			}
			got := assistant.Send(body)
			var answer rpcAnswer
			got.JSON(t, &answer)
			inTool := strings.Contains(string(answer.Result), "rate_limited") && strings.Contains(string(answer.Result), "retryAfter")
			onWire := got.Status == http.StatusTooManyRequests && got.Header.Get("Retry-After") != "" && answer.Error != nil &&
				strings.Contains(string(answer.Error.Data), "rate_limited")
			if !inTool && !onWire {
				t.Errorf("above the ceiling: %d %s", got.Status, got.Body)
			}
			if read := assistant.Call("count_assets", nil).Failed(t); read.Code != "rate_limited" || read.RetryAfter < 1 {
				t.Errorf("a read above the ceiling: %+v", read)
			}
		})
	}
}

// The status INACTIVE hangs on a period of the company's, which is given where a
// model reads of the status.
func TestToolList_TellsTheInactivityPeriod(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	for slug, want := range map[string]time.Duration{"30 days": 0, "1 day": 24 * time.Hour, "90 minutes": 90 * time.Minute} {
		t.Run(slug, func(t *testing.T) {
			c := env.Company(strings.ReplaceAll("c-"+slug, " ", "-"), servertest.Everything())
			if want != 0 {
				if _, err := env.DB().UpdateCompany(t.Context(), c.ID, func(c *company.Company) error {
					c.InactiveAfter = want
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			count := 0
			for _, tool := range servertest.WithKey(t, replica.PublicURL(), env.Key(c, access.All)).Tools() {
				if strings.Contains(tool.Description, "INACTIVE after "+slug+" of silence.") {
					count++
				} else if strings.Contains(tool.Description, "of silence") {
					t.Errorf("%s: %q, want %s", tool.Name, tool.Description, slug)
				}
			}
			if count != 3 {
				t.Errorf("%s: given with %d tools, want the three that read assets", slug, count)
			}
		})
	}
}

// failing are the stores of a service. fail, if not nil, is what each method of them does: it returns an error, or panics.
type failing struct {
	oauth.ConnectionStore
	company.Store
	operation.BudgetStore
	fail func() error
	key  apikey.Key
}

func (f *failing) try() error {
	if f.fail == nil {
		return nil
	}
	return f.fail()
}

func (f *failing) principal() access.Principal {
	return access.Principal{Kind: access.APIKey, ID: f.key.ID, CompanyID: "c", CompanySlug: "acme", Permissions: access.All,
		Settings: servertest.Everything()}
}

func (f *failing) KeyByPrefix(context.Context, string) (apikey.Key, access.Principal, error) {
	return f.key, f.principal(), nil
}

func (f *failing) TouchKey(context.Context, string) error { return nil }

func (f *failing) CompanyByID(context.Context, string) (company.Company, error) {
	return company.Company{InactiveAfter: time.Hour}, f.try()
}

func (f *failing) Spend(_ context.Context, _ string, limit int, window time.Duration, now time.Time) (int, bool, time.Time, error) {
	return limit, true, now.Add(window), f.try()
}

func (f *failing) ConnectionByToken(context.Context, access.SecretHash) (oauth.Connection, access.Principal, error) {
	return oauth.Connection{LastUsedAt: time.Now()}, f.principal(), f.try()
}

// unreadable are keys of a database that is away.
type unreadable struct{ *failing }

func (u unreadable) KeyByPrefix(context.Context, string) (apikey.Key, access.Principal, error) {
	return apikey.Key{}, access.Principal{}, u.fail()
}

type toolArgs struct {
	AssetID string `path:"assetId" rule:"required" doc:"The asset."`
}

type toolResult struct {
	ID     string `json:"id" doc:"What was asked for." example:"8k2v"`
	Broken bool   `json:"-"`
}

// MarshalJSON fails if the result is broken.
func (r toolResult) MarshalJSON() ([]byte, error) {
	if r.Broken {
		return nil, errSecret
	}
	return []byte(`{"id":"` + r.ID + `"}`), nil
}

var errSecret = errors.New("secret cause")

// serveFailing starts the surface over the stores, and returns a client with a key, what is logged, and the status that is
// noted of each request.
func serveFailing(t *testing.T, f *failing, keys apikey.KeyReader) (assistant servertest.Assistant, log *servertest.Log, noted chan int) {
	t.Helper()
	log, noted = &servertest.Log{}, make(chan int, 10)
	var text string
	f.key, text = apikey.New("c", "test", "operator", access.All, time.Now(), time.Time{})
	var registry operation.Registry
	operation.Define(&registry, operation.Operation{Name: "get_asset", Title: "Read asset", Description: "Reads an asset.", Method: "GET",
		Path: "/assets/{assetId}", Needs: access.DevicesRead, Dialect: operation.Reads, Effect: operation.Reading},
		func(_ context.Context, _ operation.Call, args toolArgs) (toolResult, error) {
			return toolResult{args.AssetID, args.AssetID == "broken"}, nil
		})
	operation.Define(&registry, operation.Operation{Name: "lock_device", Title: "Lock device", Description: "Locks a device.",
		Method: "POST", Path: "/assets/{assetId}/commands/lock", Needs: access.DevicesCommand, Dialect: operation.Commands,
		Budget: operation.AfterValidation, Effect: operation.Writing},
		func(_ context.Context, _ operation.Call, args toolArgs) (toolResult, error) {
			return toolResult{ID: args.AssetID}, nil
		})
	logger := slog.New(slog.NewTextHandler(log, nil))
	tools, err := mcp.New(mcp.Config{Registry: &registry, Once: operation.Once{Kernel: operation.NewKernel(operation.Config{
		Budgets: operation.Budgets{Store: f, Now: time.Now}, Now: time.Now, Log: logger})},
		Keys: apikey.Authenticator{Keys: keys, Now: time.Now}, Connections: f, Companies: f, Now: time.Now, Log: logger,
		Served: func(_ string, status int, _ time.Duration) { noted <- status }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(tools)
	t.Cleanup(server.Close)
	return servertest.WithKey(t, server.URL, text), log, noted
}

// fails returns the error that stores fail with, and panics that one is.
func fails() map[string]func() error {
	return map[string]func() error{
		"an error": func() error { return errSecret },
		"a panic":  func() error { panic(errSecret) },
	}
}

// A caller who cannot be looked up is told what REST says: nothing was done.
func TestCredentials_DatabaseIsAway(t *testing.T) {
	t.Parallel()
	for what, header := range map[string]http.Header{"a key": nil, "a token": {"Authorization": {"Bearer mat_x"}}} {
		f := &failing{fail: func() error { return errSecret }}
		assistant, log, _ := serveFailing(t, f, unreadable{f})
		if header != nil {
			assistant.Header = header
		}
		got := assistant.Request("tools/list", nil)
		m := got.Members(t)
		if got.Status != http.StatusServiceUnavailable || m["status"] != 503.0 || m["error"] != "Service Unavailable" ||
			m["message"] != operation.NotSentDetail {
			t.Errorf("%s: %d %s", what, got.Status, got.Body)
		}
		if text := string(log.Text()); !strings.Contains(text, errSecret.Error()) {
			t.Errorf("%s: the log has %q", what, text)
		}
	}
}

// What a tool list lacks because of a failure of our own is for the log alone.
func TestToolList_OwnFailureIsLogged(t *testing.T) {
	t.Parallel()
	for what, fail := range fails() {
		f := &failing{}
		assistant, log, noted := serveFailing(t, f, f)
		if names := assistant.Names(); len(names) != 2 {
			t.Fatalf("tools %v", names)
		}
		<-noted
		f.fail = fail
		got := assistant.Request("tools/list", nil)
		if got.Error == nil || got.Error.Code != -32603 || got.Error.Message != "an unexpected error occurred; try again" {
			t.Errorf("%s: %d %s", what, got.Status, got.Body)
		}
		text := string(log.Text())
		if status := <-noted; status < 500 || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, errSecret.Error()) {
			t.Errorf("%s: noted as %d, the log has %q", what, status, text)
		}
	}
}

// Tools run on goroutines of the SDK: a panic there would end the process.
func TestTools_OwnFailureIsTheirError(t *testing.T) {
	t.Parallel()
	for what, fail := range fails() {
		for tool, id := range map[string]string{"lock_device": "a1", "get_asset": "broken"} {
			f := &failing{fail: fail}
			assistant, log, noted := serveFailing(t, f, f)
			got := assistant.Call(tool, `{"assetId":"`+id+`"}`)
			e := got.Failed(t)
			if e.Code != "internal_error" || e.Status != 500 || e.Retryable {
				t.Errorf("%s in %s: %+v", what, tool, e)
			}
			if !strings.Contains(e.Message, got.Header.Get("X-Request-Id")) || strings.Contains(string(got.Body), "secret") {
				t.Errorf("%s in %s: the message %q", what, tool, e.Message)
			}
			if status := <-noted; status != 500 || !strings.Contains(string(log.Text()), errSecret.Error()) {
				t.Errorf("%s in %s: noted as %d, the log has %q", what, tool, status, log.Text())
			}
			f.fail = nil
			assistant.Call(tool, `{"assetId":"a1"}`).OK(t, nil)
		}
	}
}
