package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database/benchtest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
)

// The goals P2 and P6 to P9 of docs/performance.md through the whole service: a
// real process with a real listener, and beside it, as another process on the
// same database, the floor: net/http, encoding/json and the bare driver. A run
// worth quoting is
//
//	go test ./test/e2e -run '^$' -bench Load -assets 1000000 -benchtime 3s -timeout 60m
var loadAssets = flag.Int("assets", 20_000, "assets in the benchmarks' database")

// loadAs makes this test program the service or the floor of a load test.
const loadAs = "MUSTER_TEST_LOAD_AS"

// serveLoad is the program under load.
func serveLoad(as string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run := serveFloor
	switch as {
	case "service":
		run = serveService
	case "push":
		run = servePush
	}
	if err := run(ctx, os.Getenv("MUSTER_DATABASE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveService(ctx context.Context, database string) error {
	s, err := service.New(ctx, config.Service{
		Store: config.Store{Database: database}, KeyFile: os.Getenv("MUSTER_KEY_FILE"), Listen: "127.0.0.1:0", ReadsPerMinute: 1 << 40,
		TLSCert: os.Getenv("MUSTER_TLS_CERT"), TLSKey: os.Getenv("MUSTER_TLS_KEY"),
		MetricsListen: os.Getenv("MUSTER_METRICS_LISTEN"), Pprof: os.Getenv("MUSTER_METRICS_LISTEN") != "",
	}, service.Options{Now: time.Now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	fmt.Println(s.PublicURL())
	if file := os.Getenv("MUSTER_TEST_CPU_PROFILE"); file != "" {
		out, err := os.Create(fmt.Sprint(file, ".", os.Getpid())) // there may be several
		if err != nil {
			return err
		}
		defer func() { _ = out.Close() }()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return s.Run(ctx)
}

// serveFloor answers with the least that each task takes.
func serveFloor(ctx context.Context, database string) error {
	floor, err := benchtest.Open(database)
	if err != nil {
		return err
	}
	if err := floor.Prepare(ctx); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: floorMux(floor), ReadHeaderTimeout: time.Minute}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return floor.Close()
}

func floorMux(floor *benchtest.Floor) *http.ServeMux {
	one := exampleView()
	page := slices.Repeat([]asset.View{one}, 20)
	answer := func(w http.ResponseWriter, err error, v any) {
		text, failed := json.Marshal(v)
		if err = errors.Join(err, failed); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("page"))
		rows, err := floor.Page(r.Context(), r.FormValue("company"), n)
		if err == nil && len(rows) != 20 {
			err = errors.New("no page")
		}
		answer(w, err, page)
	})
	mux.HandleFunc("GET /get", func(w http.ResponseWriter, r *http.Request) {
		_, err := floor.Get(r.Context(), r.FormValue("id"))
		answer(w, err, one)
	})
	mux.HandleFunc("GET /small", func(w http.ResponseWriter, r *http.Request) {
		_, err := floor.Get(r.Context(), r.FormValue("id"))
		answer(w, err, map[string]int{"count": 1})
	})
	mux.HandleFunc("POST /insert", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ A string }
		err := json.NewDecoder(r.Body).Decode(&body)
		answer(w, errors.Join(err, floor.Insert(r.Context())), body)
	})
	return mux
}

func exampleView() asset.View {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	return asset.Asset{
		ID: "asset0000000000010010212581", CompanySlug: "acme", Identification: "Phone 12", Status: asset.Active, SyncedAt: at,
		Tags:       []string{"shop", "rack 12"},
		CustomData: map[string]string{"department": "Sales 4", "location": "Oslo", "costCenter": "4711"},
		Specifications: map[string]string{
			"serialNumber": "S12345678", "model": "Phone 1", "manufacturer": "Acme", "brand": "Acme", "osVersion": "14",
			"securityPatchLevel": "2026-10-05",
		},
		Device: &asset.Device{
			Management: asset.Platform, Ownership: asset.CompanyOwned, PolicyID: "policy000000000000000000001",
			PolicyName: "Policy 1", PolicyApplied: 1,
			EnrolledAt: at, LastSeenAt: at, StatusReport: json.RawMessage(`{"reportedAt":"2026-11-20T09:00:00Z","batteryLevel":12}`),
		},
	}.Public()
}

// underLoad is one process that answers.
type underLoad struct {
	url    string
	pid    int
	client *http.Client
	stop   func() error // with SIGTERM
}

