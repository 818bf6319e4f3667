package main

import (
	"fmt"
	"io"
	"log/slog"
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
	Pause time.Duration `name:"pause" default:"3s" placeholder:"DURATION" help:"With --story: how long to wait after each part. Default: ${default}."`
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
		if code := run(args, strings.NewReader(""), out, env.Err); code != exitOK {
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
