package e2e_test

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/poll"
)

var failovers = flag.Int("failovers", 1, "how often TestFailover_CommandsAreSentOnce has the standby take over; 3 for the long run")

// Behind a pooler in session mode the whole service works: it starts, and a
// command reaches its device and comes back.
func TestService_BehindPoolerInSessionMode(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	env.Database = pgtest.Bouncer(t, env.Database, "pool_mode = session", "default_pool_size = 100", "max_client_conn = 400")
	tenant, replicas := env.NewTenant("acme"), []*servertest.Replica{env.Start(), env.Start()}
	device := tenant.Devices(replicas[0], servertest.FullyManaged(), 1)[0]
	client := tenant.Client(replicas[1], access.All)
	client.Post(servertest.LockPath(device), nil).Want(t, http.StatusOK)
	tenant.Settled(client, device.AssetID, "SUCCESS")
}

// keyedOrder is a command that a client sends under one Idempotency-Key until it has
// an answer that is final.
type keyedOrder struct {
	path, name string
	body       map[string]string
	client     servertest.Client
	retries    bool // also where there is no answer
}

// finish repeats the request until then. It returns how long that took, and
// whether the answer says that the command was sent.
func (o keyedOrder) finish(t *testing.T) (took time.Duration, known bool) {
	begun := time.Now()
	for {
		answer, err := o.client.Try("POST", o.path, o.body, "Idempotency-Key", o.name, "X-Muster-Ticket", o.name)
		switch {
		case o.retries && err != nil:
		case o.retries && answer.Status == http.StatusTooManyRequests:
			poll.Pause(time.Second)
		case err != nil:
			t.Errorf("%s: %v", o.name, err)
			return 0, false
		case answer.Status == http.StatusOK || answer.Status == http.StatusAccepted: // UNCONFIRMED
			return time.Since(begun), answer.Status == http.StatusOK
		case answer.Status == http.StatusUnprocessableEntity && strings.Contains(string(answer.Body), "already failed"):
			return time.Since(begun), false // the device, lost already, reported so, or the attempt before ended before it sent
		case answer.Status != http.StatusServiceUnavailable && answer.Status != http.StatusConflict:
			t.Errorf("%s: %d %s", o.name, answer.Status, answer.Body)
			return 0, false
		}
		poll.Pause(100 * time.Millisecond)
	}
}

// The primary fails over to its synchronous standby under load, by turns after
// it died and while it still runs. Two replicas whose address names both servers
// go on by themselves: each command that was accepted reaches its device once. One
// whose answer is UNCONFIRMED, which some under way are, reaches it once at most.
func TestFailover_CommandsAreSentOnce(t *testing.T) {
	t.Parallel()
	pair := pgtest.NewPair(t)
	env := servertest.New(t)
	env.Database = pair.URL
	tenant, agents := env.NewTenant("acme"), env.NewAgentSite("agents")
	replicas := []*servertest.Replica{env.Start(), env.Start()}
	devices := tenant.Devices(replicas[0], servertest.FullyManaged(), 4)
	phone := agents.AgentDevice(replicas[0])
	phone.Run()

	// Four commands a key, so that repetitions stay within its budget.
	const callers, perKey = 8, 4
	keys := make([][2]string, 15+90*(*failovers-1))
	for n := range keys {
		keys[n] = [2]string{env.Key(tenant.Company, access.All), env.Key(agents.Company, access.All)}
	}
	var next atomic.Int64
	var done atomic.Bool
	var all sync.WaitGroup
	var longest [callers]time.Duration
	var unknown sync.Map // names of orders
	for caller := range callers {
		all.Go(func() {
			for !done.Load() {
				n := int(next.Add(1)) - 1
				if n/perKey >= len(keys) {
					return
				}
				o := keyedOrder{name: fmt.Sprintf("order-%d", n)}
				key := keys[n/perKey][0]
				if n%4 == 3 {
					key, o.path, o.body = keys[n/perKey][1], "/assets/"+phone.AssetID+"/commands/message",
						map[string]string{"title": o.name, "body": "x"}
				} else {
					o.path, o.body = "/assets/"+devices[n%len(devices)].AssetID+"/commands/lost-mode", map[string]string{"message": o.name}
				}
				o.client = replicas[n%2].As(key)
				took, known := o.finish(t)
				if longest[caller] = max(longest[caller], took); !known {
					unknown.Store(o.name, true)
				}
				poll.Pause(200 * time.Millisecond) // a load, not a flood
			}
		})
	}
	for n := range *failovers {
		poll.Pause(500 * time.Millisecond)
		steps := []string{pgtest.Stop, pgtest.Promote}
		if n%2 == 1 {
			steps = []string{pgtest.Promote, pgtest.Fence}
		}
		if n+1 < *failovers {
			steps = append(steps, pgtest.Rebuild)
		}
		for _, step := range steps {
			pair.Do(step)
		}
	}
	poll.Pause(500 * time.Millisecond)
	done.Store(true)
	env.Advance(20 * time.Second) // longer than a request that was cut off keeps its Idempotency-Key
	all.Wait()
	t.Logf("the slowest answers took %v", longest)
	env.Advance(sweeping) // what was interrupted is settled
	checkOrders(t, env, phone, min(int(next.Load()), perKey*len(keys)), &unknown)
}

// checkOrders compares what was ordered, what is recorded, and what the devices
// were sent. An order whose outcome is unknown need not be recorded.
func checkOrders(t *testing.T, env *servertest.Env, phone *servertest.AgentDevice, orders int, unknown *sync.Map) {
	t.Helper()
	db, err := sql.Open("pgx", env.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var recorded, open int
	env.Eventually("every command is settled", func() error {
		err := db.QueryRowContext(t.Context(), `SELECT count(*), count(*) FILTER (WHERE state IN ('PREPARED', 'SENT')) FROM commands
			WHERE type IN ($1, $2)`, command.StartLostMode, command.NotificationMessage).Scan(&recorded, &open)
		if err == nil && open > 0 {
			err = fmt.Errorf("%d of %d commands are open", open, recorded)
		}
		return err
	})
	// A message has succeeded when the service accepted it; the phone shows it later: after a minute, when the takeover
	// cut off the answer that brought it.
	if err := poll.For(poll.Patience+time.Minute, func() error {
		return missing(sentOrders(t, env, phone), orders, unknown)
	}); err != nil {
		t.Errorf("an order with a known outcome did not reach its device: %v", err)
	}
	sent := sentOrders(t, env, phone)
	doubts := 0
	for n := range orders {
		name := fmt.Sprintf("order-%d", n)
		_, doubt := unknown.Load(name)
		if doubt {
			doubts++
		}
		if sent[name] > 1 {
			t.Errorf("%s was sent %d times, want once", name, sent[name])
		}
	}
	if recorded > orders || recorded+doubts < orders {
		t.Errorf("%d commands are recorded of %d, of which %d have an unknown outcome", recorded, orders, doubts)
	}
	t.Logf("%d commands, %d recorded, %d with an unknown outcome, %d reached their devices", orders, recorded, doubts, len(sent))
}

// missing returns an error while an order whose outcome is known was not sent.
func missing(sent map[string]int, orders int, unknown *sync.Map) error {
	for n := range orders {
		name := fmt.Sprintf("order-%d", n)
		if _, doubt := unknown.Load(name); !doubt && sent[name] == 0 {
			return fmt.Errorf("%s was not sent", name)
		}
	}
	return nil
}

// sentOrders counts how often each order reached its device.
func sentOrders(t *testing.T, env *servertest.Env, phone *servertest.AgentDevice) map[string]int {
	t.Helper()
	sent := map[string]int{}
	for _, call := range env.Emulator.Calls(0, "devices.issueCommand") {
		var body struct {
			StartLostModeParams struct {
				LostMessage struct{ DefaultMessage string }
			}
		}
		if err := json.Unmarshal(call.Body, &body); err != nil {
			t.Fatal(err)
		}
		sent[body.StartLostModeParams.LostMessage.DefaultMessage]++
	}
	for _, shown := range phone.Device.State().Shown {
		sent[shown.Title]++
	}
	return sent
}
