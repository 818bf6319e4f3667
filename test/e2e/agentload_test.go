package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/poll"
)

// The goals P1, P3, P4 and P5 of docs/performance-agents.md through the whole
// service as a process of its own. Beside it, as another process, are the
// floors: net/http that decodes a small POST, and a bare connection with a
// goroutine that is pushed to. A run worth quoting is
//
//	go test ./test/e2e -run '^$' -bench Agents/sqlite -agents 10000 -benchtime 3000x -timeout 60m
var loadAgents = flag.Int("agents", 500, "agents in the agents' benchmarks")

func BenchmarkAgents(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { loadTheAgents(b, "sqlite:"+filepath.Join(b.TempDir(), "load.db")) })
	b.Run("postgres", func(b *testing.B) { loadTheAgents(b, pgtest.DSN(b)) })
}

func loadTheAgents(b *testing.B, url string) {
	f := newLoadFleet(b, url, *loadAgents, 2500)
	floor := startUnderLoad(b, "push", url)
	const small = `{"agentVersion":"1"}`
	for _, callers := range []int{2, 32} {
		at := fmt.Sprintf(", %d callers", callers)
		echo := floor.load(b, "P1/floor"+at, callers, nil, func(int) (string, string, string, string) { return "POST", "/echo", "", small })
		f.ours.measure(b, "P1/check-in"+at, callers, echo, func(n int) error {
			_, err := f.some(n).checkIn(f, protocol.CheckinRequest{AgentVersion: "1"})
			return err
		})
		three := floor.measure(b, "P3/floor, three posts"+at, callers, nil, func(n int) error {
			r := func(int) (string, string, string, string) { return "POST", "/echo", "", small }
			return errors.Join(floor.do(r, n), floor.do(r, n), floor.do(r, n))
		})
		f.ours.measure(b, "P3/trip"+at, callers, three, func(n int) error { return f.some(n).trip(f) })
	}
	bare := connectAll(b, "floor", floor, *loadAgents, func(n int) (net.Conn, error) { return dialBare(floor, n) }, nil, nil)
	push := bare.rate(b, "P4/floor", nil, func(n int) error {
		return floor.do(func(int) (string, string, string, string) { return "POST", "/push?id=" + strconv.Itoa(n), "", small }, n)
	})
	bare.close()
	var ours *connected
	ours = connectAll(b, "service", f.ours, *loadAgents, func(n int) (net.Conn, error) { return f.agents[n].listen(f) },
		func(n int, data []byte) error { return f.agents[n].pushed(f, data, func() { ours.arrived(n) }) }, bare)
	ours.rate(b, "P4/command", push, func(n int) error { return f.agents[n].order(f) })
	ours.close()
}

// loadFleet is a service with a company and enrolled agents.
type loadFleet struct {
	ours   *underLoad
	agents []*loadAgent
	keys   []string
	spent  atomic.Int64
}

func (f *loadFleet) some(n int) *loadAgent { return f.agents[n%len(f.agents)] }

// key returns one with budget left: each is used ten times.
func (f *loadFleet) key() string { return f.keys[int(f.spent.Add(1)-1)/10%len(f.keys)] }

// newLoadFleet starts the service, with words before its command.
func newLoadFleet(b testing.TB, url string, agents, keys int, before ...string) *loadFleet {
	b.Helper()
	ctx := b.Context()
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	c, err := company.New("acme", "Acme", access.Settings{DeviceCommands: true}, time.Now())
	check(err)
	db, err := database.Open(ctx, database.Options{URL: url, Now: time.Now})
	check(err)
	defer func() { check(db.Close()) }()
	admin, err := service.OpenAdmin(time.Now, "")(ctx, config.Store{Database: url}, cli.Creates)
	check(err)
	check(admin.Companies.CreateCompany(ctx, c))
	p, err := admin.Policies.Create(ctx, policy.New{CompanyID: c.ID, CompanySlug: c.Slug, Name: "Kiosk", Type: policy.Agent},
		policy.Author{Kind: "SYSTEM"})
	check(err)
	check(admin.Close())
	f := &loadFleet{}
	for range agents {
		a := &loadAgent{token: access.NewSecret("met_")}
		check(db.CreateAgentToken(ctx, agentdevice.Token{Hash: sha256.Sum256([]byte(a.token)), CompanyID: c.ID, PolicyID: p.ID,
			ExpiresAt: time.Now().Add(time.Hour)}))
		f.agents = append(f.agents, a)
	}
	for n := range keys {
		key, text := apikey.New(c.ID, fmt.Sprint("key ", n), "operator", access.All, time.Now(), time.Time{})
		check(db.CreateKey(ctx, key))
		f.keys = append(f.keys, text)
	}
	f.ours = startUnderLoad(b, "service", url, before...)
	check(f.each(64, func(n int) error {
		a := f.agents[n]
		if err := a.enroll(f, n); err != nil {
			return err
		}
		known, err := db.AgentDevice(ctx, a.id)
		a.asset = known.AssetID
		return err
	}))
	return f
}

