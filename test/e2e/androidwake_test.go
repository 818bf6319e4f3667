package e2e_test

import (
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// start starts the agent, which keeps in touch until it is ended.
func (p *javaPhone) start() *exec.Cmd {
	p.t.Helper()
	running := p.command(nil, "run")
	running.Stderr = os.Stderr
	if err := running.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = running.Process.Kill() })
	return running
}

// An agent that keeps running hears of commands by its wake stream, long before its
// next check-in; also after the stream broke. What another process asks of it, it
// does itself, and it ends with its enrollment.
func TestAndroidCore_WakeStream(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		client := tenant.Client(replica, access.All)
		to, err := url.Parse("http://" + replica.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
		t.Cleanup(front.Close)
		p.enroll(tenant, client, front.URL)
		running := p.start()
		carriesOut := func(path string) {
			t.Helper()
			client.Post("/assets/"+p.assetID+"/commands/"+path, spec.CommandOf(path).Request()).Want(t, 200)
			tenant.Settled(client, p.assetID, "SUCCESS")
		}
		carriesOut("message")
		carriesOut("reboot")
		front.CloseClientConnections()
		carriesOut("location-update")
		if out, err := p.try("run"); err == nil || !strings.Contains(out, "another muster-agent") {
			t.Errorf("a second agent said %q, %v", out, err)
		}
		before, err := tenant.DB().AgentDevice(t.Context(), p.deviceID)
		if err != nil {
			t.Fatal(err)
		}
		p.must("rotate")
		env.Eventually("the device has a new key", func() error {
			if now, err := tenant.DB().AgentDevice(t.Context(), p.deviceID); err != nil || now.Key == before.Key {
				return fmt.Errorf("it is the same (%v)", err) //nolint:errorlint // it may be nil
			}
			return nil
		})
		carriesOut("launch-app")
		p.must("unenroll")
		if err := running.Wait(); err != nil {
			t.Errorf("after unenrolling the agent ended with %v", err)
		}
		servertest.AwaitStatus(t, tenant, client, p.assetID, "DELETED")
	})
}
