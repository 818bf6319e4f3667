package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/musterhq/muster/internal/surface/bridge"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/surface/cli/remote"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// mcpCommand lets a client that speaks MCP over standard input and output use a
// service (contract 4.5). The key never stands on the command line, where other
// users of the machine could read it.
type mcpCommand struct {
	URL     string `name:"url" env:"MUSTER_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Address of the service. Default: ${default}."`
	KeyFile string `name:"api-key-file" env:"MUSTER_API_KEY_FILE" type:"path" placeholder:"FILE" help:"File that holds the API key alone; by default the key is in MUSTER_API_KEY."`
}

// Help is printed below the flags.
func (mcpCommand) Help() string {
	return `The key is read from the variable MUSTER_API_KEY, or from a file.

Most clients take a configuration like this one:

  {
    "mcpServers": {
      "muster": {
        "command": "muster",
        "args": ["mcp"],
        "env": {"MUSTER_URL": "https://muster.example.com", "MUSTER_API_KEY": "…"}
      }
    }
  }

A client that speaks HTTP needs no bridge: give it the service's address with /mcp
and the header X-API-Key, or let it sign in with OAuth.`
}

// Validate wants the address of a service.
func (c *mcpCommand) Validate() error {
	_, err := c.address()
	return err
}

func (c *mcpCommand) address() (*url.URL, error) {
	address, err := url.Parse(strings.TrimRight(c.URL, "/"))
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" || address.User != nil ||
		address.RawQuery != "" {
		return nil, errors.New("MUSTER_URL must be the service's http:// or https:// address, without user or query")
	}
	return address, nil
}

// Run carries messages until standard input ends.
func (c *mcpCommand) Run(env *cli.Env) error {
	warn := func(text string) { fmt.Fprintf(env.Err, "muster mcp: %s\n", text) }
	address, err := c.address()
	if err != nil {
		return err
	}
	if address.Scheme == "http" && address.Hostname() != "localhost" && !net.ParseIP(address.Hostname()).IsLoopback() {
		warn("the API key travels unprotected over http://: use https:// beyond this machine")
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	return (&bridge.Bridge{Endpoint: strings.TrimSuffix(address.String(), mcp.Path) + mcp.Path, Key: key, Warn: warn}).Run(env.Context,
		env.In, env.Out)
}

func (c *mcpCommand) key() (string, error) {
	if c.KeyFile == "" {
		if key := os.Getenv("MUSTER_API_KEY"); key != "" {
			return key, nil
		}
		return "", errors.New("set MUSTER_API_KEY to an API key (`muster key create` makes one), or give --api-key-file")
	}
	return remote.ReadKey(c.KeyFile)
}
