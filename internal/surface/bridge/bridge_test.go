package bridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/bridge"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// warnings keeps what the bridge says to the operator.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.WriteString(text + "\n")
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// pipe runs a bridge and returns the client's end; the test waits for its end.
func pipe(t *testing.T, b *bridge.Bridge) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	if b.Warn == nil {
		b.Warn = func(string) {}
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(b.Run(t.Context(), theirIn, theirOut), theirOut.Close()) }()
	t.Cleanup(func() {
		_ = in.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		if err := <-ended; err != nil {
			t.Errorf("the bridge ended with %v", err)
		}
	})
	return in, out
}

type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", k.key)
	return http.DefaultTransport.RoundTrip(r)
}

// dial connects the SDK's client, by the bridge or straight.
func dial(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func newSite(t *testing.T) (*servertest.Tenant, *servertest.Replica) {
	env := servertest.New(t)
	replica := env.Start()
	return env.NewTenant("acme"), replica
}

// What a client sees over the bridge is what it sees over HTTP, to the byte.
func TestBridge_IsTransparent(t *testing.T) {
	t.Parallel()
	tenant, replica := newSite(t)
	key, endpoint := tenant.Key(tenant.Company, access.All), replica.PublicURL()+mcp.Path
	in, out := pipe(t, &bridge.Bridge{Endpoint: endpoint, Key: key})
	over := dial(t, &sdk.IOTransport{Reader: io.NopCloser(out), Writer: in})
	straight := dial(t, &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: keyed{key}}})

	same(t, "initialize", over.InitializeResult(), straight.InitializeResult())
	if got := over.InitializeResult(); got.ProtocolVersion != "2026-07-28" || !strings.Contains(got.Instructions, "apply_policy_proposal") {
		t.Errorf("revision %q, instructions %q", got.ProtocolVersion, got.Instructions)
	}
	list := func(s *sdk.ClientSession) any { return must(s.ListTools(t.Context(), nil)) }
	same(t, "tools/list", list(over), list(straight))
	call := func(s *sdk.ClientSession, tool string, arguments map[string]any) *sdk.CallToolResult {
		return must(s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments}))
	}
	settings := map[string]any{"policyId": tenant.Policy.ID}
	same(t, "a read", call(over, "get_policy_settings", settings), call(straight, "get_policy_settings", settings))

	code := call(over, "create_provisioning_qr_code", settings)
	picture, ok := code.Content[len(code.Content)-1].(*sdk.ImageContent)
	if !ok || picture.MIMEType != "image/png" || !bytes.HasPrefix(picture.Data, []byte("\x89PNG")) {
		t.Errorf("the QR code arrives as %+v", code.Content)
	}
	for name, arguments := range map[string]map[string]any{"lock_device": {"assetId": "none"}, "get_asset": {"wrong": true}} {
		t.Run(name, func(t *testing.T) {
			got := call(over, name, arguments)
			if !got.IsError {
				t.Errorf("%s: no error", name)
			}
			same(t, name, got, call(straight, name, arguments))
		})
	}
	_, overErr := over.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such_tool"})
	_, straightErr := straight.CallTool(t.Context(), &sdk.CallToolParams{Name: "no_such_tool"})
	var overWire, straightWire *jsonrpc.Error
	if !errors.As(overErr, &overWire) || !errors.As(straightErr, &straightWire) {
		t.Fatalf("an unknown tool: %v; straight: %v", overErr, straightErr)
	}
	same(t, "an unknown tool", overWire, straightWire)
}

// What a client says of a call in _meta reaches the service.
func TestBridge_PassesIdempotencyKeys(t *testing.T) {
	t.Parallel()
	tenant, replica := newSite(t)
	key, endpoint := tenant.Key(tenant.Company, access.All), replica.PublicURL()+mcp.Path
	in, out := pipe(t, &bridge.Bridge{Endpoint: endpoint, Key: key})
	session := dial(t, &sdk.IOTransport{Reader: io.NopCloser(out), Writer: in})
	call := &sdk.CallToolParams{Meta: sdk.Meta{"muster/idempotencyKey": "k"}, Name: "create_provisioning_qr_code",
		Arguments: map[string]any{"policyId": tenant.Policy.ID}}
	first, again := must(session.CallTool(t.Context(), call)), must(session.CallTool(t.Context(), call))
	if first.IsError || first.Meta["muster/idempotencyReplayed"] != nil || again.Meta["muster/idempotencyReplayed"] != true {
		t.Errorf("first %v, again %v, error %v", first.Meta, again.Meta, first.IsError)
	}
	same(t, "the repetition", again.StructuredContent, first.StructuredContent)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(string(must(json.Marshal(want))), string(must(json.Marshal(got)))); diff != "" {
		t.Errorf("%s (-straight +over the bridge):\n%s", what, diff)
	}
}

