package e2e_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/test/port"
)

// The doctor finds what would stop people and devices from reaching the service,
// and what the platform would refuse.
func TestDoctor_FindsWhatCannotWork(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	running := env.Start()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	stranger := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	certFile, keyFile, _ := selfSigned(t, "muster.test")
	find := func(change func(*config.Service)) []ops.Finding {
		settings := env.Config()
		change(&settings)
		return ops.Diagnose(t.Context(), settings, env.Now)
	}
	want := func(title string, status ops.Severity, check, says string, findings []ops.Finding) {
		t.Helper()
		if !slices.ContainsFunc(findings, func(f ops.Finding) bool {
			return f.Check == check && f.Status == status && strings.Contains(f.Detail, says) && (f.Remedy != "" || status == ops.Fine)
		}) {
			t.Errorf("%s: no %s of %q that says %q in %+v", title, status, check, says, findings)
		}
	}
	want("served already", ops.Fine, "listen address", "a Muster service is running",
		find(func(c *config.Service) { c.Listen = running.Addr().String() }))
	want("port taken", ops.Failed, "listen address", "another program listens",
		find(func(c *config.Service) { c.Listen = stranger.Listener.Addr().String() }))
	want("public URL", ops.Fine, "public URL", "a Muster service answers",
		find(func(c *config.Service) { c.PublicURL = running.PublicURL() }))
	want("someone else's URL", ops.Failed, "public URL", "is not Muster", find(func(c *config.Service) { c.PublicURL = stranger.URL }))
	private := port.Address(t)
	env.Start(func(c *config.Service, _ *service.Options) { c.MetricsListen = private })
	want("metrics served already", ops.Fine, "metrics address", "a Muster service is running",
		find(func(c *config.Service) { c.MetricsListen = private }))
	want("metrics port taken", ops.Failed, "metrics address", "another program listens",
		find(func(c *config.Service) { c.MetricsListen = stranger.Listener.Addr().String() }))
	want("metrics address", ops.Failed, "settings", "MUSTER_METRICS_LISTEN", find(func(c *config.Service) { c.MetricsListen = "9090" }))
	want("another host's certificate", ops.Warning, "TLS certificate", "other.test", find(func(c *config.Service) {
		c.TLSCert, c.TLSKey, c.PublicURL = certFile, keyFile, "https://other.test"
	}))
	want("credentials taken", ops.Fine, "platform", "takes our credentials", find(func(*config.Service) {}))
	env.Fault(emulator.Fault{Method: "list", Status: 403, Reason: "PERMISSION_DENIED", Times: 1})
	want("credentials refused", ops.Failed, "platform", "", find(func(*config.Service) {}))
	findings := find(func(c *config.Service) {
		c.Listen, c.PublicURL, c.TLSCert = "nowhere", "https://m.example/path", certFile
	})
	for _, says := range []string{"MUSTER_LISTEN", "must have no path", "belong together"} {
		want("everything at once", ops.Failed, "settings", says, findings)
	}
	if !slices.ContainsFunc(findings, func(f ops.Finding) bool { return f.Check == "platform" }) {
		t.Error("a wrong setting keeps the doctor from looking at the rest")
	}
}
