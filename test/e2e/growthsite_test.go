package e2e_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// growthSite is a company with devices of both kinds, a person, a receiver of events and a
// mail server, whose service works when the test says so.
type growthSite struct {
	*testing.T
	*servertest.Tenant
	replica  *servertest.Replica
	agents   *servertest.Tenant // the same company, with the policy of the phones
	phones   []*servertest.AgentDevice
	platform []servertest.Device
	admin    *servertest.Browser
	keys     []string
	rounds   *servertest.Rounds
	db       *database.DB
	mails    *mailbox
	taken    atomic.Int64 // events by the receiver
	refuses  atomic.Bool  // the receiver does
}

func newGrowthSite(t *testing.T, env *servertest.Env) *growthSite {
	t.Helper()
	s := &growthSite{T: t, Tenant: env.NewTenant("acme"), rounds: &servertest.Rounds{}, db: env.DB(), mails: newMailbox(t)}
	const loopback = "127.0.0.0/8"
	s.replica = env.Start(func(c *config.Service, o *service.Options) {
		o.Ticker, o.Logger = s.rounds.Ticker, slog.New(slog.NewTextHandler(env.Log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		c.WebhookNetworks.WebhookNetworks = []string{loopback}
		c.SMTPURL, c.MailFrom = "smtp://"+s.mails.address, "Muster <muster@acme.test>"
	})
	s.CLI(new(any), "company", "set", "acme", "--keep-activity", "30d", "--keep-commands", "30d", "--keep-places", "30d", "--keep-events",
		"30d", "--inactive-after", "3d")
	s.agents = &servertest.Tenant{Env: env, Company: s.Company, Policy: env.AgentPolicy(s.Company, "Kiosk", "LOCATION_MODE=ENFORCED")}
	for range *growthDevices {
		s.phones = append(s.phones, s.agents.AgentDevice(s.replica))
	}
	s.platform = s.Devices(s.replica, servertest.FullyManaged(), 2)
	s.admin = env.Browser(s.Company, account.Admin)
	s.admin.CheapPassword()
	for range (*growthDevices + 8) / 8 {
		s.keys = append(s.keys, env.Key(s.Company, access.All))
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.refuses.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.taken.Add(1)
	}))
	t.Cleanup(receiver.Close)
	s.CLI(new(any), "webhook", "create", "--company", "acme", "--url", receiver.URL, "--webhook-networks", loopback)
	return s
}

func (s *growthSite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// key is a client with budget left for a device of this number.
func (s *growthSite) key(n int) servertest.Client { return s.replica.As(s.keys[n%len(s.keys)]) }

// pass lets time pass, and has the service do what is due before and then.
func (s *growthSite) pass(d time.Duration) {
	s.Helper()
	s.rounds.All(s.T)
	s.Advance(d)
	for range int(d / time.Hour) {
		_, err := s.db.AgedBy(s.Context())
		s.ok(err)
	}
	s.rounds.All(s.T)
}

// mailbox is a server that takes all mail.
type mailbox struct {
	address string
	mu      sync.Mutex
	taken   int
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	m := &mailbox{address: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			m.talk(conn)
		}
	}()
	return m
}

// talk takes the mail of one conversation.
func (m *mailbox) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in, text := bufio.NewScanner(conn), false
	say := func(line string) { _, _ = fmt.Fprintf(conn, "%s\r\n", line) }
	say("220 mail.test")
	for in.Scan() {
		switch word, _, _ := strings.Cut(in.Text(), " "); {
		case text:
			if text = in.Text() != "."; !text {
				m.mu.Lock()
				m.taken++
				m.mu.Unlock()
				say("250 taken")
			}
		case word == "DATA":
			text = true
			say("354 go on")
		case word == "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}
