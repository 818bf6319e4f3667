package main

import (
	"fmt"

	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/demo"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// demoCommand brings up a whole Muster with simulated devices.
type demoCommand struct {
	Data           string `name:"data" default:"./muster-demo" placeholder:"DIR" help:"Directory of the demo; started again on it, the demo goes on where it stopped. Default: ${default}."`
	Listen         string `name:"listen" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to serve on. Default: ${default}."`
	AcceptLostKeys bool   `name:"accept-lost-keys" help:"Start although the key file lacks keys that the database names."`
	LogLevel       string `name:"log-level" enum:"debug,info,warn,error" default:"warn" help:"Lowest level to log: debug, info, warn or error."`
}

// Run serves the demo until the context ends.
func (c *demoCommand) Run(env *cli.Env) error {
	logger, err := ops.NewLogger(env.Err, c.LogLevel, "text")
	if err != nil {
		return err
	}
	return demo.Run(env.Context, demo.Settings{Data: c.Data, Listen: c.Listen, AcceptLostKeys: c.AcceptLostKeys, History: true}, env.Now, logger, env.Out)
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
