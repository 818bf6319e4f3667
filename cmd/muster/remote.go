package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/bridge"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/surface/cli/remote"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// grammar is the whole command line: the commands of program, and one for each operation.
func grammar(options ...kong.Option) (*kong.Kong, error) {
	return kong.New(&program{}, append(remote.Options(service.Declarations()), options...)...)
}

// overNetwork is where commands over the network run.
func overNetwork(env *cli.Env) *remote.Env {
	dir, _ := os.UserConfigDir() // empty: those that need it say so
	host, _ := os.Hostname()
	file, isFile := env.Err.(*os.File)
	return &remote.Env{Env: env, ConfigDir: dir, Host: host, Open: openBrowser(env.Context), Terminal: isFile &&
		term.IsTerminal(int(file.Fd()))}
}

// openBrowser shows an address in the user's browser, where there is a screen.
func openBrowser(ctx context.Context) func(address string) error {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return nil
		}
	}
	return func(address string) error {
		return exec.CommandContext(ctx, program[0], append(program[1:], address)...).Start()
	}
}

// maxSecretBytes is far more than an address with a password takes.
const maxSecretBytes = 64 << 10

// secretFiles reads settings that hold a secret (the tag secret) from the file that their
// variable with _FILE names. Containers and systemd hand secrets over as files, which other
// users and child processes cannot see.
func secretFiles() kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !flag.Tag.Has("secret") || len(flag.Envs) == 0 {
			return nil, nil
		}
		variable := flag.Envs[0]
		path := os.Getenv(variable + "_FILE")
		if path == "" {
			return nil, nil
		}
		if os.Getenv(variable) != "" {
			return nil, fmt.Errorf("%[1]s and %[1]s_FILE are both set: unset one of them", variable)
		}
		text, err := readSecret(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s_FILE: %w", variable, err)
		}
		return text, nil
	})
}

// readSecret returns what a file holds, without the line's end.
func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSecretBytes+1))
	switch value := strings.TrimRight(string(text), "\r\n"); {
	case err != nil:
		return "", err
	case value == "":
		return "", fmt.Errorf("%s is empty: write the value into it", path)
	case len(text) > maxSecretBytes, strings.ContainsAny(value, "\r\n\x00"):
		return "", fmt.Errorf("%s must hold the value alone, in one line", path)
	default:
		return value, nil
	}
}

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

func (c *mcpCommand) address() (string, error) {
	address, err := client.ParseAddress(c.URL)
	if err != nil {
		err = errors.New("MUSTER_URL must be the service's http:// or https:// address, without user or query")
	}
	return address, err
}

// Run carries messages until standard input ends.
func (c *mcpCommand) Run(env *cli.Env) error {
	warn := func(text string) { fmt.Fprintf(env.Err, "muster mcp: %s\n", text) }
	address, err := c.address()
	if err != nil {
		return err
	}
	if client.Unprotected(address) {
		warn("the API key travels unprotected over http://: use https:// beyond this machine")
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	return (&bridge.Bridge{Endpoint: strings.TrimSuffix(address, mcp.Path) + mcp.Path, Key: key, Warn: warn}).Run(env.Context,
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
