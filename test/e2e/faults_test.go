package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/poll"
	"github.com/musterhq/muster/test/port"
)

var faultsFor = flag.Duration("faults", 10*time.Second,
	"how long TestFaults_CommandsAreSentOnce has its network and processes fail; 10m for the long run")

var faultsSeed = flag.Uint64("faults-seed", 1, "which faults TestFaults_CommandsAreSentOnce has, in which order")

// faultCallers send commands at once, each with keys of its own that take turns.
const faultCallers, faultKeys = 6, 40

// Two replicas reach their database and the platform over connections that are cut,
// stalled and slowed at random, and are killed with SIGKILL. Each command that was
// accepted is in the history and was sent once, and all are decided within two minutes
// after the last fault, with one event for each outcome.
func TestFaults_CommandsAreSentOnce(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	tenant, agents, first := env.NewTenant("acme"), env.NewAgentSite("agents"), env.Start()
	devices, phone := tenant.Devices(first, servertest.FullyManaged(), 4), agents.AgentDevice(first)
	var network atomic.Int64 // that the phone is in
	phone.Kill()
	phone.Options.Network = func() string { return fmt.Sprint(network.Load()) }
	phone.Start()
	phone.Run()
	first.Stop()
	replicas := []*faultyReplica{newFaultyReplica(t, env), newFaultyReplica(t, env)}
	phone.ReachURL(replicas[0].address)

	var done atomic.Bool
	var next atomic.Int64
	var all sync.WaitGroup
	var unknown sync.Map // names of orders
	for caller := range faultCallers {
		keys := make([][2]string, faultKeys)
		for n := range keys {
			keys[n] = [2]string{env.Key(tenant.Company, access.All), env.Key(agents.Company, access.All)}
		}
		all.Go(func() {
			for n := 0; !done.Load(); n++ {
				number := next.Add(1) - 1
				o := keyedOrder{name: fmt.Sprintf("order-%d", number), retries: true}
				key := keys[n%faultKeys][0]
				if n%4 == 3 {
					key, o.path, o.body = keys[n%faultKeys][1], "/assets/"+phone.AssetID+"/commands/message",
						map[string]string{"title": o.name, "body": "x"}
				} else {
					o.path, o.body = "/assets/"+devices[n%len(devices)].AssetID+"/commands/lost-mode", map[string]string{"message": o.name}
				}
				o.client = servertest.Client{TB: t, URL: replicas[(caller+n)%2].address, Key: key}
				if _, known := o.finish(t); !known {
					unknown.Store(o.name, true)
				}
				poll.Pause(300 * time.Millisecond) // a load, not a flood
			}
		})
	}
	t.Logf("to repeat the faults: -faults-seed %d", *faultsSeed)
	random := rand.New(rand.NewPCG(*faultsSeed, 2)) // a test's choice
	faults := 0
	for begun := time.Now(); time.Since(begun) < *faultsFor; faults++ {
		replicas[random.IntN(2)].fail(random)
	}
	done.Store(true)
	all.Wait()
	phone.ReachURL(replicas[1].address)
	network.Add(1) // after many failures an agent pauses for up to eight minutes, unless its network changes
	t.Logf("%d faults", faults)
	checkHistory(t, env, phone, int(next.Load()), &unknown)
}