// each works on every agent, some at once, and returns an error of one.
func (f *loadFleet) each(callers int, work func(n int) error) error {
	var next, failed atomic.Int64
	var first atomic.Value
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(f.agents) && failed.Load() == 0; n = int(next.Add(1)) - 1 {
				if err := work(n); err != nil {
					failed.Add(1)
					first.Store(err)
				}
			}
		})
	}
	all.Wait()
	err, _ := first.Load().(error)
	return err
}

// loadAgent is an agent with nothing but the protocol.
type loadAgent struct {
	mu       sync.Mutex // one request at a time, as agents do
	token    string
	id       string
	asset    string
	key      protocol.PrivateKey
	sequence int64
}

func (a *loadAgent) enroll(f *loadFleet, n int) (err error) {
	if a.key, err = protocol.NewPrivateKey(protocol.Ed25519); err != nil {
		return err
	}
	public, err := a.key.Public()
	if err != nil {
		return err
	}
	facts := fmt.Appendf(nil, `{"serialNumber":"LOAD-%d","manufacturer":"Load","brand":"load","model":"Load 1","sdk":34,"osVersion":"14"}`,
		n)
	now := time.Now().UnixMilli()
	proof, err := a.key.Sign(protocol.EnrollMessage(a.token, public, facts, now))
	if err != nil {
		return err
	}
	body, err := json.Marshal(protocol.EnrollRequest{Token: a.token, Key: public, Facts: facts, AgentVersion: "1", Role: protocol.Manager,
		Time: now, Proof: proof})
	if err != nil {
		return err
	}
	var sealed protocol.Envelope
	if err := postTo(f.ours.client, f.ours.url+protocol.Base+"/enroll", body, nil, &sealed); err != nil {
		return err
	}
	enrolled, err := sealed.OpenEnrolled("", public, proof)
	if err != nil {
		return err
	}
	a.id = enrolled.DeviceID
	answer, err := a.checkIn(f, protocol.CheckinRequest{AgentVersion: "1", Capabilities: []protocol.Capability{protocol.Launch}})
	if err != nil {
		return err
	}
	var assigned protocol.Assignment
	if err := answer.Assignment.Open(enrolled.CommandKey.Key, protocol.KindAssignment, &assigned); err != nil {
		return err
	}
	_, err = a.checkIn(f, protocol.CheckinRequest{AgentVersion: "1",
		Policy: &protocol.PolicyReport{PolicyRef: protocol.PolicyRef{ID: assigned.PolicyID, Version: assigned.Version}}})
	return err
}

func postTo(client *http.Client, url string, body []byte, headers http.Header, into any) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if headers != nil {
		request.Header = headers
	}
	request.Header.Set("Content-Type", "application/json")
	// Not sent: it lets the transport repeat a request whose idle connection the
	// service was closing, to save open files.
	request.Header["Idempotency-Key"] = nil
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, response.StatusCode, text)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// signed makes the headers of the agent's next request.
func (a *loadAgent) signed(method, path string, body []byte) (http.Header, error) {
	a.sequence++
	r := protocol.Request{Method: method, Path: path, Device: a.id, Time: time.Now().UnixMilli(), Sequence: a.sequence, Body: body}
	sig, err := a.key.Sign(r.Message())
	return http.Header{protocol.HeaderDevice: {a.id}, protocol.HeaderSignature: {sig},
		protocol.HeaderTime: {strconv.FormatInt(r.Time, 10)}, protocol.HeaderSequence: {strconv.FormatInt(r.Sequence, 10)}}, err
}

func (a *loadAgent) checkIn(f *loadFleet, r protocol.CheckinRequest) (answer protocol.CheckinResponse, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	headers, err := a.signed(http.MethodPost, protocol.Base+"/checkin", body)
	if err != nil {
		return answer, err
	}
	return answer, postTo(f.ours.client, f.ours.url+protocol.Base+"/checkin", body, headers, &answer)
}

// order sends the agent a command over the API.
func (a *loadAgent) order(f *loadFleet) error {
	var result struct{ Status string }
	return postTo(f.ours.client, f.ours.url+"/api/v1/assets/"+a.asset+"/commands/launch-app", []byte(`{"packageName":"com.example.app"}`),
		http.Header{"X-Api-Key": {f.key()}}, &result)
}

