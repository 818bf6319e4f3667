package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/needs"
)

const alerts = "../../docs/monitoring"

// Every metric that an alert names exists in a process that has just started.
func TestAlerts_NameMetricsThatExist(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(filepath.Join(alerts, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, _ := selfSigned(t, "muster.test")
	replica := servertest.New(t).Start(func(c *config.Service, _ *service.Options) {
		c.TLSCert, c.TLSKey, c.MetricsListen = certFile, keyFile, "127.0.0.1:0"
	})
	_, metrics := servertest.Fetch(t, replica.MetricsURL()+"/metrics")
	named := regexp.MustCompile(`\b(muster|process)_[a-z_]+`).FindAllString(string(rules), -1)
	if len(named) < 8 {
		t.Fatalf("the alerts name %q; want more", named)
	}
	for _, name := range named {
		family := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		if !strings.Contains(metrics, "# TYPE "+family+" ") && !labeledByUse(family) {
			t.Errorf("no metric %s", name)
		}
	}
}

// labeledByUse are families that have no series before they are used: an alert
// on them compares rates, it does not wait for a first event.
func labeledByUse(family string) bool { return family == "muster_http_request_duration_seconds" }

// The alerts fire when they should, by Prometheus's own test runner.
func TestAlerts_Fire(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), needs.Promtool().Of(t), "test", "rules", "alerts_test.yml")
	command.Dir = alerts
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