// checkHistory compares what was ordered, what is recorded, and what the devices were
// sent. An order that the platform could not be asked for is recorded once for each time:
// as failed, or as UNCONFIRMED where the store could not be reached either.
func checkHistory(t *testing.T, env *servertest.Env, phone *servertest.AgentDevice, orders int, unknown *sync.Map) {
	t.Helper()
	db, err := sql.Open("pgx", env.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	begun := time.Now()
	if err := poll.For(2*time.Minute, func() error {
		var open string
		err := db.QueryRowContext(t.Context(),
			`SELECT COALESCE(string_agg(ticket || ' ' || type || ' ' || state || ' ' || to_timestamp(created_at / 1000), ', '), '')
			FROM commands WHERE state IN ('PREPARED', 'SENT') AND type IN ($1, $2)`, command.StartLostMode,
			command.NotificationMessage).Scan(&open)
		if err == nil && open != "" {
			err = errors.New("commands are open: " + open)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	t.Logf("all are decided after %s", time.Since(begun).Round(time.Second))
	env.Eventually("each outcome has one event", func() error {
		var mismatched string
		err := db.QueryRowContext(t.Context(), `SELECT COALESCE(string_agg(ticket || ' ' || state || ' ' || told, ', '), '') FROM (
			SELECT c.ticket, c.state, count(e.id) AS told FROM commands c LEFT JOIN events e ON e.company_id = c.company_id
				AND e.request_id = c.request_id AND e.pos > 0
				AND e.type = CASE c.state WHEN 'SUCCESS' THEN 'command.succeeded' WHEN 'UNCONFIRMED' THEN 'command.unconfirmed' ELSE
					'command.failed' END
			WHERE c.type IN ($1, $2) GROUP BY c.id HAVING count(e.id) <> 1) v`, command.StartLostMode,
			command.NotificationMessage).Scan(&mismatched)
		if err == nil && mismatched != "" {
			err = errors.New("commands have no event, or several: " + mismatched)
		}
		return err
	})
	found := recordedOrders(t, db)
	// A message has succeeded when the service accepted it. Where the answer of a check-in was lost, it is offered again
	// after a minute.
	if err := poll.For(2*time.Minute, func() error {
		sent := sentOrders(t, env, phone)
		for name, r := range found {
			if r.succeeded > 0 && sent[name] == 0 {
				return fmt.Errorf("%s succeeded and was not sent", name)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	sent, doubts := sentOrders(t, env, phone), 0
	for n := range orders {
		name := fmt.Sprintf("order-%d", n)
		_, doubt := unknown.Load(name)
		if doubt {
			doubts++
		}
		if r := found[name]; r.all == 0 && !doubt || r.all-r.failed-r.unknown > 1 || sent[name] > 1 {
			t.Errorf("%s is recorded %d times, %d of them failed and %d UNCONFIRMED, and was sent %d times", name, r.all, r.failed,
				r.unknown, sent[name])
		}
	}
	t.Logf("%d orders, %d with an unknown outcome, %d reached their devices", orders, doubts, len(sent))
}

// recorded counts the commands of an order.
type recorded struct{ all, failed, unknown, succeeded int }

func recordedOrders(t *testing.T, db *sql.DB) map[string]recorded {
	t.Helper()
	rows, err := db.QueryContext(t.Context(),
		`SELECT ticket, count(*), count(*) FILTER (WHERE state = 'ERROR'), count(*) FILTER (WHERE state = 'UNCONFIRMED'), count(*) FILTER (WHERE state = 'SUCCESS')
		FROM commands GROUP BY ticket`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]recorded{}
	for rows.Next() {
		var name string
		var r recorded
		if err := rows.Scan(&name, &r.all, &r.failed, &r.unknown, &r.succeeded); err != nil {
			t.Fatal(err)
		}
		found[name] = r
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// faultyReplica is a process whose connections can fail.
type faultyReplica struct {
	t       *testing.T
	address string
	start   func() *exec.Cmd
	process *exec.Cmd
	network []*toxiproxy.Proxy // to the database and to the platform
}

func newFaultyReplica(t *testing.T, env *servertest.Env) *faultyReplica {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics have a logger of their own
	proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	r, settings := &faultyReplica{t: t}, env.Config()
	through := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		p := toxiproxy.NewProxy(proxies, u.Host, "127.0.0.1:0", u.Host)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		r.network, u.Host = append(r.network, p), p.Listen
		return u.String()
	}
	settings.Database, settings.PlatformEndpoint = through(settings.Database), through(settings.PlatformEndpoint)
	settings.Listen = port.Address(t)
	r.start = func() *exec.Cmd {
		process, address := launch(t, env, settings, "nowhere")
		r.address = address()
		return process
	}
	r.process = r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *faultyReplica) kill() {
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}

// faulty are the faults of a connection, as toxiproxy names them.
func faulty() []string {
	return []string{
		`{"type": "latency", "attributes": {"latency": 300, "jitter": 200}}`,
		`{"type": "latency", "stream": "upstream", "attributes": {"latency": 300, "jitter": 200}}`,
		`{"type": "timeout", "attributes": {"timeout": 0}}`,                          // answers never arrive
		`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`,    // requests never arrive
		`{"type": "limit_data", "attributes": {"bytes": 3000}}`,                      // cut off in the midst of an answer
		`{"type": "limit_data", "stream": "upstream", "attributes": {"bytes": 600}}`, // or of a request
		`{"type": "bandwidth", "attributes": {"rate": 2}}`,                           // kilobytes a second
		`{"type": "slicer", "attributes": {"average_size": 30, "size_variation": 20, "delay": 1000}}`,
	}
}

// fail has one fault come and go.
func (r *faultyReplica) fail(random *rand.Rand) {
	r.t.Helper()
	lasts := time.Duration(200+random.IntN(2500)) * time.Millisecond
	way := r.network[random.IntN(len(r.network))]
	switch kind := random.IntN(len(faulty()) + 2); kind {
	case 0:
		r.kill()
		poll.Pause(lasts / 4)
		r.process = r.start()
	case 1:
		way.Stop()
		poll.Pause(lasts)
		if err := way.Start(); err != nil {
			r.t.Fatal(err)
		}
	default:
		toxic, err := way.Toxics.AddToxicJson(strings.NewReader(faulty()[kind-2]))
		if err != nil {
			r.t.Fatal(err)
		}
		poll.Pause(lasts)
		if err := way.Toxics.RemoveToxic(context.WithoutCancel(r.t.Context()), toxic.Name); err != nil {
			r.t.Fatal(err)
		}
	}
}
