package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
)

var (
	upgradeFrom = flag.String("upgrade-from", "", "a built muster of before; with it, TestProxies_RollingUpgradeLosesNoRequest runs")
	upgradeTo   = flag.String("upgrade-to", "", "the muster that replaces it")
)

// Behind each documented proxy, replicas of an older program are replaced one after the
// other by those of a newer one, and every request of clients that send nothing twice is
// answered, and every command has its event. make prove builds the programs.
func TestProxies_RollingUpgradeLosesNoRequest(t *testing.T) {
	t.Parallel()
	if *upgradeFrom == "" {
		t.Skip("it needs an older program: make prove")
	}
	for name, example := range proxyExamples() {
		t.Run(name, func(t *testing.T) {
			program, env, ports := example.need.Of(t), servertest.NewPostgres(t), reservePorts(t, 3)
			settings := env.Config()
			start := func(i, n int) func() {
				muster := *upgradeTo
				if n < 2 {
					muster = *upgradeFrom
				}
				replica := exec.CommandContext(t.Context(), muster, "serve")
				replica.Dir, replica.Stdout, replica.Stderr = t.TempDir(), env.Log, env.Log
				replica.Env = append(os.Environ(), "MUSTER_DATABASE="+settings.Database,
					"MUSTER_PLATFORM_ENDPOINT="+settings.PlatformEndpoint,
					"MUSTER_KEY_FILE="+settings.KeyFile, "MUSTER_READS_PER_MINUTE=1000000000", "MUSTER_DRAIN_DELAY="+example.drain.String(),
					fmt.Sprintf("MUSTER_LISTEN=127.0.0.1:%d", ports[i]), fmt.Sprintf("MUSTER_PUBLIC_URL=http://127.0.0.1:%d", ports[2]),
					"MUSTER_TRUSTED_PROXIES=127.0.0.0/8")
				if err := replica.Start(); err != nil {
					t.Fatal(err)
				}
				env.Eventually(filepath.Base(muster)+" serves", func() error {
					_, err := servertest.Client{TB: t, URL: fmt.Sprintf("http://127.0.0.1:%d", ports[i])}.Try("GET", "/openapi.json", nil)
					return err
				})
				return func() {
					_ = replica.Process.Signal(syscall.SIGTERM)
					if err := replica.Wait(); err != nil {
						t.Errorf("the service ended with %v", err)
					}
				}
			}
			example.roll(t, env, program, ports, start)
		})
	}
}
