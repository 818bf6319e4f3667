package fleetsim

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
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

// ServiceSettings say how large a Service is.
type ServiceSettings struct {
	Dir    string `json:"dir"`    // for the database
	Listen string `json:"listen"` // empty: any address on this machine
	Agents int    `json:"agents"` // tokens to issue; 0: Dir has a filled database already
	Keys   int    `json:"keys"`   // API keys, each with its own budget
	// Start is when the clock began to run faster, in Unix milliseconds; Pace says how much.
	// Only Serve reads them, in the place of Now.
	Start int64   `json:"start"`
	Pace  float64 `json:"pace"`

	Now func() time.Time `json:"-"`
	Log *slog.Logger     `json:"-"`
}

// Access is the address of a service, and what a run needs of it.
type Access struct {
	Server string   `json:"server"`
	Tokens []string `json:"tokens"` // enrollment tokens, or texts of QR codes: one for each agent
	// Keys are API keys of the tokens' company with DEVICES_READ and
	// DEVICES_COMMAND. Each brings its own budget of ten commands a minute. None:
	// no commands are sent and only what the devices know is checked.
	Keys []string `json:"keys"`
	// Policies are path names of AGENT policies, the first being that of the
	// tokens. With two, devices are moved between them; then the keys need
	// POLICIES_READ.
	Policies []string `json:"policies"`
}

// Service is a running service to measure: a whole service with a database of its own in a
// directory, a company, policies for agents, API keys and enrollment tokens.
type Service struct {
	Access
	running *service.Service
	stop    context.CancelFunc
	ended   chan error
}

// OpenService starts a service and fills it. Close ends it.
func OpenService(ctx context.Context, settings ServiceSettings) (*Service, error) {
	c := config.Service{Store: config.Store{Database: "sqlite:" + filepath.Join(settings.Dir, "muster.db")},
		Listen: cmp.Or(settings.Listen, "127.0.0.1:0"), ReadsPerMinute: 1_000_000}
	running, err := service.New(ctx, c, service.Options{Now: settings.Now, Logger: settings.Log})
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Service{Access: Access{Server: running.PublicURL()}, running: running, stop: stop, ended: make(chan error, 1)}
	go func() { s.ended <- running.Run(serving) }()
	if settings.Agents > 0 {
		if err := script.Attempt(func() { s.fill(ctx, settings, c.Store) }); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close ends the service.
func (s *Service) Close() error {
	s.stop()
	return <-s.ended
}

// fill makes the company with everything in it.
func (s *Service) fill(ctx context.Context, settings ServiceSettings, store config.Store) {
	admin := script.Must(service.OpenAdmin(settings.Now, "")(ctx, store, cli.Creates))
	defer admin.Close()
	owner := script.Must(company.New("simulation", "Simulation", access.Settings{DeviceCommands: true, DestructiveCommands: true,
		Provisioning: true}, settings.Now()))
	script.Need(admin.Companies.CreateCompany(ctx, owner))
	var made []policy.Policy
	for _, wanted := range []policy.New{
		{Name: "Kiosk", Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}, {Setting: "REPORT_SOFTWARE_INFO", Value: "ENABLED"}}},
		{Name: "Open kiosk", Changes: []policy.Change{{Setting: "SMS", Value: "BLOCK"}}},
	} {
		wanted.CompanyID, wanted.CompanySlug, wanted.Type = owner.ID, owner.Slug, policy.Agent
		author := policy.Author{Kind: string(access.System), ID: "simulation", Name: "simulation"}
		made = append(made, script.Must(admin.Policies.Create(ctx, wanted, author)))
		s.Policies = append(s.Policies, made[len(made)-1].PathName())
	}
	for range settings.Agents {
		token := script.Must(s.running.Agents().Issue(ctx, owner, made[0],
			provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: provisioning.Lifetime}))
		s.Tokens = append(s.Tokens, string(token.Payload))
	}
	keys := apikey.Keys{Store: admin.Keys, Now: settings.Now}
	for range settings.Keys {
		_, text, err := keys.CreateForOperator(ctx, apikey.Request{CompanyID: owner.ID, Name: "fleet",
			Permissions: access.DevicesRead | access.DevicesCommand | access.DevicesCommandDestructive | access.PoliciesRead})
		script.Need(err)
		s.Keys = append(s.Keys, text)
	}
}

// Clock is a clock that shows start at start, and from then on runs pace times as fast as now.
func Clock(now func() time.Time, start time.Time, pace float64) func() time.Time {
	return func() time.Time { return start.Add(time.Duration(float64(now().Sub(start)) * pace)) }
}

// Serve runs a service to measure in a process of its own: it reads ServiceSettings from in,
// writes the service's Access to out, each as one line of JSON, and serves until in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, now func() time.Time, log *slog.Logger) error {
	return script.Attempt(func() {
		lines := bufio.NewReader(in)
		s := ServiceSettings{Log: log}
		script.Need(json.Unmarshal(script.Must(lines.ReadBytes('\n')), &s))
		s.Now = Clock(now, time.UnixMilli(s.Start), s.Pace)
		served := script.Must(OpenService(ctx, s))
		err := json.NewEncoder(out).Encode(served.Access)
		if err == nil {
			_, err = io.Copy(io.Discard, lines)
		}
		script.Need(errors.Join(err, served.Close()))
	})
}
