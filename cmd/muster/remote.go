package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

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
