package e2e_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/poll"
)

// The app's core comes back as its asset after it lost its key, or its identity, once a
// person has confirmed that. Nothing on the device changes, and it obeys no other service.
func TestAndroidCore_ComesBack(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		p := newJavaPhone(t)
		tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
		client := tenant.Client(replica, access.All)
		p.enroll(tenant, client, "")
		before := maps.Clone(p.device().Settings)
		for name, lose := range map[string]func() error{
			"identity": func() error {
				return os.WriteFile(filepath.Join(p.state, "identity.json"), []byte(`{"server":`), 0o600)
			},
			"key": func() error {
				keys, err := filepath.Glob(filepath.Join(p.state, "*.key"))
				for _, key := range keys {
					err = os.Remove(key)
				}
				return err
			},
		} {
			if err := lose(); err != nil {
				t.Fatal(err)
			}
			if out, err := p.try("run", "--once"); err == nil || !strings.Contains(out, "lost its") {
				t.Errorf("without its %s it said %q, %v", name, out, err)
			}
			// Another service, which has no such device, would take it.
			other := servertest.New(t)
			stranger, otherReplica := other.NewAgentSite("evil"), other.Start()
			if out, err := p.try("enroll", "--bundle",
				bundle(t, stranger.Client(otherReplica, access.All).QRCode(stranger.Policy, map[string]any{}))); err == nil {
				t.Fatalf("without its %s it obeys another service: %s", name, out)
			}
			asks := p.command([]string{"-Dmuster.ask=50"}, "enroll", "--bundle", bundle(t, client.QRCode(tenant.Policy, map[string]any{})))
			var output bytes.Buffer
			asks.Stdout, asks.Stderr = &output, &output
			if err := asks.Start(); err != nil {
				t.Fatal(err)
			}
			poll.Until(t, "the device asks", func() error {
				waiting, err := tenant.DB().EnrollmentRequests(t.Context(), tenant.Company.ID, p.assetID)
				if err == nil && len(waiting) != 1 {
					err = fmt.Errorf("%d devices ask", len(waiting))
				}
				if err != nil {
					return err
				}
				return tenant.DB().ConfirmRequest(t.Context(), tenant.Company.ID, waiting[0].ID,
					access.Replacement{MayDestroy: true, Named: true})
			})
			if err := asks.Wait(); err != nil {
				t.Fatalf("without its %s: %v: %s", name, err, &output)
			}
			if got := p.device().Settings; !maps.Equal(got, before) {
				t.Errorf("without its %s the device has %v, want %v", name, got, before)
			}
			p.must("run", "--once")
			if d, err := tenant.DB().AgentDevice(t.Context(), enrolledAs(output.String())); err != nil || d.AssetID != p.assetID {
				t.Errorf("without its %s it came back as asset %q, %v", name, d.AssetID, err)
			}
		}
	})
}
