package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/spec"
)

// bundle writes the text of a code into a file, as the USB tool hands it over.
func bundle(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A device that is enrolled, with a new code: its former key proves which asset it
// is, so that it does not become a second one. Without that it refuses.
func TestAndroidCore_EnrollsAgain(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		client := tenant.Client(replica, access.All)
		p.enroll(tenant, client, "")
		p.must("rotate") // the present key has another name now
		file := bundle(t, client.QRCode(tenant.Policy, map[string]any{}))
		if out, err := p.try("enroll", "--bundle", file); err == nil || !strings.Contains(out, "enrolled already") {
			t.Errorf("without --again it said %q, %v", out, err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("the bundle was read and is still there")
		}
		out := p.must("enroll", "--again", "--bundle", bundle(t, client.QRCode(tenant.Policy, map[string]any{})))
		p.must("run", "--once")
		id := enrolledAs(out)
		d, err := tenant.DB().AgentDevice(t.Context(), id)
		if err != nil || d.AssetID != p.assetID {
			t.Errorf("it is asset %q now, %v, want %q", d.AssetID, err, p.assetID)
		}
		client.Post("/assets/"+p.assetID+"/commands/message", spec.CommandOf("message").Request()).Want(t, 200)
		p.must("run", "--once")
		tenant.Settled(client, p.assetID, "SUCCESS")
	})
}

// To block LOCATION_SHARING switches location off on Android: it is refused where
// LOCATION_MODE is ENFORCED, and the rest of the policy holds.
func TestAndroidCore_RefusesContradiction(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	p := newJavaPhone(t)
	tenant, replica := env.NewAgentSite("acme", "LOCATION_MODE=ENFORCED", "LOCATION_SHARING=BLOCK", "CAMERA=BLOCK"), env.Start()
	p.enroll(tenant, tenant.Client(replica, access.All), "")
	got := p.device().Settings
	if got["LOCATION_SHARING"] != "" || got["LOCATION_MODE"] != "ENFORCED" || got["CAMERA"] != "BLOCK" {
		t.Errorf("the device's settings are %v", got)
	}
	var applied struct {
		Settings []struct{ ID, State string }
	}
	readJSON(t, filepath.Join(p.state, "applied.json"), &applied)
	for _, s := range applied.Settings {
		if refused := s.State == "unsupported"; refused != (s.ID == "LOCATION_SHARING") {
			t.Errorf("%s is %s", s.ID, s.State)
		}
	}
}

// Every setting with every value, by policies of the service: the app's core and the
// Go agent on a device owner come to the same reports and the same device.
func TestAndroidCore_EverySetting(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme"), env.Start()
		client := tenant.Client(replica, access.All)
		p.enroll(tenant, client, "")
		peer := tenant.AgentDevice(replica, func(s *simulated.State) { s.Form = simulated.Owner })
		peer.MustCheckIn()
		rounds := 0
		for _, s := range policy.Catalog() {
			rounds = max(rounds, len(s.Allowed))
		}
		for i := range rounds + 1 {
			var sets []string
			for _, s := range policy.Catalog() {
				if i < rounds { // the last policy has none, and takes all back
					sets = append(sets, s.ID+"="+s.Allowed[i%len(s.Allowed)])
				}
			}
			to := map[string]string{"policyId": env.AgentPolicy(tenant.Company, fmt.Sprintf("Round %d", i), sets...).PathName()}
			client = tenant.Client(replica, access.All)
			for _, id := range []string{p.assetID, peer.AssetID} {
				client.Post("/assets/"+id+"/commands/change-policy", to).Want(t, 200)
			}
			p.must("run", "--once")
			peer.MustCheckIn()
			tenant.Settled(client, p.assetID, "SUCCESS")
			tenant.Settled(client, peer.AssetID, "SUCCESS")
			var got, want struct {
				Settings []protocol.SettingReport
			}
			readJSON(t, filepath.Join(p.state, "applied.json"), &got)
			readJSON(t, filepath.Join(peer.Options.Dir, "applied.json"), &want)
			if len(got.Settings) != len(sets) || !slices.Equal(got.Settings, want.Settings) {
				t.Errorf("round %d: the app's core reports %+v, the Go agent %+v", i, got.Settings, want.Settings)
			}
			if here, there := p.device().Settings, peer.Device.State().Settings; !maps.Equal(here, there) {
				t.Errorf("round %d: the device of the app's core has %v, that of the Go agent %v", i, here, there)
			}
		}
	})
}

// After its record of the policy was damaged, the agent takes back everything that
// there is, as it no longer knows what it had set.
func TestAndroidCore_ReleasesAllAfterDamage(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	p := newJavaPhone(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK", "SMS=BLOCK"), env.Start()
	client := tenant.Client(replica, access.All)
	p.enroll(tenant, client, "")
	record := filepath.Join(p.state, "applied.json")
	if err := os.WriteFile(record, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.must("unenroll")
	if s := p.device(); !s.Released || len(s.Settings) != 0 {
		t.Errorf("the device is %+v", s)
	}
}

// full is the agent on a device whose storage is full: no file can grow.
func (p *javaPhone) full(args ...string) (string, error) {
	run := p.command([]string{"-XX:-UsePerfData"}, args...)
	run.Args = append([]string{"sh", "-c", `ulimit -f 0; exec "$0" "$@"`}, run.Args...)
	sh, err := exec.LookPath("sh")
	if err != nil {
		p.t.Fatal(err)
	}
	run.Path = sh
	out, err := run.CombinedOutput()
	return string(out), err
}

// With full storage nothing is begun that could not be remembered; once there is
// room, each command takes effect, and once.
func TestAndroidCore_StorageFull(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	p := newJavaPhone(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
	client := tenant.Client(replica, access.All)
	p.enroll(tenant, client, "")
	client.Post("/assets/"+p.assetID+"/commands/message", spec.CommandOf("message").Request()).Want(t, 200)
	for range 2 {
		if out, err := p.full("run", "--once"); err == nil {
			t.Errorf("with full storage it said %q", out)
		}
	}
	if n := len(p.device().Shown); n != 0 {
		t.Errorf("%d messages were shown that it could not remember", n)
	}
	env.Advance(2 * time.Minute) // what was offered is offered again
	p.must("run", "--once")
	tenant.Settled(client, p.assetID, "SUCCESS")
	if n := len(p.device().Shown); n != 1 {
		t.Errorf("%d messages were shown", n)
	}
}

// A key that changes while the device is being erased is no way out of that, and a
// wipe that comes while the key changes does not lose it.
func TestAndroidCore_RotatesDuringAWipe(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		for _, step := range []string{"before received", "before started", "after started", "before done"} {
			p := newJavaPhone(t)
			client := tenant.Client(replica, access.All)
			p.enroll(tenant, client, "")
			client.Post("/assets/"+p.assetID+"/commands/wipe", nil).Want(t, 200)
			p.dies(step)
			p.must("rotate")
			env.Advance(2 * time.Minute)
			p.must("run", "--once")
			tenant.FallSilent()
			servertest.AwaitStatus(t, tenant, client, p.assetID, "DELETED")
			if !p.device().Wiped {
				t.Errorf("died %q, then changed its key: it is not wiped", step)
			}
			if out, err := p.try("status"); err == nil {
				t.Errorf("died %q: it still has an identity: %s", step, out)
			}
		}
	})
}