// startUnderLoad starts a process, with words before its command.
func startUnderLoad(b testing.TB, as, database string, before ...string) *underLoad {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	words := append(slices.Clone(before), self)
	process := exec.CommandContext(context.WithoutCancel(b.Context()), words[0], words[1:]...)
	keys := filepath.Join(b.TempDir(), "keys")
	made := config.Service{Store: config.Store{Database: database}}.WithDefaults().KeyFile // by who made the database
	made = cmp.Or(os.Getenv("MUSTER_KEY_FILE"), made)
	_, missing := os.Stat(made)
	if missing == nil {
		keys = made
	}
	process.Env = append(os.Environ(), loadAs+"="+as, "MUSTER_DATABASE="+database, "MUSTER_KEY_FILE="+keys)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err == nil && as == "service" && missing != nil {
		err = ops.MakeKeyFile(keys, time.Now())
	}
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	stop := sync.OnceValue(func() error {
		_ = process.Process.Signal(syscall.SIGTERM)
		return process.Wait()
	})
	b.Cleanup(func() { _ = stop() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the %s did not start: %v", as, err)
	}
	return &underLoad{strings.TrimSpace(line), process.Process.Pid, loader(), stop}
}

// loader is a client for many callers. The certificate of a service on loopback, where
// MUSTER_TLS_CERT gives it one, vouches for nothing.
func loader() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, TLSClientConfig: anyCertificate()}}
}

func anyCertificate() *tls.Config { return &tls.Config{InsecureSkipVerify: true} } // on loopback

// dial connects to the process, over TLS where it has a certificate.
func (u *underLoad) dial() (c net.Conn, host string, err error) {
	if host, found := strings.CutPrefix(u.url, "https://"); found {
		c, err = tls.Dial("tcp", host, anyCertificate())
		return c, host, err
	}
	host = strings.TrimPrefix(u.url, "http://")
	c, err = net.Dial("tcp", host)
	return c, host, err
}

// cpu is the time that the process has computed so far.
func (u *underLoad) cpu() time.Duration {
	const ofProcess = 2 // CPUCLOCK_SCHED; see clock_getcpuclockid(3)
	var ts syscall.Timespec
	// there is no other door
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^u.pid<<3|ofProcess), uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

// request is what one call sends, by its number.
type request func(n int) (method, path, key, body string)

func (u *underLoad) do(r request, n int) error {
	method, path, key, body := r(n)
	request, err := http.NewRequestWithContext(context.Background(), method, u.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body == "" {
		request.Body = http.NoBody
	} else {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("X-Api-Key", key)
	}
	response, err := u.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !bytes.HasPrefix(text, []byte("{")) && !bytes.HasPrefix(text, []byte("["))) {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, response.StatusCode, text)
	}
	return err
}

// cost is what a call cost.
type cost struct{ time, cpu, p99 float64 }

// load measures a request made by some callers at once.
func (u *underLoad) load(b *testing.B, what string, callers int, floor *cost, r request) *cost {
	b.Helper()
	return u.measure(b, what, callers, floor, func(n int) error { return u.do(r, n) })
}

// measure measures what some callers do at once; each doing has a number.
func (u *underLoad) measure(b *testing.B, what string, callers int, floor *cost, do func(n int) error) *cost {
	b.Helper()
	got := &cost{}
	var next atomic.Int64
	b.Run(what, func(b *testing.B) {
		for range 20 { // connections, statements, plans
			if err := do(int(next.Add(1))); err != nil {
				b.Fatal(err)
			}
		}
		var mu sync.Mutex
		var took []time.Duration
		before := u.cpu()
		b.SetParallelism(max(1, callers/2))
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			var own []time.Duration
			for pb.Next() {
				start := time.Now()
				if err := do(int(next.Add(1))); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
		b.StopTimer()
		slices.Sort(took)
		if len(took) == 0 {
			return
		}
		*got = cost{float64(b.Elapsed()) / float64(b.N), float64(u.cpu()-before) / float64(b.N), float64(took[len(took)*99/100])}
		b.ReportMetric(1e9/got.time, "req/s")
		b.ReportMetric(got.cpu/1e3, "server-cpu-us/op")
		b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-us")
		b.ReportMetric(got.p99/1e3, "p99-us")
		if floor != nil && floor.time > 0 {
			b.ReportMetric(got.cpu/floor.cpu, "x-floor-cpu")
			b.ReportMetric(got.time/floor.time, "x-floor-time")
			b.ReportMetric(got.p99/floor.p99, "x-floor-p99")
		}
	})
	return got
}

func BenchmarkLoad(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { loadEngine(b, "sqlite:"+filepath.Join(b.TempDir(), "load.db")) })
	b.Run("postgres", func(b *testing.B) { loadEngine(b, pgtest.DSN(b)) })
}

