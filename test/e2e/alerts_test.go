package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
		if !strings.Contains(metrics, "# TYPE "+family+" ") {
			t.Errorf("no metric %s", name)
		}
	}
	for _, series := range []string{
		`muster_http_request_duration_seconds_count{operation="list_assets",status="500"} 0`,
		`muster_http_request_duration_seconds_count{operation="none",status="503"} 0`,
		`muster_notifications_total{kind="ENROLLMENT",outcome="foreign"} 0`,
	} {
		if !strings.Contains(metrics, series+"\n") {
			t.Errorf("a process that has just started has no %s", series)
		}
	}
	documentedLabels(t, metrics)
	documentedStatuses(t, metrics)
}

// documentedStatuses expects, at 0, the series of every answer that the OpenAPI document
// names, so that an alert on one of them includes the first.
func documentedStatuses(t *testing.T, metrics string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	body, err := os.ReadFile("../contract/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatal(err)
	}
	answers := 0
	for _, methods := range document.Paths {
		for _, raw := range methods {
			var o struct {
				OperationID string                     `json:"operationId"`
				Responses   map[string]json.RawMessage `json:"responses"`
			}
			if json.Unmarshal(raw, &o) != nil || o.OperationID == "" {
				continue // what all methods of a path share
			}
			for status := range o.Responses {
				answers++
				if series := fmt.Sprintf("muster_http_request_duration_seconds_count{operation=%q,status=%q} 0\n", o.OperationID,
					status); !strings.Contains(metrics, series) {
					t.Errorf("no series %s", strings.TrimSpace(series))
				}
			}
		}
	}
	if answers < 100 {
		t.Errorf("the OpenAPI document names %d answers; want more", answers)
	}
	if most := 2 << 20; len(metrics) > most {
		t.Errorf("the metrics of a service that was not asked have %d bytes, want at most %d", len(metrics), most)
	}
	t.Logf("%d answers, %d bytes", answers, len(metrics))
}

// documentedLabels compares the labels of every metric with those that
// docs/operating.md lists.
func documentedLabels(t *testing.T, metrics string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`muster_[^|]*) \\|([^|]*)\\|$").FindAllStringSubmatch(string(text), -1) {
		labels, _, _ := strings.Cut(row[2], ";")
		labels = strings.Replace(labels, "none", "", 1)
		for _, name := range regexp.MustCompile("`(muster_[a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			documented[name[1]] = strings.ReplaceAll(strings.TrimSpace(labels), " ", "")
		}
	}
	for _, family := range regexp.MustCompile(`(?m)^# TYPE (muster_[a-z_]+) `).FindAllStringSubmatch(metrics, -1) {
		want, ok := documented[family[1]]
		if !ok {
			t.Errorf("docs/operating.md does not list %s", family[1])
			continue
		}
		series := regexp.MustCompile(`(?m)^` + family[1] + `(?:_count)?(?:\{([^}]*)\})? `).FindStringSubmatch(metrics)
		if series == nil {
			continue // labeled by use
		}
		var labels []string
		for _, label := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(series[1], -1) {
			labels = append(labels, label[1])
		}
		sorted := strings.Split(want, ",")
		slices.Sort(sorted)
		slices.Sort(labels)
		if got := strings.Join(labels, ","); got != strings.Join(sorted, ",") {
			t.Errorf("the labels of %s are %q, and docs/operating.md says %q", family[1], got, want)
		}
	}
}

// The alerts fire when they should, by Prometheus's own test runner.
func TestAlerts_Fire(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), needs.Promtool().Of(t), "test", "rules", "alerts_test.yml")
	command.Dir = alerts
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
