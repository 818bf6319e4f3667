package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// killAt makes this test program a service instead, which kills itself with
// SIGKILL at the named step of a command's life.
const killAt = "MUSTER_TEST_KILL_AT"

func TestMain(m *testing.M) {
	if step, child := os.LookupEnv(killAt); child {
		os.Exit(serveUntilKilled(step))
	}
	if as, child := os.LookupEnv(loadAs); child {
		os.Exit(serveLoad(as))
	}
	_ = os.Unsetenv("GOGC") // scripts/test.sh sets it for tests; what they start collects as it does for users
	os.Exit(m.Run())
}

func serveUntilKilled(step string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := service.New(ctx, config.Service{
		Store:    config.Store{Database: os.Getenv("MUSTER_DATABASE")},
		Platform: config.Platform{PlatformEndpoint: os.Getenv("MUSTER_PLATFORM_ENDPOINT")},
		KeyFile:  os.Getenv("MUSTER_KEY_FILE"), Listen: os.Getenv("MUSTER_LISTEN"),
	}, service.Options{Now: time.Now, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Crash: func(at string) {
		if at == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.PublicURL())
	if err := s.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A real process, killed with SIGKILL at every step of a command's life.
func TestCommand_ProcessKilled(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, first := env.NewTenant("acme"), env.Start()
		devices := tenant.Devices(first, servertest.FullyManaged(), len(steps()))
		first.Stop()
		keys := make([]string, len(devices))
		for i, s := range steps() {
			keys[i] = env.Key(tenant.Company, access.All)
			process, url := startProcess(t, env, s.name)
			client := servertest.Client{TB: t, URL: url, Key: keys[i]}
			if answer, err := client.Try("POST", servertest.LockPath(devices[i]), nil, "Idempotency-Key", s.key()); err == nil {
				t.Errorf("%s: the request was answered %d: %s", s.name, answer.Status, answer.Body)
				_ = process.Process.Signal(syscall.SIGTERM) // it will not kill itself any more
			}
			if err := process.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Errorf("%s: the process ended with %v, want a kill", s.name, err)
			}
		}
		env.Advance(sweeping)
		second := env.Start()
		for i, s := range steps() {
			checkAfterwards(t, tenant, second.As(keys[i]), devices[i], s)
		}
	})
}

// startProcess starts this test program as a service and returns its address.
func startProcess(t *testing.T, env *servertest.Env, step string) (*exec.Cmd, string) {
	t.Helper()
	process, address := launch(t, env, env.Config(), step)
	return process, address()
}

// launch starts this test program as a service; address waits until it serves.
func launch(t *testing.T, env *servertest.Env, settings config.Service, step string) (process *exec.Cmd, address func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process = exec.CommandContext(t.Context(), self)
	process.Env = append(os.Environ(), killAt+"="+step, "MUSTER_DATABASE="+settings.Database,
		"MUSTER_PLATFORM_ENDPOINT="+settings.PlatformEndpoint, "MUSTER_KEY_FILE="+settings.KeyFile, "MUSTER_LISTEN="+settings.Listen)
	process.Stderr = env.Log
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process, func() string {
		t.Helper()
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatalf("the service did not start: %v", err)
		}
		return strings.TrimSpace(line)
	}
}
