// Package remote is the command line over the network: commands that call a service over
// REST from any machine, with an API key (docs/command-line.md). They are made from the
// declarations of the operations, one for each.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/wait"
)

// Env is where commands over the network run.
type Env struct {
	*cli.Env
	// ConfigDir is where the user's programs keep settings; empty: nowhere.
	ConfigDir string
	// Host is the computer's name, by which its key is called.
	Host string
	// Open shows an address in the user's browser; nil: it cannot.
	Open func(address string) error
	// Terminal: Err is a terminal, which shows progress.
	Terminal bool
	// Wait waits and reports whether the context still lives; nil: wait.For.
	Wait func(ctx context.Context, d time.Duration) bool
}

func (e *Env) wait(ctx context.Context, d time.Duration) bool {
	if e.Wait != nil {
		return e.Wait(ctx, d)
	}
	return wait.For(ctx, d)
}

// Connection is what every command over the network takes.
type Connection struct {
	URL     string `name:"url" env:"MUSTER_URL" placeholder:"URL" help:"Address of the service. By default the one that you logged in to."`
	KeyFile string `name:"key-file" env:"MUSTER_API_KEY_FILE" type:"path" placeholder:"FILE" help:"File that holds an API key alone. By default the key of muster login."`
	Output  string `name:"output" short:"o" enum:"table,json" default:"table" help:"What to print: a table, or one JSON value."`
}

// open returns a client for the service that is meant.
func (c *Connection) open(env *Env) (*client.Client, error) {
	kept, found, err := readLogin(env.ConfigDir)
	if err != nil && (c.KeyFile == "" || c.URL == "") {
		return nil, err
	}
	address := kept.URL
	if c.URL != "" {
		if address, err = client.ParseAddress(c.URL); err != nil {
			return nil, usage("%v", err)
		}
	}
	key := kept.Key
	switch {
	case address == "":
		return nil, usage("log in first: muster login --url https://muster.example.com; or give --url and --key-file")
	case c.KeyFile != "":
		if key, err = ReadKey(c.KeyFile); err != nil {
			return nil, err
		}
	case !found:
		return nil, usage("log in first: muster login --url %s; or give --key-file", address)
	case address != kept.URL:
		return nil, usage("you are logged in to %s, and its key is for no other service: log in to %s, or give --key-file", kept.URL,
			address)
	}
	warnUnprotected(env, address)
	return client.New(address, key), nil
}

func warnUnprotected(env *Env, address string) {
	if client.Unprotected(address) {
		fmt.Fprintln(env.Err, "muster: the API key travels unprotected over http://: use https:// beyond this machine")
	}
}

// ReadKey reads a file that holds a key alone.
func ReadKey(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the API key: %w", err)
	}
	if key := strings.TrimSpace(string(text)); key != "" && !strings.ContainsAny(key, "\r\n") {
		return key, nil
	}
	return "", fmt.Errorf("%s must hold the API key alone, on one line", path)
}

func usage(format string, args ...any) error {
	return &cli.ExitError{Code: cli.ExitUsage, Text: fmt.Sprintf(format, args...)}
}

// failure gives an error of a call its exit code and its text, in one line without
// characters that a terminal obeys.
func failure(err error) error {
	if _, ok := errors.AsType[*cli.ExitError](err); ok || err == nil {
		return err
	}
	code, text := cli.ExitFailed, err.Error()
	if p, ok := errors.AsType[*client.Problem](err); ok {
		switch p.Status {
		case http.StatusBadRequest:
			code = cli.ExitUsage
		case http.StatusUnauthorized:
			text += ": log in again with muster login"
		}
	}
	return &cli.ExitError{Code: code, Text: plain(text)}
}

// input reads a text from a file; - is standard input. One line break at its end is not
// part of it.
func input(env *Env, path string) (string, error) {
	file, err := env.Input(path)
	if err != nil {
		return "", err
	}
	defer file.Close() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
}

// login is what stays on the computer of a login.
type login struct {
	URL string `json:"url"`
	Key string `json:"key"`
	// Made: muster login made the key, so muster logout revokes it.
	Made    bool      `json:"made"`
	Expires time.Time `json:"expiresAt,omitzero"`
}

// folder is where the command line keeps its files, below the user's settings.
func folder(configDir string) (string, error) {
	if configDir == "" {
		return "", errors.New("the user has no folder for settings: set HOME, or XDG_CONFIG_HOME")
	}
	return filepath.Join(configDir, "muster"), nil
}

func loginPath(configDir string) (string, error) {
	dir, err := folder(configDir)
	return filepath.Join(dir, "login.json"), err
}

// readLogin reads what login kept; false: nothing.
func readLogin(configDir string) (kept login, found bool, err error) {
	path, err := loginPath(configDir)
	if err != nil {
		return login{}, false, nil // where nothing can be kept, nothing is
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return login{}, false, nil
	case err != nil:
		return login{}, false, err
	case !info.Mode().IsRegular():
		return login{}, false, fmt.Errorf("%s must be a file, not a link to one: remove it and log in again", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return login{}, false, fmt.Errorf("others may read %s, which holds an API key: run muster logout, then log in again", path)
	}
	return parseLogin(path)
}

func parseLogin(path string) (kept login, found bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return login{}, false, err
	}
	if err := json.Unmarshal(text, &kept); err != nil || kept.URL == "" || kept.Key == "" {
		return login{}, false, fmt.Errorf("%s is damaged: remove it and log in again", path)
	}
	return kept, true, nil
}

// writeLogin keeps a login: whole or not at all, readable by the user alone. A link in the
// file's place is replaced, never followed.
func writeLogin(configDir string, l login) error {
	path, err := loginPath(configDir)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "login-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return durable.Sync(filepath.Dir(path))
}
