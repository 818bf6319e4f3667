// Command muster-agent is the device's own agent: it enrolls the device with a
// Muster service and carries out only what the service orders.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/logfile"
	"github.com/musterhq/muster/internal/phrase"
)

// They are set by the linker (scripts/build.sh, scripts/agents.sh): the version, its code,
// and the public key of those who sign its releases. Without a key there are no updates.
//
//nolint:gochecknoglobals // the linker sets variables alone
var (
	version    = "devel"
	code       = "0"
	built      = "" // the day, 2006-01-02
	releaseKey = ""
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// program is the tree of commands.
type program struct {
	Enroll   enrollCommand   `cmd:"" help:"Enroll this device with a service."`
	Run      runCommand      `cmd:"" help:"Keep this device in touch with its service."`
	Status   statusCommand   `cmd:"" help:"Show what this device is enrolled in."`
	Rotate   rotateCommand   `cmd:"" help:"Give this device a new key; it also does so by itself once a year."`
	Unenroll unenrollCommand `cmd:"" help:"Unenroll this device."`
}

// environment is what commands run in.
type environment struct {
	ctx context.Context
	out io.Writer
	err io.Writer
	log *slog.Logger
}

func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exited := -1
	parser := kong.Must(&program{}, kong.Name("muster-agent"), kong.Description("The agent of a device that Muster manages."),
		kong.Writers(out, errOut), kong.Exit(func(code int) { exited = code }),
		kong.WithHyphenPrefixedParameters(true)) // one in 64 pins and keys begins with a hyphen
	chosen, err := parser.Parse(args)
	if exited >= 0 {
		return exited // help was asked for
	}
	if err != nil {
		fmt.Fprintf(errOut, "muster-agent: %v: see --help\n", err)
		return 2
	}
	env := &environment{ctx, out, errOut, slog.New(slog.NewTextHandler(errOut, nil))}
	if err := chosen.Run(env); err != nil {
		fmt.Fprintf(errOut, "muster-agent: %v\n", err)
		return 1
	}
	return 0
}

// runCommand keeps the device in touch.
type runCommand struct {
	common
	Once   bool `name:"once" help:"Check in once, carry out what there is, and end."`
	Detach bool `name:"detach" help:"Go on in the background, until the device restarts; what it says goes to the file log of the state directory, and why it ended to the file ended."`
	// Quiet: what the agent logs goes to its file alone.
	Quiet bool `name:"quiet" hidden:""`
	// Locked: the process that started this one handed its lock down.
	Locked bool `name:"locked" hidden:""`
	// Trial: the process that started this one, a new version, waits until it is in touch.
	Trial bool `name:"trial" hidden:""`
}

// inherited is the descriptor of a lock that was handed down.
const inherited = 3

// held is the lock under which the agent runs.
func (c *runCommand) held() (*os.File, error) {
	if c.Locked {
		return os.NewFile(inherited, lockName), nil
	}
	return c.lock()
}

// Run runs the agent until it is stopped or the service lets the device go.
func (c *runCommand) Run(env *environment) error {
	if c.Detach {
		return c.detach(env)
	}
	lock, err := c.held()
	if err != nil {
		return err
	}
	defer lock.Close()
	defer c.released(env)
	if !c.Once {
		if err := c.comeBack(env); err != nil {
			return err
		}
	}
	for {
		err = c.work(env, lock)
		if !errors.Is(err, agent.ErrRestart) {
			break
		}
		if err = c.renew(env, lock); err != nil {
			break
		}
	}
	switch {
	case errors.Is(err, agent.ErrProved):
		return nil
	case errors.Is(err, agent.ErrEnded):
		fmt.Fprintln(env.out, "This device is no longer managed.")
		return nil
	case errors.Is(err, context.Canceled) && env.ctx.Err() != nil:
		return nil // stopped
	}
	return err
}

// work runs the agent until it ends, or is to be started again in another version.
func (c *runCommand) work(env *environment, lock *os.File) error {
	if c.Quiet {
		env = &environment{env.ctx, env.out, io.Discard, env.log}
	}
	a, err := c.openAs(env, c.Trial)
	if err != nil {
		return err
	}
	defer a.Close()
	if c.Once {
		_, err = a.Once(env.ctx)
		return err
	}
	defer onWake(a.Hint)() // before the signal's address is published
	if err := takesOrders(lock); err != nil {
		return err
	}
	ctx := env.ctx
	if c.Trial { // who started it may be gone
		limited, cancel := context.WithTimeout(ctx, trialTime)
		defer cancel()
		ctx = limited
	}
	return a.Run(ctx)
}

func (c common) open(env *environment) (*agent.Agent, error) { return c.openAs(env, false) }

func (c common) openAs(env *environment, trial bool) (*agent.Agent, error) {
	device, push, err := c.device()
	if err != nil {
		return nil, err
	}
	way, err := agent.LoadConnection(c.State)
	if err != nil {
		return nil, withSerial(env.ctx, device, err)
	}
	installer, err := c.installer()
	if err != nil {
		return nil, err
	}
	kept := logfile.Open(filepath.Join(c.State, agent.LogFile))
	log := slog.New(slog.NewTextHandler(io.MultiWriter(env.err, kept), nil))
	return agent.New(agent.Options{Dir: c.State, Version: version, Device: device, Push: push, Client: c.client(way), Network: network,
		Now: time.Now, Elapsed: sinceStart(), Log: log,
		Kept: kept, Installer: installer, Trial: trial})
}

// network is the addresses of this device; empty if it may not know them.
func network() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	return fmt.Sprint(addresses)
}

// statusCommand shows the enrollment.
type statusCommand struct{ common }

// Run prints who the device is.
func (c *statusCommand) Run(env *environment) error {
	s, err := agent.ReadStatus(c.State)
	if errors.Is(err, agent.ErrLost) {
		if device, _, found := c.device(); found == nil {
			err = withSerial(env.ctx, device, err)
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(env.out, "Device:  %s\nService: %s\nRole:    %s\nPolicy:  %s version %d\nOpen:    %s\n",
		s.DeviceID, s.Server, s.Role, s.Policy.ID, s.Policy.Version, phrase.Count(s.Open, "command", "commands"))
	return nil
}

// rotateCommand changes the device's key.
type rotateCommand struct{ common }

// Run changes it.
func (c *rotateCommand) Run(env *environment) error {
	return c.orAsk(env, agent.RotateKey, func(a *agent.Agent) error {
		if err := a.Rotate(env.ctx); err != nil {
			return err
		}
		fmt.Fprintln(env.out, "This device has a new key.")
		return nil
	})
}

// unenrollCommand gives the device back.
type unenrollCommand struct{ common }

// Run informs the service and forgets it.
func (c *unenrollCommand) Run(env *environment) error {
	return c.orAsk(env, agent.SayGoodBye, func(a *agent.Agent) error {
		defer c.released(env)
		return a.Unenroll(env.ctx)
	})
}
