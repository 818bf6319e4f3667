package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/expect"
)

// feed is an answer of GET /events.
type feed struct {
	Events []struct {
		ID, Type, At string
		Data         map[string]string
	}
	Next string
}

func (f feed) types() string {
	types := ""
	for _, e := range f.Events {
		types += e.Type + " "
	}
	return types
}

// waits asks in the background, and returns how to get the answer.
func waits(c servertest.Client, query string) func(t *testing.T, statuses ...int) feed {
	type result struct {
		servertest.Answer
		err error
	}
	done := make(chan result, 1)
	go func() {
		a, err := c.Try(http.MethodGet, "/events?"+query, nil)
		done <- result{a, err}
	}()
	return func(t *testing.T, statuses ...int) (f feed) {
		t.Helper()
		got := <-done
		if got.err != nil {
			t.Fatal(got.err)
		}
		if !slices.Contains(statuses, got.Status) {
			got.Want(t, statuses[0])
		}
		if got.Status == http.StatusOK {
			got.JSON(t, &f)
		}
		return f
	}
}

// A call that waits is answered when its event happens, on whatever replica that is, with
// the request that caused it.
func TestEvents_WaitAndCause(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme"), env.Start()
		other := replica
		if _, embedded := env.Config().SQLitePath(); !embedded {
			other = env.Start()
		}
		phone := tenant.AgentDevice(replica)
		reader, writer := tenant.Client(other, access.DevicesRead), tenant.Client(replica, access.DevicesRead|access.DevicesCommand)
		var first, latest feed
		env.Eventually("the enrollment is an event", func() error {
			reader.Get("/events").Want(t, 200).JSON(t, &first)
			if !strings.Contains(first.types(), "device.enrolled ") {
				return fmt.Errorf("the events are %s", first.types())
			}
			return nil
		})
		reader.Get("/events?after=latest").Want(t, 200).JSON(t, &latest)
		answer := waits(reader, "wait=60&after="+latest.Next)
		writer.Post("/assets/"+phone.AssetID+"/commands/status-report", nil, "X-Request-Id", "cause-1").Want(t, 200)
		phone.MustCheckIn()
		tenant.Settled(writer, phone.AssetID, "SUCCESS")
		got := answer(t, 200)
		if len(got.Events) != 1 || got.Events[0].Type != "command.succeeded" {
			t.Fatalf("the call that waited got %+v", got)
		}
		data := got.Events[0].Data
		expect.Equal(t, "the event's data", expect.Values{"type": {data["type"], "STATUS_REPORT"}, "status": {data["status"], "SUCCESS"},
			"requestId": {data["requestId"], "cause-1"}, "end of assetId": {strings.HasSuffix(data["assetId"], phone.AssetID), true},
			"empty policyId": {data["policyId"] == "", false}, "number of members": {len(data), 5}})

		var tool feed
		assistant := servertest.WithKey(t, replica.PublicURL(), reader.Key)
		assistant.Call("list_events", map[string]any{"after": latest.Next}).OK(t, &tool)
		if tool.types() != "command.succeeded " || tool.Next != got.Next {
			t.Errorf("over MCP: %+v", tool)
		}
	})
}

// Waits end with 401 when the key is revoked, and are answered when the service stops.
func TestEvents_WaitsEnd(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		acme, replica := env.Company("acme", servertest.Everything()), env.Start()
		row, key := env.KeyRow(acme, access.DevicesRead)
		revoked := waits(replica.As(key), "wait=60&after=latest")
		stays := waits(replica.As(env.Key(acme, access.DevicesRead)), "wait=60&after=latest")
		var printed map[string]any
		env.CLI(&printed, "key", "revoke", "--company", "acme", row.ID)
		revoked(t, http.StatusUnauthorized)
		replica.Stop()
		if got := stays(t, 200); len(got.Events) != 0 || got.Next == "" {
			t.Errorf("when the service stops, the answer is %+v", got)
		}
	})
}

// Arguments beyond the limits are 400, foreign cursors 410 with where to go on.
func TestEvents_Refusals(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	acme, beta, replica := env.Company("acme", servertest.Everything()), env.Company("beta", servertest.Everything()), env.Start()
	reader, stranger := replica.As(env.Key(acme, access.DevicesRead)), replica.As(env.Key(beta, access.All))
	for _, query := range []string{"wait=61", "wait=-1", "limit=0", "limit=1001", "before=x"} {
		reader.Get("/events?"+query).Want(t, http.StatusBadRequest)
	}
	var latest feed
	reader.Get("/events?after=latest").Want(t, 200).JSON(t, &latest)
	for _, cursor := range []string{latest.Next, "nonsense", strings.Repeat("A", 100)} {
		problem := stranger.Get("/events?after="+cursor).Want(t, http.StatusGone).Members(t)
		oldest, _ := problem["oldest"].(string)
		if problem["code"] != "cursor_expired" || oldest == "" {
			t.Errorf("the problem is %v", problem)
		}
		stranger.Get("/events?after="+oldest).Want(t, 200)
	}
}
