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

	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/service/proving"
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
	return proving.Serve(context.WithoutCancel(env.Context), env.In, env.Out, env.Now, logger)
}

// simulatedService is that process, seen from the simulation.
type simulatedService struct {
	proving.Access
	process *exec.Cmd
	in      io.Closer
}

// startSimulatedService starts the process and waits until it serves. Close ends it.
func startSimulatedService(ctx context.Context, errOut io.Writer, wanted proving.Request) (*simulatedService, error) {
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
