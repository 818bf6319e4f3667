package demo

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
)

// Running is a demo that is up, for a caller in the same process.
type Running struct {
	Service  *service.Service
	Emulator *service.Emulator
	Admin    *cli.Admin
	Company  company.Company
	Store    config.Store // the demo's database
	// User and Password sign in to the portal as an administrator.
	User, Password string
	Key            string // may do everything
}

// Use brings a demo up in its directory, calls use with it, and ends it.
func Use(ctx context.Context, s Settings, now func() time.Time, log *slog.Logger, use func(context.Context, *Running) error) error {
	return (&Demo{settings: s, now: now, log: log, out: io.Discard, use: use}).run(ctx)
}

// Policies are the policies of the company, by name.
func (r *Running) Policies(ctx context.Context) ([]policy.Policy, error) {
	all, _, err := r.Admin.Policies.Store.Policies(ctx, policy.Query{CompanyID: r.Company.ID, Order: policy.ByName, Limit: 1000})
	return all, err
}

// Policy finds a policy of the company by its name.
func (r *Running) Policy(ctx context.Context, name string) (p policy.Policy, found bool, err error) {
	all, err := r.Policies(ctx)
	at := slices.IndexFunc(all, func(p policy.Policy) bool { return p.Name == name })
	if at < 0 {
		return p, false, err
	}
	return all[at], true, err
}

// AgentToken makes a token with which a device with our own agent enrolls.
func (r *Running) AgentToken(ctx context.Context, p policy.Policy) (string, error) {
	code, err := r.Service.Agents().Issue(ctx, r.Company, p, provisioning.Unspecified, provisioning.Lifetime)
	if err != nil {
		return "", err
	}
	return protocol.TokenOf(string(code.Payload))
}

func (f *filler) running() *Running {
	return &Running{Service: f.service, Emulator: f.emulator, Admin: f.admin, Company: f.company, Store: f.config().Store,
		User: portalUser, Password: f.memory.Password, Key: f.memory.Key}
}