// A client's revision is the service's to agree on, and is kept afterwards.
func TestBridge_PassesRevisions(t *testing.T) {
	t.Parallel()
	tenant, replica := newSite(t)
	key := tenant.Key(tenant.Company, access.DevicesRead)
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			in, out := pipe(t, &bridge.Bridge{Endpoint: replica.PublicURL() + mcp.Path, Key: key})
			lines := bufio.NewScanner(out)
			lines.Buffer(nil, 1<<20)
			fmt.Fprintf(in,
				`{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n", revision)
			if lines.Scan(); !strings.Contains(lines.Text(), `"protocolVersion":"`+revision+`"`) ||
				!strings.Contains(lines.Text(), `"id":"first"`) {
				t.Fatalf("answered %s", lines.Text())
			}
			fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"count_assets","arguments":{}}}`)
			if lines.Scan(); !strings.Contains(lines.Text(), `\"count\":0`) || !strings.Contains(lines.Text(), `"id":7`) {
				t.Fatalf("answered %s", lines.Text())
			}
		})
	}
}

// A client that closes standard input after a request still gets its answer.
func TestBridge_AnswersBeforeTheEnd(t *testing.T) {
	t.Parallel()
	tenant, replica := newSite(t)
	b := &bridge.Bridge{Endpoint: replica.PublicURL() + mcp.Path, Key: tenant.Key(tenant.Company, access.DevicesRead),
		Warn: func(string) {}}
	var out bytes.Buffer
	err := b.Run(t.Context(),
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_assets","arguments":{}}}`+"\n"), &out)
	if err != nil || !strings.Contains(out.String(), `\"count\":0`) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := b.Run(t.Context(), strings.NewReader("no JSON"), &out); err != nil || !strings.Contains(out.String(), `"code":-32700`) {
		t.Errorf("an unfinished line that is no JSON: %q, %v", out.String(), err)
	}
}

// Failures reach the client as errors of its requests, and never the key.
func TestBridge_ReportsFailures(t *testing.T) {
	t.Parallel()
	_, replica := newSite(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") != "" {
			t.Error("the key went to another address")
		}
	}))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for endpoint, says := range map[string]string{
		replica.PublicURL() + mcp.Path: "the service refuses the API key",
		other.URL:                      "Not Found",
		moved.URL:                      "Temporary Redirect",
		gone.URL:                       "connection refused",
	} {
		t.Run(endpoint, func(t *testing.T) {
			warned := &warnings{}
			b := &bridge.Bridge{Endpoint: endpoint, Key: "mk_wrong_secret", Warn: warned.add}
			var out bytes.Buffer
			if err := b.Run(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`+"\n"), &out); err != nil {
				t.Errorf("%s: %v", endpoint, err)
			}
			if !strings.Contains(out.String(), says) || !strings.Contains(out.String(), `"id":3`) ||
				!strings.Contains(warned.String(), says) {
				t.Errorf("%s: the client reads %q, the operator %q; want %q", endpoint, out.String(), warned, says)
			}
			if strings.Contains(out.String()+warned.String(), "mk_wrong_secret") {
				t.Errorf("%s: the key is revealed", endpoint)
			}
		})
	}
}

// Canceling a request hangs up on the service; the client hears no answer.
func TestBridge_Cancellation(t *testing.T) {
	t.Parallel()
	arrived, hungUp := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte("slow_tool")) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
			return
		}
		close(arrived)
		<-r.Context().Done()
		close(hungUp)
	}))
	defer slow.Close()
	in, out := pipe(t, &bridge.Bridge{Endpoint: slow.URL, Key: "mk"})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow_tool"}}`)
	<-arrived
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-hungUp
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, `"id":2`) {
		t.Errorf("the next answer is %q, %v", line, err)
	}
}

// A client that goes away ends the bridge, and what it had asked for.
func TestBridge_EndOfContext(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
	}))
	defer slow.Close()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	go func() {
		fmt.Fprintln(writer, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		<-arrived
		cancel()
	}()
	b := &bridge.Bridge{Endpoint: slow.URL, Key: "mk", Warn: func(string) {}}
	if err := b.Run(ctx, reader, io.Discard); err != nil {
		t.Error(err)
	}
}

// A line that is no message is answered and does not end the bridge: the host
// would lose the service with it.
func TestBridge_AnswersLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	tenant, replica := newSite(t)
	in, out := pipe(t, &bridge.Bridge{Endpoint: replica.PublicURL() + mcp.Path, Key: tenant.Key(tenant.Company, access.All)})
	lines := bufio.NewScanner(out)
	const parse, invalid = -32700, -32600
	for _, c := range []struct {
		line string
		code int
	}{
		{"this is not JSON", parse}, {`{"jsonrpc":"2.0",`, parse}, {`{"jsonrpc":"2.0","id":1,"method":"ping"} more`, parse},
		{"\xff\xfe", parse},
		{`"` + strings.Repeat("x", 2<<20) + `"`, parse}, {"7", invalid}, {`{"hello":"world"}`, invalid},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, invalid},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, invalid}, {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, invalid},
	} {
		t.Run(c.line, func(t *testing.T) {
			go func() { _, _ = io.WriteString(in, "\n"+c.line+"\r\n") }()
			var got struct {
				ID    *json.RawMessage
				Error struct {
					Code    int
					Message string
				}
			}
			if !lines.Scan() || json.Unmarshal(lines.Bytes(), &got) != nil || got.Error.Code != c.code || got.Error.Message == "" {
				t.Fatalf("%.40q: %s, want error %d", c.line, lines.Bytes(), c.code)
			}
		})
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":9007199254740992,`) || !strings.Contains(lines.Text(), `"result"`) {
		t.Errorf("a ping after them: %s", lines.Text())
	}
}

