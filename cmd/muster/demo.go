package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/demo"
	"github.com/musterhq/muster/internal/service/drill"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// demoCommand brings up a whole Muster with simulated devices.
type demoCommand struct {
	Data           string `name:"data" default:"./muster-demo" placeholder:"DIR" help:"Directory of the demo; started again on it, the demo goes on where it stopped. Default: ${default}."`
	Listen         string `name:"listen" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to serve on. Default: ${default}."`
	AcceptLostKeys bool   `name:"accept-lost-keys" help:"Start although the key file lacks keys that the database names."`
	LogLevel       string `name:"log-level" enum:"debug,info,warn,error" default:"warn" help:"Lowest level to log: debug, info, warn or error."`
	Story          bool   `name:"story" help:"Show in half a minute what Muster is for, on a company in a temporary folder, and end: an assistant asks for a wipe, a person approves it, the evidence verifies."`
	config.WebhookNetworks
	Pause time.Duration `name:"pause" default:"3s" placeholder:"DURATION" help:"With --story: how long to wait after each heading. Default: ${default}."`
}

// Run serves the demo until the context ends.
func (c *demoCommand) Run(env *cli.Env) error {
	logger, err := ops.NewLogger(env.Err, c.LogLevel, "text")
	if err != nil {
		return err
	}
	if c.Story {
		return c.tell(env, logger)
	}
	return demo.Run(env.Context, demo.Settings{Data: c.Data, Listen: c.Listen, AcceptLostKeys: c.AcceptLostKeys, History: true,
		WebhookNetworks: c.WebhookNetworks}, env.Now, logger, env.Out)
}

// tell plays the story.
func (c *demoCommand) tell(env *cli.Env, logger *slog.Logger) error {
	story := drill.Story{Settings: drill.Settings{Now: env.Now, Log: logger}, Out: env.Out, Pause: c.Pause}
	story.Command = func(out io.Writer, args ...string) error {
		if code := run(args, strings.NewReader(""), out, env.Err); code != cli.ExitOK {
			return fmt.Errorf("muster %s ended with exit code %d", args[0], code)
		}
		return nil
	}
	return story.Tell(env.Context)
}

// emulatorCommand runs the platform's emulator by itself.
type emulatorCommand struct {
	Listen    string `name:"listen" default:"127.0.0.1:9090" placeholder:"ADDR" help:"Address to serve on: the vendor's API, Pub/Sub, FCM and the control API. Default: ${default}."`
	Data      string `name:"data" type:"path" placeholder:"DIR" help:"Keep the state in this directory; by default it is in memory only."`
	LogLevel  string `name:"log-level" enum:"debug,info,warn,error" default:"info" help:"Lowest level to log: debug, info, warn or error."`
	LogFormat string `name:"log-format" enum:"text,json" default:"text" help:"Format of the log: text or json."`
}

// Run serves until the context ends.
func (c *emulatorCommand) Run(env *cli.Env) error {
	logger, err := ops.NewLogger(env.Err, c.LogLevel, c.LogFormat)
	if err != nil {
		return err
	}
	emulator, err := service.NewEmulator(env.Context, c.Listen, c.Data, service.Options{Now: env.Now, Logger: logger})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Out, "The emulator of the platform answers at %s\n", emulator.URL())
	return emulator.Run(env.Context)
}

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
