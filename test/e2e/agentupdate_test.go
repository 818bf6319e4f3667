package e2e_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/release"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/executable"
	"github.com/musterhq/muster/test/poll"
)

// signer signs releases of the Go agent.
type signer struct {
	public ed25519.PublicKey
	key    ed25519.PrivateKey
}

// agentProgram builds the agent with a code and the signer's key.
func (s signer) agentProgram(t *testing.T, code int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "muster-agent")
	flags := "-X main.version=v" + strconv.Itoa(code) + " -X main.code=" + strconv.Itoa(code) + " -X main.releaseKey=" +
		release.KeyText(s.public)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", flags, "-o", path, "../../cmd/muster-agent").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (s signer) sign(t *testing.T, program []byte, code int) []byte {
	t.Helper()
	file, err := release.Sign(program, release.Statement{Package: runtime.GOOS + "-" + runtime.GOARCH, Version: "v" + strconv.Itoa(code),
		Code: int64(code)}, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A release that is added, also once more, says when it was added first.
func TestAgentRelease_SaysWhenItWasAdded(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	env.Start()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	path, added := filepath.Join(t.TempDir(), "agent"), env.Now()
	if err := os.WriteFile(path, signer{public, key}.sign(t, []byte("a program"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		text, err := runCommand(t, env, &cli.AgentRelease{File: path,
			Common: cli.Common{Store: config.Store{Database: env.Database}, Output: "json"}})
		var got struct{ AddedAt time.Time }
		if err == nil {
			err = json.Unmarshal([]byte(text), &got)
		}
		if err != nil || got.AddedAt.Sub(added).Abs() > time.Minute {
			t.Errorf("added at %s, want about %s: %v", got.AddedAt, added, err)
		}
		env.Advance(time.Hour)
	}
}

// The Go agent replaces itself while it runs, in one process, and goes back from a version
// that ends before it is in touch. The file of the program is never one that had no contact.
func TestAgent_ReplacesItself(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds two programs")
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := signer{public, key}
	env := servertest.New(t)
	tenant := env.NewAgentSite("acme", "CAMERA=BLOCK")
	client := tenant.Client(env.Start(), access.All)
	token, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
	dir := t.TempDir()
	installed, state := filepath.Join(dir, "muster-agent"), filepath.Join(dir, "state")
	executable.Write(t, installed, by.agentProgram(t, 1))
	out, err := exec.CommandContext(t.Context(), installed, "enroll", "--state", state, "--server", server, "--token",
		token).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id := enrolledAs(string(out))
	agent := exec.CommandContext(t.Context(), installed, "run", "--state", state)
	var stderr bytes.Buffer
	agent.Stderr = &stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = agent.Process.Kill(), agent.Wait(); t.Logf("%s", stderr.String()) })
	await := func(what string, true func() bool) {
		t.Helper()
		poll.Until(t, what, func() error {
			if !true() {
				return errors.New("not yet")
			}
			return nil
		})
	}
	knows := func(code int64) func() bool {
		return func() bool {
			d, err := tenant.DB().AgentDevice(t.Context(), id)
			return err == nil && d.Build.Code == code
		}
	}
	await("the first version", knows(1))
	bring := func(file []byte) {
		t.Helper()
		r, err := rollout.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		rollOutAs(t, tenant.DB(), r, file)
		if err := agent.Process.Signal(syscall.SIGUSR1); err != nil { // as an order wakes it
			t.Fatal(err)
		}
	}
	second := by.sign(t, by.agentProgram(t, 2), 2)
	bring(second)
	await("the second version", func() bool { return outcomeOf(t, tenant.DB(), "v2", id).Outcome == rollout.Installed && knows(2)() })
	await("the second version takes the program's place", func() bool {
		content, err := os.ReadFile(installed)
		return err == nil && bytes.Equal(content, second)
	})
	await("it runs", func() bool {
		text, err := os.ReadFile(filepath.Join(state, "running"))
		return err == nil && string(bytes.TrimSpace(text)) == strconv.Itoa(agent.Process.Pid)
	})
	bring(by.sign(t, []byte("#!/bin/sh\nexit 1\n"), 3))
	await("it goes back", func() bool { return outcomeOf(t, tenant.DB(), "v3", id).Outcome == rollout.WentBack })
	if content, err := os.ReadFile(installed); err != nil || !bytes.Equal(content, second) {
		t.Errorf("the program is not the second version: %d bytes, %v", len(content), err)
	}
}
