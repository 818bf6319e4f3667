package main

import (
	"fmt"

	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

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
