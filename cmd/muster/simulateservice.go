package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/fleetsim"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// simulateServiceCommand is the service of a simulation's own. It is another process, so that its CPU time
// and memory are measured without the agents, and each has its own limit of open files.
type simulateServiceCommand struct{}

// Run reads what the simulation wants from standard input, and serves until that ends.
func (simulateServiceCommand) Run(env *cli.Env) error {
	logger, err := ops.NewLogger(env.Err, "error", "text")
	if err != nil {
		return err
	}
	return fleetsim.Serve(context.WithoutCancel(env.Context), env.In, env.Out, env.Now, logger)
}

// simulatedService is that process, seen from the simulation.
type simulatedService struct {
	fleetsim.Access
	process *exec.Cmd
	in      io.Closer
}

// startSimulatedService starts the process and waits until it serves. Close ends it.
func startSimulatedService(ctx context.Context, errOut io.Writer, wanted fleetsim.ServiceSettings) (*simulatedService, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	process := exec.CommandContext(context.WithoutCancel(ctx), program)
	process.Args, process.Stderr = []string{"muster", "simulate-service"}, errOut
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the simulation's service: %w", err)
	}
	g := &simulatedService{process: process, in: in}
	if err = json.NewEncoder(in).Encode(wanted); err == nil {
		var line []byte
		if line, err = bufio.NewReader(out).ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &g.Access)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the simulation's service: %w", err), g.Close())
	}
	return g, nil
}

// Close ends the process.
func (g *simulatedService) Close() error {
	return errors.Join(g.in.Close(), g.process.Wait())
}

// tellEvery is how often at most show writes a line if the output is no terminal.
const tellEvery = 5 * time.Second

// progressLine shows the progress of a simulation. On a terminal it rewrites one line; elsewhere it writes a line every
// tellEvery. Concurrent use is safe.
type progressLine struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	shown bool          // the last line on the terminal is a progress line
	last  time.Duration // Progress.Since of the last line that was written without a terminal
}

// clearLine moves to the beginning of the terminal's line and erases it.
const clearLine = "\r\x1b[K"

// say writes a line that stays, in place of the progress line.
func (l *progressLine) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	fmt.Fprintf(l.out, format+"\n", args...)
}

// show shows the progress p. Without a terminal it skips p within tellEvery of the last line.
func (l *progressLine) show(p fleetsim.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		fmt.Fprint(l.out, clearLine, p)
		l.shown = true
		return
	}
	if p.Since-l.last >= tellEvery {
		l.last = p.Since
		fmt.Fprintln(l.out, p)
	}
}

// end removes the progress line, so that other output can follow.
func (l *progressLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

// clear erases the progress line, if one is on the terminal. The caller holds l.mu.
func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.out, clearLine)
		l.shown = false
	}
}
