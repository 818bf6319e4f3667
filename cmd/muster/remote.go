package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/surface/cli/remote"
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
