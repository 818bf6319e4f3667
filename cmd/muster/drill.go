package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/service/drill"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// drillCommand attacks a service that it starts itself.
type drillCommand struct {
	Scenario []string `name:"scenario" placeholder:"NAME" help:"stolen-administrator, compromised-model or confused-retry; repeat for more. Default: all."`
	Output   string   `name:"output" short:"o" enum:"table,json" default:"table" help:"table, or json: one JSON value on standard output."`
	LogLevel string   `name:"log-level" enum:"debug,info,warn,error" default:"error" help:"Lowest level to log: debug, info, warn or error."`
}

// errHarm ends the command with exit code 1.
var errHarm = errors.New("the drill did harm: see above")

// Help is printed below the flags.
func (drillCommand) Help() string {
	return `The drill starts a service with simulated devices in a temporary folder, attacks it
over REST, MCP, OAuth and the portal, and removes the folder. It reaches no other
service and no real device. It exits with 1 if harm was done.`
}

// Validate refuses a scenario that does not exist.
func (c *drillCommand) Validate() error {
	for _, name := range c.Scenario {
		if !slices.Contains(drill.Names(), name) {
			return fmt.Errorf("--scenario must be one of %s", strings.Join(drill.Names(), ", "))
		}
	}
	return nil
}

// Run runs the scenarios and prints the report. It returns errHarm if the report lists harm.
func (c *drillCommand) Run(env *cli.Env) error {
	logger, err := ops.NewLogger(env.Err, c.LogLevel, "text")
	if err != nil {
		return err
	}
	report, err := drill.Run(env.Context, drill.Settings{Scenarios: c.Scenario, Now: env.Now, Log: logger})
	if err != nil {
		return err
	}
	if c.Output == "json" {
		err = report.JSON(env.Out)
	} else {
		err = report.Table(env.Out)
	}
	if err == nil && !report.Harmless() {
		err = errHarm
	}
	return err
}
