// Command muster is the service and its administration in one program
// (docs/operating.md). It holds only the wiring.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/surface/cli/remote"
)

func main() {
	keepPrivate()
	dropEmptySettings()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// program is the tree of commands.
type program struct {
	Serve    serveCommand    `cmd:"" help:"Run the service."`
	Demo     demoCommand     `cmd:"" help:"Bring up a demo: a company, policies and about 30 simulated devices; nothing to install or configure."`
	Emulator emulatorCommand `cmd:"" help:"Run the platform's emulator by itself."`
	MCP      mcpCommand      `cmd:"" name:"mcp" help:"Let an MCP client that speaks over standard input and output use a service."`
	cli.Commands
	remote.Logins
	Simulate        simulateCommand        `cmd:"" help:"Run simulated agents against a service, or against one of their own, and check the outcome."`
	Drill           drillCommand           `cmd:"" help:"Attack a service of its own on simulated devices, and report which control refused what; exits with 1 if harm was done."`
	Doctor          doctorCommand          `cmd:"" help:"Check the set-up and say how to fix it."`
	Version         versionCommand         `cmd:"" help:"Show the build."`
	Completion      completionCommand      `cmd:"" help:"Print what makes a shell complete command lines: bash, zsh or fish."`
	SimulateService simulateServiceCommand `cmd:"" name:"simulate-service" hidden:"" help:"Be the service of a simulation, which starts this command."`
	Man             manCommand             `cmd:"" hidden:"" help:"Write the pages of the manual and the completion of shells, for packages."`
}

// firstSteps is what a person who does not know the program is shown.
const firstSteps = `Self-hosted management of Android devices. First steps:

  muster demo                  try it out: a company with about 30 simulated devices
  muster company create acme   set up a database with a first company
  muster user create --company acme --role admin you@example.com
                               the person who signs in to the portal
  muster doctor                check the settings and say how to correct them
  muster serve                 run the service

  muster help COMMAND          explains one command; muster completion completes them
  docs/operating.md            everything about running it

`

// withHelp is a command line that asks for help in another way, as kong knows it. alone
// reports one that names no command: it is shown the first steps, too.
func withHelp(args []string) (without []string, alone bool) {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "help":
		return []string{"--help"}, true
	case args[0] == "help":
		return append(args[1:len(args):len(args)], "--help"), false
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}, false
	}
	return args, false
}

// newParser declares the command line.
func newParser(out, errOut io.Writer, exit func(code int)) *kong.Kong {
	parser, err := grammar(
		kong.Name("muster"),
		kong.Description("Self-hosted management of Android devices."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Writers(out, errOut),
		kong.Exit(exit),
		cli.Durations(),
		kong.Resolvers(secretFiles()),
	)
	if err != nil {
		panic(err) // the declarations contradict themselves
	}
	return parser
}

// run executes one command line and returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exited := -1
	parser := newParser(out, errOut, func(code int) { exited = code })
	if len(args) > 0 && args[0] == completing {
		complete(parser, args[1:], out)
		return cli.ExitOK
	}
	// A text that is kept as JSON would get another character for each wrong byte.
	if at := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); at >= 0 {
		fmt.Fprintf(errOut, "muster: the argument %q is not UTF-8: see --help\n", args[at])
		return cli.ExitUsage
	}
	args, alone := withHelp(args)
	if alone {
		fmt.Fprint(out, firstSteps)
	}
	chosen, err := parser.Parse(args)
	if exited >= 0 {
		return exited // help was asked for
	}
	if err == nil {
		err = cli.NoEmptyValue(chosen)
	}
	if err != nil {
		// That a choice may be left out is not one of its values.
		fmt.Fprintf(errOut, "muster: %s: see --help\n", strings.Replace(cli.Message(err), `one of "",`, "one of ", 1))
		return cli.ExitUsage
	}
	env := &cli.Env{Context: ctx, In: in, Out: out, Err: errOut, Now: time.Now, User: hostUser(),
		Open: service.OpenAdmin(time.Now, os.Getenv("MUSTER_KEY_FILE")), Signer: service.OpenSigner,
		Maintenance: service.Maintenance{Log: slog.New(slog.NewTextHandler(errOut, nil))}}
	if err := chosen.Run(env, overNetwork(env)); err != nil {
		if own, ok := errors.AsType[*cli.ExitError](err); ok {
			fmt.Fprintf(errOut, "muster: %s\n", own.Text)
			return own.Code
		}
		fmt.Fprintf(errOut, "muster: %s\n", cli.Message(err))
		return cli.ExitFailed
	}
	return cli.ExitOK
}

// hostUser is who runs the program, for the activity log.
func hostUser() string {
	current, err := user.Current()
	if err != nil {
		return "" // no such user on this host, as in an empty container
	}
	if by := os.Getenv("SUDO_USER"); by != "" && by != current.Username {
		return current.Username + ", by sudo of " + by
	}
	return current.Username
}

// dropEmptySettings makes an empty variable the same as none, as compose files
// and unit files set them.
func dropEmptySettings() {
	for _, setting := range os.Environ() {
		if name, value, _ := strings.Cut(setting, "="); value == "" && strings.HasPrefix(name, "MUSTER_") {
			_ = os.Unsetenv(name) // fails only for malformed names
		}
	}
}

// serveCommand runs the service until it is told to stop.
type serveCommand struct{ config.Service }

// Run serves until the context ends, then drains.
func (c *serveCommand) Run(env *cli.Env) error {
	logger, err := ops.NewLogger(env.Err, c.LogLevel, c.LogFormat)
	if err != nil {
		return err
	}
	for _, unknown := range unknownSettings(os.Environ()) {
		logger.WarnContext(env.Context, "a setting is not used", "detail", unknown.Detail, "remedy", unknown.Remedy)
	}
	running, err := service.New(env.Context, c.Service, service.Options{Now: env.Now, ServerClock: true, Logger: ops.Reliable(logger),
		Version: version, Manager: manager()})
	if err != nil && env.Context.Err() != nil {
		return nil // told to stop before it had begun
	}
	if err != nil {
		return err
	}
	return running.Run(env.Context)
}

// version is the version that the linker sets (scripts/build.sh). Empty: the version that the go command stamps into a
// build from the repository is used.
var version = ""

// versionCommand prints what is known of this program's build. See ops.Build.
type versionCommand struct {
	Output string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
}

// Run prints the build.
func (c *versionCommand) Run(env *cli.Env) error {
	b := ops.ReadBuild(version)
	return cli.Print(env.Out, c.Output, b, func(w io.Writer) {
		fmt.Fprintf(w, "muster %s (%s, %s, %s)\n", b.Version, b.Revision, b.Go, b.Platform)
	})
}

// manager is the service manager that started this very process (sd_notify(3)). Its
// variables are removed, so that no other process speaks for this one.
func manager() ops.Manager {
	m := ops.Manager{Socket: os.Getenv("NOTIFY_SOCKET")}
	microseconds, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && m.Socket != "" && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.Watchdog = max(0, time.Duration(microseconds)*time.Microsecond)
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name) // fails only for malformed names
	}
	return m
}
