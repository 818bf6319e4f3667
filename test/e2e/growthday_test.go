package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/servertest"
)

// day is a step of the company's life: its devices check in, get a command and carry it
// out. Once in a week of steps, other things happen.
func (s *growthSite) day(n int) {
	s.Helper()
	week := max(1, 7 / *growthStep)
	s.refuses.Store(n%5 == 4)
	s.pass(time.Duration(*growthStep)*24*time.Hour - 2*time.Hour)
	for i, p := range s.phones {
		if i > 0 || n%6 > 1 { // the first one becomes inactive, and is seen again
			s.commands(n, i, p)
		}
	}
	s.pass(time.Hour)
	if n%week == 0 {
		s.week(n / week)
	}
	s.pass(time.Hour)
	s.drained()
}

// commands has a phone get a command of a day, and carry it out.
func (s *growthSite) commands(n, i int, p *servertest.AgentDevice) {
	s.Helper()
	kinds := []string{"message", "status-report", "sync-policy", "upload-log", "reboot", "location-update"}
	kind := kinds[(n+i)%len(kinds)]
	var body any
	if kind == "message" {
		body = map[string]string{"title": fmt.Sprint("Day ", n), "body": "x"}
	}
	s.key(i).Post("/assets/"+p.AssetID+"/commands/"+kind, body, "Idempotency-Key", fmt.Sprint(n, "-", i)).Want(s.T, http.StatusOK)
	p.MustCheckIn()
	p.MustCheckIn()
}

// drained waits until the service has sent what was to be sent.
func (s *growthSite) drained() {
	s.Helper()
	if s.refuses.Load() {
		return
	}
	s.Eventually("all events are sent", func() error {
		for _, query := range []string{
			`SELECT COUNT(*) FROM commands WHERE state IN ('PREPARED', 'SENT')`,
			`SELECT COUNT(*) FROM events WHERE pos = 0`,
			`SELECT COUNT(*) FROM jobs WHERE ended_at = 0`,
			`SELECT COUNT(*) FROM webhooks w JOIN event_heads h ON h.company_id = w.company_id WHERE w.pos < h.last`,
			`SELECT COUNT(*) FROM webhook_held`,
		} {
			if left := s.number(query); left > 0 {
				s.Advance(time.Minute) // a webhook that failed for days is tried once an hour
				return fmt.Errorf("%d of %s", left, query)
			}
		}
		return nil
	})
}

// week is what happens once a week.
func (s *growthSite) week(n int) {
	s.Helper()
	s.people(n)
	s.policies(n)
	for _, d := range s.platform {
		way := []string{"lost-mode", "found"}[n%2]
		body := map[string]any{"lost-mode": map[string]string{"message": "call us"}}[way]
		s.key(0).Post("/assets/"+d.AssetID+"/commands/"+way, body).Want(s.T, http.StatusOK)
		s.Settled(s.key(0), d.AssetID, "SUCCESS")
	}
	tag := []string{"add=odd", "remove=odd"}[n%2]
	s.CLI(new(any), "job", "create", "--company", "acme", "--filter", "all=true", "--command", "tags", "--argument", tag, "--rate", "600")
	s.CLI(new(any), "job", "create", "--company", "acme", "--filter", "receivesMessages=true", "--command", "message", "--argument",
		"title=Weekly", "--argument", "body=x", "--rate", "600")
	s.Eventually("the jobs end", func() error { // in real time: a job does not make up for what it missed
		if left := s.number(`SELECT COUNT(*) FROM jobs WHERE ended_at = 0`); left > 0 {
			return fmt.Errorf("%d go on", left)
		}
		return nil
	})
	for _, p := range s.phones[1:] {
		p.MustCheckIn()
		p.MustCheckIn()
	}
	s.replaced(n)
}

// people sign in, with a wrong password first, connect a client, make and end keys, and
// invite a user who is deleted.
func (s *growthSite) people(n int) {
	s.Helper()
	base := s.replica.PublicURL()
	s.admin.Send(base+"/signin", url.Values{"email": {s.admin.User.Email}, "password": {"wrong"}})
	s.admin.Connect(base, "mcp:devices:read")
	s.admin.Send(base+"/devices", nil).Want(s.T, http.StatusOK)
	var made struct{ ID string }
	s.CLI(&made, "key", "create", "--company", "acme", "--name", fmt.Sprint("week ", n), "--preset", "read-only", "--expires-in", "14d")
	s.CLI(&made, "key", "create", "--company", "acme", "--name", fmt.Sprint("revoked ", n), "--preset", "read-only")
	s.CLI(new(any), "key", "revoke", "--company", "acme", made.ID)
	email := fmt.Sprintf("new%d@acme.test", n)
	invited := s.replica.PortalClient(s.T, s.admin.User).Post("/users", "email", email, "name", "Nina", "role", "viewer", "scope", "all")
	invited.Want(s.T, http.StatusOK)
	s.pass(time.Minute)
	s.CLI(new(any), "user", "delete", "--company", "acme", email)
}

// policies change: the platform's by a proposal, the phones' by command line.
func (s *growthSite) policies(n int) {
	s.Helper()
	value := []string{"BLOCK", "ALLOW"}[n%2]
	client := s.key(1)
	made := client.Post("/policies/"+s.Policy.ID+"/changes",
		map[string]any{"changes": []any{map[string]any{"setting": "CAMERA", "value": value}}}).Want(s.T, http.StatusCreated).Members(s.T)
	client.Post("/policy-proposals/"+made["proposalId"].(string)+"/apply", map[string]any{"confirmation": s.Policy.Name}).Want(s.T,
		http.StatusOK)
	s.CLI(new(any), "policy", "set", "--company", "acme", s.agents.Policy.Name, "--set", "CAMERA="+value)
	client.Post("/policies/"+s.Policy.ID+"/provisioning-qr-codes", map[string]any{"personalUsage": "DISALLOWED"}).Want(s.T,
		http.StatusCreated)
}

// replaced has one phone be erased, and its asset archived and deleted; another phone takes
// its place.
func (s *growthSite) replaced(n int) {
	s.Helper()
	last := len(s.phones) - 1
	p := s.phones[last]
	client := s.key(last)
	client.Post("/assets/"+p.AssetID+"/commands/wipe", nil).Want(s.T, http.StatusOK)
	for range 10 { // the last answer confirms that the service knows
		if err := p.CheckIn(); errors.Is(err, agent.ErrEnded) {
			break
		}
	}
	for range 25 { // 20 minutes in which the service listens: it then takes the phone to be erased
		s.pass(48 * time.Second)
	}
	s.Eventually("the phone is erased", func() error {
		if h := client.History(p.AssetID); h[0].Status != "SUCCESS" {
			return errors.New(h[0].Status)
		}
		return nil
	})
	s.CLI(new(any), "asset", "archive", "--company", "acme", p.AssetID)
	s.CLI(new(any), "asset", "delete", "--company", "acme", p.AssetID, "--export", filepath.Join(s.TempDir(), "deleted.ndjson"))
	s.phones[last] = s.agents.AgentDevice(s.replica)
}
