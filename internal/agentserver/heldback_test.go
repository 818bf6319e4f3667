package agentserver_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
)

// A setting that a policy lifted, and that came back because the device was cut off, is reported, and is
// lifted by the next policy.
func TestPolicy_LiftThatCutsOffIsOnRecord(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	now, watching := time.Now(), false
	p.options.Now = func() time.Time { return now }
	client := *agent.NewClient()
	base := client.Transport
	wifi := func() string { return p.device.State().Settings["CONFIGURE_WIFI"] }
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if watching && wifi() == "" {
			return nil, errors.New("no network")
		}
		return base.RoundTrip(r)
	})
	p.options.Client = &client
	p.start()
	to := func(name string, changes ...policy.Change) {
		p.send(command.ChangePolicy, command.PolicyRef(w.newPolicy(name, changes...).ID))
	}
	to("Blocking", policy.Change{Setting: "CONFIGURE_WIFI", Value: "BLOCK"})
	p.mustCheckIn()
	watching = true
	to("Open", policy.Change{Setting: "SMS", Value: "BLOCK"})
	if err := p.checkIn(); err == nil || wifi() != "" {
		t.Fatalf("the policy did not cut the device off: %v", err)
	}
	now = now.Add(6 * time.Minute)
	if err := p.checkIn(); err != nil || wifi() != "BLOCK" {
		t.Fatalf("after five minutes: %v, %v", err, p.device.State().Settings)
	}
	if report := compliance(t, p); len(report.NonComplianceDetails) != 1 ||
		report.NonComplianceDetails[0].SettingName != "CONFIGURE_WIFI" || report.NonComplianceDetails[0].Reason != "rolled_back" {
		t.Errorf("the device reported %+v", report)
	}
	watching = false
	to("Open again", policy.Change{Setting: "SMS", Value: "BLOCK"})
	if p.mustCheckIn(); wifi() != "" {
		t.Errorf("the next policy left %q", wifi())
	}
}

// A log that a proxy refuses holds back neither the policy nor the commands after it.
func TestUploadLog_RefusedByAProxy(t *testing.T) {
	w := newWorld(t)
	p := w.logging("a line\n")
	client := *agent.NewClient()
	base := client.Transport
	client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/log") {
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Request: r,
				Body: io.NopCloser(strings.NewReader("<html>blocked</html>"))}, nil
		}
		return base.RoundTrip(r)
	})
	p.options.Client = &client
	p.start()
	p.send(command.UploadLog, nil)
	if _, err := w.policies.Save(t.Context(), w.company.ID, w.policy.ID, w.policy.Version,
		policy.Edit{Changes: []policy.Change{{Setting: "SMS", Value: "BLOCK"}}},
		policy.Author{Kind: "SYSTEM", ID: "operator", Name: "operator"}); err != nil {
		t.Fatal(err)
	}
	if err := p.checkIn(); err == nil {
		t.Error("the check-in hides that the log was refused")
	}
	if got := p.device.State().Settings["SMS"]; got != "BLOCK" {
		t.Errorf("the policy was held back: SMS is %q", got)
	}
}
