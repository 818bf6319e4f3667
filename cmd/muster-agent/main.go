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
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/logfile"
	"github.com/musterhq/muster/internal/phrase"
)

// The linker sets these variables (scripts/build.sh, scripts/agents.sh). Without a releaseKey the agent installs no
// updates.
//
//nolint:gochecknoglobals // the linker can set only variables
var (
	version    = "devel"
	code       = "0" // the version as a number that grows with each release
	built      = ""  // the day of the build, 2006-01-02; empty: unknown
	releaseKey = ""  // the public key that verifies releases
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

// environment is what a command gets from the program: ctx ends at an interrupt or SIGTERM, out and err are the standard
// output and error, and log writes to err.
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
		kong.WithHyphenPrefixedParameters(true)) // values of pins and keys are base64url, so one in 64 begins with a hyphen
	chosen, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help was given
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

// runCommand runs the agent. The three hidden flags are for processes that another muster-agent starts (detach.go, renew.go).
type runCommand struct {
	common
	Once   bool `name:"once" help:"Check in once, carry out what there is, and end."`
	Detach bool `name:"detach" help:"Go on in the background, until the device restarts; what it says goes to the file log of the state directory, and why it ended to the file ended."`
	// Quiet: the agent's log goes only to the file agent.LogFile, not to standard error as well.
	Quiet bool `name:"quiet" hidden:""`
	// Locked: this process inherits the lock on the state directory, already taken, as descriptor 3.
	Locked bool `name:"locked" hidden:""`
	// Trial: this process runs a new version. It ends once it has reached the service, or after trialTime; the old
	// version waits for that.
	Trial bool `name:"trial" hidden:""`
}

// inherited is the descriptor of the lock that a process with --locked inherits.
const inherited = 3

// held returns the lock on the state directory under which the agent runs: the inherited one, or a new one.
func (c *runCommand) held() (*os.File, error) {
	if c.Locked {
		return os.NewFile(inherited, lockName), nil
	}
	return c.lock()
}

// Run runs the agent until a signal stops it or the service ends the management of the device; neither is an error. With
// Once it ends after one check-in, with Detach once a process in the background runs.
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
		return nil // a signal stopped it
	}
	return err
}

// work runs the agent until it ends. agent.ErrRestart says that a new version is to be started in its place.
func (c *runCommand) work(env *environment, lock *os.File) error {
	if c.Quiet {
		env = &environment{env.ctx, env.out, io.Discard, env.log}
	}
	a, err := c.open(env, c.Trial)
	if err != nil {
		return err
	}
	defer a.Close()
	if c.Once {
		_, err = a.Once(env.ctx)
		return err
	}
	defer onWake(a.Hint)() // before the process id, to which others send the signal, is written down
	if _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return err
	}
	ctx := env.ctx
	if c.Trial { // the process that started this one limits it too, but may have ended
		limited, cancel := context.WithTimeout(ctx, trialTime)
		defer cancel()
		ctx = limited
	}
	return a.Run(ctx)
}

// open opens the enrolled agent of the state directory, as a new version on trial if trial is set.
func (c common) open(env *environment, trial bool) (*agent.Agent, error) {
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
		Now: time.Now, Elapsed: sinceStart(), Log: log, Kept: kept, Installer: installer, Trial: trial})
}

// network lists the addresses of this device's interfaces, so that the agent notices a change; empty if the system refuses
// them.
func network() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	return fmt.Sprint(addresses)
}

// statusCommand shows the enrollment.
type statusCommand struct{ common }

// Run prints the device's id, its service, role and policy, and how many commands are open.
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

// Run gives the device a new key, or asks the agent that runs to do so.
func (c *rotateCommand) Run(env *environment) error {
	return c.orAsk(env, agent.RotateKey, func(a *agent.Agent) error {
		if err := a.Rotate(env.ctx); err != nil {
			return err
		}
		fmt.Fprintln(env.out, "This device has a new key.")
		return nil
	})
}

// unenrollCommand ends the enrollment of the device.
type unenrollCommand struct{ common }

// Run informs the service and deletes the device's identity, or asks the agent that runs to do so.
func (c *unenrollCommand) Run(env *environment) error {
	return c.orAsk(env, agent.SayGoodBye, func(a *agent.Agent) error {
		defer c.released(env)
		return a.Unenroll(env.ctx)
	})
}