// The bridge refuses what the service refuses, with the same code, and carries the rest.
func TestBridge_ReadsAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	tenant, replica := newSite(t)
	key, endpoint := tenant.Key(tenant.Company, access.All), replica.PublicURL()+mcp.Path
	over := func(line string) []byte {
		var out bytes.Buffer
		b := &bridge.Bridge{Endpoint: endpoint, Key: key, Warn: func(string) {}}
		if err := b.Run(t.Context(), strings.NewReader(line+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	straight := func(line string) []byte {
		request := must(http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(line)))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		response := must((&http.Client{Transport: keyed{key}}).Do(request))
		defer response.Body.Close()
		return must(io.ReadAll(response.Body))
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","ID":2}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_asset","arguments":{"assetId":"a","assetId":"b"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_asset","arguments":{"assetId":"` + "\xff" + `"}}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"ping"}`,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":7}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 120) + strings.Repeat("]", 120) + `}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		t.Run(fmt.Sprintf("%.90q", line), func(t *testing.T) {
			type answer struct {
				ID     any
				Error  struct{ Code int }
				Result json.RawMessage
			}
			var got, want answer
			one, other := over(line), straight(line)
			if (len(one) > 0) != (len(other) > 0) {
				t.Fatalf("the bridge answers %q, the service %q", one, other)
			}
			_, _ = json.Unmarshal(one, &got), json.Unmarshal(other, &want) // what is not answered stays empty
			same(t, "the answer", got, want)
		})
	}
}

// What is said before the response, as of a subscription, is passed on, and the response after it.
func TestBridge_PassesStreams(t *testing.T) {
	t.Parallel()
	tenant, replica := newSite(t)
	b := &bridge.Bridge{Endpoint: replica.PublicURL() + mcp.Path, Key: tenant.Key(tenant.Company, access.DevicesRead),
		Warn: func(string) {}}
	var out bytes.Buffer
	const listen = `{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
		`{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	if err := b.Run(t.Context(), strings.NewReader(listen+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "acknowledged") || !strings.Contains(lines[1], `"id":"s"`) ||
		!strings.Contains(lines[1], `"result"`) {
		t.Errorf("a subscription is answered %q", lines)
	}
}

// The service's reason for a failure reaches the client under the request's id, without the key.
func TestBridge_PassesReasons(t *testing.T) {
	t.Parallel()
	const key = "mk_abc_secret"
	for _, c := range []struct {
		name, body, says string
		status, code     int
	}{
		{"id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the body is too long"}}`, "the body is too long", 413,
			-32600},
		{"a limit", `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"wait 9 s","data":{"retryAfter":9}}}`, `"retryAfter":9`, 429,
			-32000},
		{"out of order", `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the database is away"}}`, "the database is away", 503,
			-32603},
		{"the shape of REST", `{"error":"Forbidden","message":"the connection lacks the scope x","status":403}`, "lacks the scope x", 403,
			-32603},
		{"the key", `{"error":"Forbidden","message":"` + key + ` may not","status":403}`, "… may not", 403, -32603},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			defer server.Close()
			warned := &warnings{}
			var out bytes.Buffer
			b := &bridge.Bridge{Endpoint: server.URL, Key: key, Warn: warned.add}
			if err := b.Run(t.Context(), strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`+"\n"), &out); err != nil {
				t.Fatal(err)
			}
			var got struct {
				ID    int
				Error struct{ Code int }
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.ID != 7 || got.Error.Code != c.code ||
				!strings.Contains(out.String(), c.says) {
				t.Errorf("the client reads %s, want %s with code %d", out.String(), c.says, c.code)
			}
			if strings.Contains(out.String()+warned.String(), key) {
				t.Error("the key is revealed")
			}
		})
	}
}

// Whatever a client sends: the bridge does not fail, and each line that it
// answers is one JSON-RPC message.
func FuzzLines(f *testing.F) {
	for _, line := range []string{"no JSON\n{}\n", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "[]\r\n\r\n7",
		`{"jsonrpc":"2.0","id":1e3,"method":"ping"}` + "\n", "\"\xff\"\n"} {
		f.Add([]byte(line))
	}
	refuse := carrier(func(*http.Request) (*http.Response, error) { return nil, errors.New("no server is there") })
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		b := &bridge.Bridge{Endpoint: "http://127.0.0.1/mcp", Key: "mk_x", Warn: func(string) {}, Transport: refuse}
		if err := b.Run(t.Context(), bytes.NewReader(input), &out); err != nil {
			t.Fatalf("%q: %v", input, err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var answer struct {
				JSONRPC string
				Error   *struct{ Code int }
			}
			if err := json.Unmarshal(line, &answer); err != nil || answer.JSONRPC != "2.0" || answer.Error == nil {
				t.Fatalf("%q is answered %q", input, line)
			}
		}
	})
}

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }
