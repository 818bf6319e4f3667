package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/poll"
)

// silentWithin is more than the limits of a request whose database says nothing, and less than
// the time in which the service may write an answer.
const silentWithin = 65 * time.Second

// A database whose connections stay open and say nothing is answered for as one that is away:
// readiness at once, a read and a command in bounded time. A command of which it is not known
// whether it was recorded is neither sent nor recorded again by its repetition.
func TestRequests_DatabaseSaysNothing(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	way, address := silenceable(t, env.Database)
	tenant := env.NewTenant("acme")
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.Database = address })
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	client := tenant.Client(replica, access.All)
	raw, err := sql.Open("pgx", env.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })

	// The command waits until its answer can no longer arrive; then it is committed.
	held, err := raw.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err == nil {
		_, err = held.ExecContext(t.Context(), `LOCK TABLE commands IN EXCLUSIVE MODE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	commanded := make(chan servertest.Answer, 1)
	go func() {
		answer, err := client.Try("POST", servertest.LockPath(device), nil, "Idempotency-Key", "silent")
		if err != nil {
			t.Error(err)
		}
		commanded <- answer
	}()
	poll.Until(t, "the command does not wait", func() error {
		var waiting bool
		err := raw.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
			WHERE c.relname = 'commands' AND NOT l.granted)`).Scan(&waiting)
		if err == nil && !waiting {
			err = errors.New("no one waits for the table")
		}
		return err
	})
	toxic, err := way.Toxics.AddToxicJson(strings.NewReader(`{"type": "timeout", "attributes": {"timeout": 0}}`))
	if err == nil {
		err = held.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	status, _ := servertest.Fetch(t, client.URL+"/readyz")
	if status != http.StatusServiceUnavailable || time.Since(began) > 4*time.Second {
		t.Errorf("/readyz: %d after %s, want 503 in seconds", status, time.Since(began))
	}
	began = time.Now()
	client.Get("/assets/"+device.AssetID).Want(t, http.StatusServiceUnavailable)
	if took := time.Since(began); took > silentWithin {
		t.Errorf("a read took %s", took)
	}
	if answer := <-commanded; answer.Status != http.StatusServiceUnavailable || time.Since(began) > silentWithin {
		t.Errorf("the command: %d, %s after the read, want 503: %s", answer.Status, time.Since(began), answer.Body)
	}
	if err := way.Toxics.RemoveToxic(t.Context(), toxic.Name); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the command is not found again", func() error {
		answer, err := client.Try("POST", servertest.LockPath(device), nil, "Idempotency-Key", "silent")
		if err == nil && answer.Status >= http.StatusConflict {
			err = errors.New(string(answer.Body))
		}
		return err
	})
	var commands int
	if err := raw.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM commands`).Scan(&commands); err != nil || commands != 1 {
		t.Errorf("%d commands were recorded (%v), want 1", commands, err)
	}
}

// silenceable returns a way to a database on which what is said may stop, and the address that
// leads over it.
func silenceable(t *testing.T, database string) (*toxiproxy.Proxy, string) {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics have a logger of their own
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	way := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), u.Host, "127.0.0.1:0", u.Host)
	if err := way.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Stop)
	u.Host = way.Listen
	return way, u.String()
}
