// Package demo brings up a whole Muster that needs nothing and configures
// itself (muster demo): an embedded database and the
// platform's emulator in one process, a company with policies, and simulated
// devices that really enroll, report and answer commands through the real
// protocols.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
)

// Settings are what a person may choose.
type Settings struct {
	Data   string // directory; made if it does not exist
	Listen string
	// AcceptLostKeys is config.Service.AcceptLostKeys.
	AcceptLostKeys bool
}

// Demo is one running demo.
type Demo struct {
	settings Settings
	now      func() time.Time
	log      *slog.Logger
	out      io.Writer

	emulator *service.Emulator
	service  *service.Service
	agents   sync.WaitGroup                        // the devices with our own agent
	use      func(context.Context, *Running) error // nil: introduce the demo and serve
}

// Run brings the demo up, prints what to do with it, and serves until ctx
// ends. Started again on the same directory it goes on where it stopped.
func Run(ctx context.Context, s Settings, now func() time.Time, log *slog.Logger, out io.Writer) error {
	return (&Demo{settings: s, now: now, log: log, out: out}).run(ctx)
}

func (d *Demo) run(ctx context.Context) error {
	if err := os.MkdirAll(d.settings.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the demo's directory: %w", err)
	}
	d.say("Opening the demo in %s …", d.settings.Data)
	var err error
	d.emulator, err = service.NewEmulator(ctx, "127.0.0.1:0", filepath.Join(d.settings.Data, "emulator"), service.Options{Now: d.now, Logger: d.log})
	if err != nil {
		return err
	}
	return d.withEmulator(ctx)
}

// withEmulator runs the emulator for as long as the rest needs it.
func (d *Demo) withEmulator(ctx context.Context) error {
	emulating, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var failed error
	var work sync.WaitGroup
	work.Go(func() { failed = d.emulator.Run(emulating) })
	err := d.withService(ctx)
	stop()
	work.Wait()
	return errors.Join(err, failed)
}

// withService opens the service, fills it while it runs, and waits for its end.
func (d *Demo) withService(ctx context.Context) error {
	var err error
	d.service, err = service.New(ctx, d.config(), service.Options{Now: d.now, Logger: d.log})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer d.agents.Wait()
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop() // what is being filled need not go on
		ended <- d.service.Run(serving)
	}()
	if err := d.fill(serving); err != nil && ctx.Err() == nil {
		stop()
		return errors.Join(err, <-ended)
	}
	if d.use != nil {
		stop()
	}
	return <-ended
}

func (d *Demo) config() config.Service {
	return config.Service{
		Store:    config.Store{Database: "sqlite:" + filepath.Join(d.settings.Data, "muster.db")},
		Platform: config.Platform{PlatformEndpoint: d.emulator.URL()},
		Listen:   d.settings.Listen, NameLoopback: true, AcceptLostKeys: d.settings.AcceptLostKeys,
	}
}

func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }
