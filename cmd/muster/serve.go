package main

import (
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// serveCommand runs the service until it is told to stop.
type serveCommand struct{ config.Service }

// Run serves until the context ends, then drains.
func (c *serveCommand) Run(env *cli.Env) error {
	logger, err := ops.NewLogger(env.Err, c.LogLevel, c.LogFormat)
	if err != nil {
		return err
	}
	running, err := service.New(env.Context, c.Service, service.Options{Now: env.Now, ServerClock: true, Logger: logger})
	if err != nil && env.Context.Err() != nil {
		return nil // told to stop before it had begun
	}
	if err != nil {
		return err
	}
	return running.Run(env.Context)
}