// pushed does what an event of the stream says: a hint, or a command.
func (a *loadAgent) pushed(f *loadFleet, data []byte, reached func()) error {
	if string(data) == "w" {
		return a.fetch(f, reached)
	}
	var sealed protocol.Envelope
	if err := json.Unmarshal(data, &sealed); err != nil {
		return err
	}
	reached()
	ack, err := doneNow(sealed)
	if err != nil {
		return err
	}
	return a.fetch(f, reached, ack)
}

// doneNow opens a command without verifying it, and acknowledges it.
func doneNow(sealed protocol.Envelope) (protocol.Ack, error) {
	var c protocol.Command
	text, err := base64.RawURLEncoding.DecodeString(sealed.Payload)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return protocol.Ack{CommandID: c.ID, State: protocol.Done, Outcome: "opened", At: time.Now().UnixMilli()}, err
}

// fetch checks in until there is nothing more to do and everything done is
// acknowledged. reached is called for each command that was read.
func (a *loadAgent) fetch(f *loadFleet, reached func(), acks ...protocol.Ack) error {
	for {
		answer, err := a.checkIn(f, protocol.CheckinRequest{AgentVersion: "1", Acks: acks})
		if err == nil && len(answer.Acked) != len(acks) {
			err = errors.New("not every acknowledgment was taken")
		}
		if err != nil || len(answer.Commands) == 0 {
			return err
		}
		acks = acks[:0]
		for _, sealed := range answer.Commands {
			ack, err := doneNow(sealed)
			if err != nil {
				return err
			}
			reached()
			acks = append(acks, ack)
		}
	}
}

// trip is a command there and its result back: when it is acknowledged, the
// history reads SUCCESS.
func (a *loadAgent) trip(f *loadFleet) error {
	if err := a.order(f); err != nil {
		return err
	}
	return a.fetch(f, func() {})
}

// listen opens the agent's wake stream, which has its commands.
func (a *loadAgent) listen(f *loadFleet) (net.Conn, error) {
	c, err := a.askToListen(f)
	if err != nil {
		return nil, err
	}
	return c, awaitLine(c, "X-Accel-Buffering: no")
}

// askToListen asks for the agent's wake stream.
func (a *loadAgent) askToListen(f *loadFleet) (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	headers, err := a.signed(http.MethodGet, protocol.Base+"/wake", nil)
	if err != nil {
		return nil, err
	}
	c, host, err := f.ours.dial()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s/wake HTTP/1.1\r\nHost: %s\r\n%s: %s\r\n", protocol.Base, host, protocol.HeaderWake, protocol.WakeCommands)
	_ = headers.Write(&b) // to memory
	b.WriteString("\r\n")
	_, err = c.Write(b.Bytes())
	return c, err
}

// awaitLine reads, without taking more, until a line comes.
func awaitLine(c net.Conn, want string) error {
	var received []byte
	one := make([]byte, 1)
	for !bytes.Contains(received, []byte(want)) {
		if _, err := c.Read(one); err != nil {
			return fmt.Errorf("%w after %q", err, received)
		}
		received = append(received, one[0])
	}
	return nil
}

// connected are agents, or the floor's, that wait to be pushed to.
type connected struct {
	process *underLoad
	conns   []net.Conn
	kib     float64 // of the process's memory, each
	got     func(n int, data []byte) error
	waiting []atomic.Pointer[chan time.Time]
	readers sync.WaitGroup
}

func connectAll(b *testing.B, what string, u *underLoad, count int, dial func(n int) (net.Conn, error), got func(n int, data []byte) error,
	floor *connected) *connected {
	b.Helper()
	c := &connected{process: u, conns: make([]net.Conn, count), got: got, waiting: make([]atomic.Pointer[chan time.Time], count)}
	b.Run("P5/"+what, func(b *testing.B) {
		b.Helper()
		if c.conns[0] == nil { // once, however often the benchmark runs
			before := resident(b, u.pid)
			c.dialAll(b, dial)
			poll.Pause(3 * time.Second) // until the process has freed what dialing took
			c.kib = float64(resident(b, u.pid)-before) / 1024 / float64(count)
		}
		b.ReportMetric(c.kib, "KiB/agent")
		if floor != nil && floor.kib > 0 {
			b.ReportMetric(c.kib/floor.kib, "x-floor")
		}
		b.ReportMetric(0, "ns/op")
	})
	for n, conn := range c.conns {
		if conn != nil {
			c.readers.Go(func() { c.listen(n, conn) })
		}
	}
	return c
}

