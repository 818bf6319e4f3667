package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/musterhq/muster/internal/fleetsim"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// simulateCommand runs simulated agents against a service, for load.
type simulateCommand struct {
	Agents *int `name:"agents" placeholder:"N" help:"How many agents; with --server, they take the tokens in turn. Default: 100; with --server, one for each token."`
	fleetsim.Load

	Server   string   `name:"server" placeholder:"URL" help:"An existing service; by default the simulation starts one of its own in a temporary directory."`
	Tokens   string   `name:"tokens" placeholder:"FILE" help:"With --server: enrollment tokens or QR codes' texts, one a line; - reads standard input."`
	Token    []string `name:"token" help:"With --server: an enrollment token; repeatable. Other users can see flags: prefer --tokens with a file."`
	Keys     []string `name:"key" env:"MUSTER_API_KEY" help:"With --server: an API key to send commands with; repeatable, each has its own budget. None: no commands are sent. Other users can see flags: prefer the variable or --api-key-file."`
	KeyFile  string   `name:"api-key-file" env:"MUSTER_API_KEY_FILE" placeholder:"FILE" help:"With --server: more API keys, one a line; - reads standard input."`
	Policies []string `name:"policy" placeholder:"PATHNAME" help:"With --server: the tokens' policy, and then one to move devices to."`
	Metrics  []string `name:"metrics" placeholder:"URL" help:"With --server: address of its metrics, such as http://127.0.0.1:9090/metrics, from which its CPU time and memory are reported; repeat for each replica."`
	Output   string   `name:"output" short:"o" enum:"text,json" default:"text" help:"text, or json: one JSON value on standard output."`
}

// errProblems ends the command with exit code 1.
var errProblems = errors.New("the simulation found problems: see above")

// Validate wants numbers with which there is a simulation.
func (c *simulateCommand) Validate() error {
	switch {
	case c.Agents != nil && *c.Agents < 1:
		return errors.New("--agents must be at least 1")
	case c.Server == "" && (c.Pace < 1 || c.Pace > 8):
		return errors.New("--pace must be between 1 and 8")
	case c.Commands < 0:
		return errors.New("--commands must not be negative")
	}
	for flag, share := range map[string]float64{"offline": c.Offline, "lost": c.Lost, "duplicated": c.Duplicated, "crashes": c.Crashes,
		"endings": c.Endings} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("--%s must be between 0 and 1", flag)
		}
	}
	return nil
}

// Run runs the simulation and prints its report. It fails if anything was lost,
// done twice or did not converge.
func (c *simulateCommand) Run(env *cli.Env) (err error) {
	dir, err := os.MkdirTemp("", "muster-simulate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, isFile := env.Err.(*os.File)
	progress := &progressLine{out: env.Err, terminal: isFile && term.IsTerminal(int(file.Fd()))}
	o := fleetsim.Options{Load: c.Load, Dir: dir, Now: env.Now, Clock: env.Now, Log: slog.New(slog.DiscardHandler),
		Say: progress.say, Progress: progress.show}
	if c.Server == "" {
		simulated, err := c.ownService(env, dir, &o)
		if err != nil {
			return err
		}
		defer func() { _ = simulated.Close() }()
	} else if err := c.existing(env, &o); err != nil {
		return err
	}
	report, err := fleetsim.Run(env.Context, o)
	progress.end()
	if err != nil {
		return err
	}
	if c.Output == "json" {
		err = json.NewEncoder(env.Out).Encode(report)
	} else {
		err = report.Write(env.Out)
	}
	if err == nil && len(report.Problems) > 0 {
		err = errProblems
	}
	return err
}

// What the simulation has open beside its agents, and for each: its stream and
// its journal. The service is another process.
const (
	simulateFiles = 600
	filesEach     = 2
)

// enoughFiles refuses a simulation that would run out of open files midway.
func enoughFiles(agents, limit int) error {
	if need := agents*filesEach + simulateFiles; need > limit {
		return fmt.Errorf("cannot simulate %d agents: they need about %d open files and the limit is %d; raise it with `ulimit -n`, or "+
			"simulate at most %d agents",
			agents, need, limit, max(0, limit-simulateFiles)/filesEach)
	}
	return nil
}

// ownService starts a service of the simulation's own.
func (c *simulateCommand) ownService(env *cli.Env, dir string, o *fleetsim.Options) (*simulatedService, error) {
	agents := 100
	if c.Agents != nil {
		agents = *c.Agents
	}
	if err := enoughFiles(agents, ops.OpenFileLimit()); err != nil {
		return nil, err
	}
	start := env.Now().Truncate(time.Millisecond)
	o.Now = fleetsim.Clock(env.Now, start, c.Pace)
	o.Say("Starting a service of its own …")
	// A key may send ten commands a minute. With a key for each ten commands none has to wait.
	keys := (agents*(c.Commands+1))/10 + 1
	simulated, err := startSimulatedService(env.Context, env.Err,
		fleetsim.ServiceSettings{Dir: dir, Agents: agents, Keys: keys, Start: start.UnixMilli(), Pace: c.Pace})
	if err != nil {
		return nil, err
	}
	o.Access, o.Metrics = simulated.Access, []string{simulated.Server + "/metrics"}
	return simulated, nil
}

// existing takes what an existing service needs from the flags.
func (c *simulateCommand) existing(env *cli.Env, o *fleetsim.Options) error {
	o.Server, o.Tokens, o.Keys, o.Policies = strings.TrimRight(c.Server, "/"), c.Token, c.Keys, c.Policies
	o.Pace, o.Metrics = 1, c.Metrics
	if c.Tokens == "-" && c.KeyFile == "-" {
		return &cli.ExitError{Code: cli.ExitUsage,
			Text: "standard input cannot be both --tokens and --api-key-file: give a file for one of them"}
	}
	tokens, err := fileLines(env, c.Tokens)
	if err != nil {
		return fmt.Errorf("cannot read --tokens: %w", err)
	}
	keys, err := fileLines(env, c.KeyFile)
	if err != nil {
		return fmt.Errorf("cannot read --api-key-file: %w", err)
	}
	o.Tokens, o.Keys = append(o.Tokens, tokens...), append(o.Keys, keys...)
	if c.Agents != nil && len(o.Tokens) > 0 {
		all := slices.Repeat(o.Tokens, *c.Agents/len(o.Tokens)+1)
		o.Tokens = all[:*c.Agents]
	}
	return enoughFiles(len(o.Tokens), ops.OpenFileLimit())
}

// fileLines returns the lines of a file; none without a path, and those of
// standard input for "-".
func fileLines(env *cli.Env, path string) (all []string, err error) {
	if path == "" {
		return nil, nil
	}
	in, err := env.Input(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const longest = 64 << 10
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			all = append(all, text)
		}
	}
	return all, lines.Err()
}
