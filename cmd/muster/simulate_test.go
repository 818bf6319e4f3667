package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/fleetsim"
	"github.com/musterhq/muster/internal/surface/cli"
)

// API keys come from flags, from the variable and from a file or standard input.
func TestSimulate_KeysFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("k1\n\n  k2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := &cli.Env{Context: t.Context(), In: strings.NewReader("k3\n")}
	for path, want := range map[string][]string{"": {"k0"}, file: {"k0", "k1", "k2"}, "-": {"k0", "k3"}} {
		t.Run(path, func(t *testing.T) {
			var o fleetsim.Options
			c := simulateCommand{Server: "http://127.0.0.1:1", Keys: []string{"k0"}, KeyFile: path}
			if err := c.existing(env, &o); err != nil || !slices.Equal(o.Keys, want) {
				t.Errorf("--api-key-file %q: %v, %v; want %v", path, o.Keys, err, want)
			}
		})
	}
	for agents, want := range map[int]string{1: "a", 3: "aba"} {
		var o fleetsim.Options
		c := simulateCommand{Agents: &agents, Server: "http://127.0.0.1:1", Token: []string{"a", "b"}}
		if err := c.existing(env, &o); err != nil || strings.Join(o.Tokens, "") != want {
			t.Errorf("%d agents with two tokens: %v, %v; want %s", agents, o.Tokens, err, want)
		}
	}
	both := simulateCommand{Tokens: "-", KeyFile: "-"}
	if err := both.existing(env, &fleetsim.Options{}); err == nil {
		t.Error("tokens and keys were both read from standard input")
	}
}

// Too many agents for the limit of open files are refused before anything starts.
func TestSimulate_EnoughFiles(t *testing.T) {
	t.Parallel()
	if err := enoughFiles(9000, 20_000); err != nil {
		t.Errorf("9,000 agents with 20,000 files: %v", err)
	}
	err := enoughFiles(10_000, 20_000)
	if err == nil || !strings.Contains(err.Error(), "at most 9700 agents") {
		t.Errorf("10,000 agents with 20,000 files: %v, want a refusal that says how many would do", err)
	}
}