func (c *connected) dialAll(b testing.TB, dial func(n int) (net.Conn, error)) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(c.conns); n = int(next.Add(1)) - 1 {
				conn, err := dial(n)
				if err != nil {
					b.Error(err)
					return
				}
				c.conns[n] = conn
			}
		})
	}
	all.Wait()
}

// resident is a process's memory, in bytes.
func resident(b testing.TB, pid int) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Skip("memory can be measured on Linux alone")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// listen reads hints and commands; to fetch what is hinted at is part of the latency.
func (c *connected) listen(n int, conn net.Conn) {
	lines := bufio.NewReaderSize(conn, 64)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		if c.got == nil {
			c.arrived(n)
		} else if err := c.got(n, data); err != nil {
			return
		}
	}
}

func (c *connected) arrived(n int) {
	if done := c.waiting[n].Swap(nil); done != nil {
		*done <- time.Now()
	}
}

// perSecond is the rate of P4, an open loop.
const perSecond = 200

// rate sends to random agents, each one at a time, and measures until it has
// arrived.
func (c *connected) rate(b *testing.B, what string, floor *cost, send func(n int) error) *cost {
	b.Helper()
	got := &cost{}
	b.Run(what, func(b *testing.B) {
		var mu sync.Mutex
		var took []time.Duration
		var all sync.WaitGroup
		before, tick := c.process.cpu(), time.NewTicker(time.Second/perSecond)
		defer tick.Stop()
		for range b.N {
			<-tick.C
			due := time.Now()
			all.Go(func() {
				d, err := c.one(due, send)
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, d)
			})
		}
		all.Wait()
		if len(took) == 0 {
			return
		}
		slices.Sort(took)
		*got = cost{float64(took[len(took)/2]), float64(c.process.cpu()-before) / float64(b.N), float64(took[len(took)*99/100])}
		b.ReportMetric(got.time/1e6, "p50-ms")
		b.ReportMetric(got.p99/1e6, "p99-ms")
		b.ReportMetric(got.cpu/1e3, "server-cpu-us/op")
		if floor != nil && floor.time > 0 {
			b.ReportMetric(got.time/floor.time, "x-floor-p50")
			b.ReportMetric(got.p99/floor.p99, "x-floor-p99")
		}
	})
	return got
}

func (c *connected) one(due time.Time, send func(n int) error) (time.Duration, error) {
	arrived := make(chan time.Time, 1)
	n := rand.IntN(len(c.conns))
	for !c.waiting[n].CompareAndSwap(nil, &arrived) {
		n = rand.IntN(len(c.conns))
	}
	if err := send(n); err != nil {
		return 0, err
	}
	select {
	case at := <-arrived:
		return at.Sub(due), nil
	case <-time.After(time.Minute):
		return 0, errors.New("it never arrived")
	}
}

func (c *connected) close() {
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	c.readers.Wait()
}

// dialBare connects to the floor as number n.
func dialBare(u *underLoad, n int) (net.Conn, error) {
	response, err := u.client.Get(u.url + "/bare")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	address, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", string(address))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "%d\n", n); err != nil {
		return nil, err
	}
	return c, awaitLine(c, "ok\n")
}

// servePush is the floor of agents: a small POST is decoded and answered, and a
// push wakes the goroutine of a bare connection.
func servePush(ctx context.Context, _ string) error {
	var listening net.ListenConfig
	bare, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	floor := &pushFloor{conns: map[string]chan struct{}{}}
	go floor.accept(bare)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bare", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, bare.Addr().String()) })
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ AgentVersion string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		floor.push(r.FormValue("id"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	})
	fmt.Println("http://" + listener.Addr().String())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = errors.Join(server.Close(), bare.Close())
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type pushFloor struct {
	mu    sync.Mutex
	conns map[string]chan struct{}
}

func (p *pushFloor) accept(on net.Listener) {
	for {
		c, err := on.Accept()
		if err != nil {
			return
		}
		go p.serve(c)
	}
}

func (p *pushFloor) serve(c net.Conn) {
	defer c.Close()
	var id []byte
	one := make([]byte, 1)
	for {
		if _, err := c.Read(one); err != nil {
			return
		}
		if one[0] == '\n' {
			break
		}
		id = append(id, one[0])
	}
	wake := make(chan struct{}, 1)
	p.mu.Lock()
	p.conns[string(id)] = wake
	p.mu.Unlock()
	if _, err := io.WriteString(c, "ok\n"); err != nil {
		return
	}
	for range wake {
		if _, err := io.WriteString(c, "data: w\n\n"); err != nil {
			return
		}
	}
}

func (p *pushFloor) push(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wake, ok := p.conns[id]; ok {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}
