// Package proving is a service to measure: a whole service with a database of its
// own in a directory, a company, policies for agents, API keys and enrollment
// tokens, for muster simulate without a service.
package proving

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
)

// Settings say how large the service is.
type Settings struct {
	Dir    string // for the database
	Listen string // empty: any address on this machine
	Agents int    // one token each; 0: its database is there already, and goes on
	Keys   int    // API keys, each with its own budget
	Now    func() time.Time
	Log    *slog.Logger
	// Crash is service.Options.Crash.
	Crash func(step string)
}

// Access is the address of a service, and the tokens, API keys and policies that it has made.
type Access struct {
	URL      string   `json:"url"`
	Tokens   []string `json:"tokens"` // texts of QR codes
	Keys     []string `json:"keys"`
	Policies []string `json:"policies"` // path names, of AGENT type; tokens are of the first
}

// Service is a running service.
type Service struct {
	Access
	settings Settings
	config   config.Service

	mu      sync.Mutex
	running *service.Service
	stop    context.CancelFunc
	ended   chan error
}

// Open starts a service and fills it. Close ends it.
func Open(ctx context.Context, s Settings) (*Service, error) {
	if s.Listen == "" {
		s.Listen = "127.0.0.1:0"
	}
	g := &Service{settings: s, config: config.Service{
		Store:  config.Store{Database: "sqlite:" + filepath.Join(s.Dir, "muster.db")},
		Listen: s.Listen, ReadsPerMinute: 1_000_000,
	}}
	if err := g.start(ctx); err != nil {
		return nil, err
	}
	if s.Agents == 0 {
		return g, nil
	}
	if err := script.Attempt(func() { g.fill(ctx) }); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Service) start(ctx context.Context) error {
	s, err := service.New(ctx, g.config, service.Options{Now: g.settings.Now, Logger: g.settings.Log, Crash: g.settings.Crash})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.running, g.stop, g.ended = s, stop, make(chan error, 1)
	g.URL, g.config.Listen = s.PublicURL(), s.Addr().String() // the same address after a restart
	go func(ended chan<- error) { ended <- s.Run(running) }(g.ended)
	return nil
}

// Restart ends the service and starts another on the same database and address.
func (g *Service) Restart(ctx context.Context) error {
	if err := g.Close(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.start(ctx)
}

// Close ends the service.
func (g *Service) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop == nil {
		return nil
	}
	g.stop()
	g.stop = nil
	return <-g.ended
}

// fill makes the company with everything in it.
func (g *Service) fill(ctx context.Context) {
	desk := script.Must(service.OpenAdmin(g.settings.Now, "")(ctx, g.config.Store, cli.Creates))
	defer desk.Close()
	owner := script.Must(company.New("proving", "Proving ground", access.Settings{DeviceCommands: true, DestructiveCommands: true,
		Provisioning: true}, g.settings.Now()))
	script.Need(desk.Companies.CreateCompany(ctx, owner))
	var made []policy.Policy
	for _, wanted := range []policy.New{
		{Name: "Kiosk", Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}, {Setting: "REPORT_SOFTWARE_INFO", Value: "ENABLED"}}},
		{Name: "Open kiosk", Changes: []policy.Change{{Setting: "SMS", Value: "BLOCK"}}},
	} {
		wanted.CompanyID, wanted.CompanySlug, wanted.Type = owner.ID, owner.Slug, policy.Agent
		author := policy.Author{Kind: string(access.System), ID: "proving", Name: "proving ground"}
		made = append(made, script.Must(desk.Policies.Create(ctx, wanted, author)))
		g.Policies = append(g.Policies, made[len(made)-1].PathName())
	}
	for range g.settings.Agents {
		token := script.Must(g.running.Agents().Issue(ctx, owner, made[0],
			provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: provisioning.Lifetime}))
		g.Tokens = append(g.Tokens, string(token.Payload))
	}
	keys := apikey.Keys{Store: desk.Keys, Now: g.settings.Now}
	for range g.settings.Keys {
		_, text, err := keys.CreateForOperator(ctx, apikey.Request{CompanyID: owner.ID, Name: "fleet",
			Permissions: access.DevicesRead | access.DevicesCommand | access.DevicesCommandDestructive | access.PoliciesRead})
		script.Need(err)
		g.Keys = append(g.Keys, text)
	}
}

// Request asks a process to serve. The process reads it from standard input as one line of JSON.
type Request struct {
	Dir    string `json:"dir"`
	Listen string `json:"listen"`
	Agents int    `json:"agents"` // tokens to issue; 0: Dir has a filled database already
	Keys   int    `json:"keys"`
	// Start is when the clock began to run faster, in Unix milliseconds; Pace says how much.
	Start int64   `json:"start"`
	Pace  float64 `json:"pace"`
}

// Clock is a clock that shows start at start, and from then on runs pace times as fast as now.
func Clock(now func() time.Time, start time.Time, pace float64) func() time.Time {
	return func() time.Time { return start.Add(time.Duration(float64(now().Sub(start)) * pace)) }
}

// Serve runs a service to measure in a process of its own: it reads a Request from in, writes
// the service's Access to out as one line of JSON, and serves until in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, now func() time.Time, log *slog.Logger) error {
	return script.Attempt(func() {
		lines := bufio.NewReader(in)
		var r Request
		script.Need(json.Unmarshal(script.Must(lines.ReadBytes('\n')), &r))
		g := script.Must(Open(ctx, Settings{Dir: r.Dir, Listen: r.Listen, Agents: r.Agents, Keys: r.Keys,
			Now: Clock(now, time.UnixMilli(r.Start), r.Pace), Log: log}))
		err := json.NewEncoder(out).Encode(g.Access)
		if err == nil {
			_, err = io.Copy(io.Discard, lines)
		}
		script.Need(errors.Join(err, g.Close()))
	})
}
