package e2e_test

import (
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/simulated"
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
			text, _, err := agentdevice.AssetTokens{Store: tenant.DB(), Now: env.Now}.
				Issue(t.Context(), tenant.Company.ID, p.assetID, "", nil)
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

// A device that stopped within a policy that is taken back, and that changed only what the
// one before has as well, is brought to the one before again.
func TestAndroidCore_DiesWithinAPolicy(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	p := newJavaPhone(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK", "SMS=BLOCK"), env.Start()
	first, second := tenant.Policy.PathName(), env.AgentPolicy(tenant.Company, "Second", "CAMERA=ALLOW").PathName()
	client := tenant.Client(replica, access.All)
	p.enroll(tenant, client, "")
	peer := tenant.AgentDevice(replica, func(s *simulated.State) { s.Form = simulated.Owner })
	peer.MustCheckIn()
	before := map[string]map[string]string{p.assetID: p.device().Settings, peer.AssetID: peer.Device.State().Settings}
	assign := func(policy string) {
		t.Helper()
		for id := range before {
			client.Post("/assets/"+id+"/commands/change-policy", map[string]string{"policyId": policy}).Want(t, 200)
		}
	}
	assign(second)
	p.dies("before applied")
	if !peer.CrashAt("before applied") {
		t.Fatal("the Go agent did not apply the second policy")
	}
	if here, there := p.device().Settings["CAMERA"], peer.Device.State().Settings["CAMERA"]; here != "ALLOW" || there != "ALLOW" {
		t.Fatalf("CAMERA is %q with the app's core, and %q with the Go agent", here, there)
	}
	assign(first)
	p.must("run", "--once")
	peer.MustCheckIn()
	if got := p.device().Settings; !maps.Equal(got, before[p.assetID]) {
		t.Errorf("with the app's core the device has %v, want %v", got, before[p.assetID])
	}
	if got := peer.Device.State().Settings; !maps.Equal(got, before[peer.AssetID]) {
		t.Errorf("with the Go agent the device has %v, want %v", got, before[peer.AssetID])
	}
}