func loadEngine(b *testing.B, database string) {
	fleet := benchtest.Load(b, database, *loadAssets, time.Now().Add(-time.Hour), false)
	floor := startUnderLoad(b, "floor", database)
	keys := prepareLoad(b, fleet, database)
	ours := startUnderLoad(b, "service", database)
	firstPages := min(50, int(fleet.Active/40))
	get := func(format string, args func(n int) any) request {
		return func(n int) (string, string, string, string) {
			return "GET", fmt.Sprintf(format, args(n)), keys[n%len(keys)], ""
		}
	}
	pages := func(n int) any { return n % firstPages }
	some := func(n int) any { return fleet.Some[n%len(fleet.Some)] }
	deep := func(int) any { return fleet.Deep() }
	const list = "/api/v1/assets?status=ACTIVE&sort=syncedAt,desc&page=%d"
	company := "/page?company=" + fleet.Company.ID + "&page=%d"

	for _, callers := range []int{2, 32} {
		at := fmt.Sprintf(", %d callers", callers)
		page := floor.load(b, "P6/floor"+at, callers, nil, get(company, pages))
		ours.load(b, "P6/page"+at, callers, page, get(list, pages))
		small := floor.load(b, "P7/floor"+at, callers, nil, get("/small?id=%s", some))
		ours.load(b, "P7/count by status"+at, callers, small, get("/api/v1/assets/count?status=%s", func(int) any { return "ACTIVE" }))
		ours.load(b, "P7/count by both"+at, callers, small,
			get("/api/v1/assets/count?status=ACTIVE&policy=%s", func(int) any { return fleet.Policies[3] }))
		one := floor.load(b, "P9/floor"+at, callers, nil, get("/get?id=%s", some))
		ours.load(b, "P9/get"+at, callers, one, get("/api/v1/assets/%s", some))
	}
	far := floor.load(b, "P8/floor", 2, nil, get(company, deep))
	ours.load(b, "P8/deep page", 2, far, get(list, deep))
	loadBeside(b, ours, get(list, deep), get("/api/v1/assets/%s", some))
	commands := spending(fleet, keys)
	for _, callers := range []int{2, 32} {
		at := fmt.Sprintf(", %d callers", callers)
		insert := floor.load(b, "P2/floor"+at, callers, nil, func(int) (string, string, string, string) {
			return "POST", "/insert", "", `{"a":"x"}`
		})
		ours.load(b, "P2/command"+at, callers, insert, commands)
	}
}

// prepareLoad makes keys and agents. Every key's budget is ten a minute, and
// never switched off.
func prepareLoad(b *testing.B, fleet *benchtest.Fleet, database string) []string {
	b.Helper()
	bare, err := benchtest.Open(database)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = bare.Close() }()
	fleet.WithAgents(b, bare)
	return fleet.Keys(b, 4000, time.Now())
}

// spending sends commands with the keys in turn, ten each.
func spending(fleet *benchtest.Fleet, keys []string) request {
	var spent atomic.Int64
	return func(n int) (string, string, string, string) {
		key := keys[int(spent.Add(1)-1)/10%len(keys)]
		return "POST", "/api/v1/assets/" + fleet.Some[n%len(fleet.Some)] + "/commands/status-report", key, ""
	}
}

// loadBeside measures the latency of others while one caller reads deep pages: the
// floor of the second figure is the first.
func loadBeside(b *testing.B, u *underLoad, deep, others request) {
	b.Helper()
	alone := u.load(b, "P8/others alone", 2, nil, others)
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for n := 0; err == nil; n++ {
			select {
			case <-stop:
				done <- err
				return
			default:
				err = u.do(deep, n)
			}
		}
		<-stop
		done <- err
	}()
	u.load(b, "P8/others beside", 2, alone, others)
	close(stop)
	if err := <-done; err != nil {
		b.Error(err)
	}
}
