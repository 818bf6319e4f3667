package e2e_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/servertest"
)

// A superseded device becomes its asset again with a token that was made for that, also if
// the answer to a change of its key was lost, and an asset of its own with a policy's code.
func TestAndroidCore_SupersededEnrollsAgain(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p, other := newJavaPhone(t), newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		client := tenant.Client(replica, access.All)
		_, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
		way := &badWay{to: server}
		front := httptest.NewServer(way)
		t.Cleanup(front.Close)
		p.enroll(tenant, client, front.URL)
		enrolls := func(phone *javaPhone, args ...string) (assetID string) {
			t.Helper()
			id := enrolledAs(phone.must(append([]string{"enroll"}, args...)...))
			phone.must("run", "--once")
			d, err := tenant.DB().AgentDevice(t.Context(), id)
			if err != nil || phone.device().Settings["CAMERA"] != "BLOCK" {
				t.Fatalf("the device is %+v, %v", phone.device(), err)
			}
			return d.AssetID
		}
		token := func() string {
			t.Helper()
			text, _, err := agentdevice.AssetTokens{Store: tenant.DB(), Now: env.Now}.Issue(t.Context(), tenant.Company.ID, p.assetID, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		way.set(func(int) bool { return true }, false)
		if out, err := p.try("rotate"); err == nil {
			t.Errorf("the answer to the rotation was lost, and it said %q", out)
		}
		way.set(nil, false)
		if got := enrolls(other, "--server", server, "--token", token()); got != p.assetID {
			t.Fatalf("the other device is asset %q, want %q", got, p.assetID)
		}
		if got := enrolls(p, "--again", "--server", front.URL, "--token", token()); got != p.assetID {
			t.Errorf("with a token of its asset it is %q, want %q", got, p.assetID)
		}
		if out, err := other.try("run", "--once"); err == nil || !strings.Contains(out, "another device has enrolled as this one") {
			t.Errorf("the superseded device said %q, %v", out, err)
		}
		code := bundle(t, client.QRCode(tenant.Policy, map[string]any{}))
		if got := enrolls(other, "--again", "--bundle", code); got == p.assetID {
			t.Error("with a policy's code the superseded device took the place of the one that superseded it")
		}
	})
}
