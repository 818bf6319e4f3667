package demo

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
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

func (f *filler) running() *Running {
	return &Running{Service: f.service, Emulator: f.emulator, Admin: f.admin, Company: f.company, Store: f.config().Store,
		User: portalUser, Password: f.memory.Password, Key: f.memory.Key}
}
