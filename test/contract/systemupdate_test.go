package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
)

// The operator sets systemUpdate on AGENT policies from a file, and removes it; PLATFORM
// policies, and what Android would refuse, are refused.
func TestSystemUpdate_OnTheCommandLine(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant := env.NewTenant("acme")
		kiosk := env.AgentPolicy(tenant.Company, "Kiosk", "CAMERA=BLOCK")
		file := filepath.Join(t.TempDir(), "update.json")
		set := func(policyID, text string) error {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return env.TryCLI(new(any), "policy", "set", policyID, "--company", "acme", "--system-update", file)
		}
		document := func() string {
			t.Helper()
			var shown struct{ Document json.RawMessage }
			env.CLI(&shown, "policy", "show", kiosk.ID, "--company", "acme")
			return string(shown.Document)
		}
		if err := set(kiosk.ID, `{"type":"POSTPONE"}`); err != nil || !strings.Contains(document(), `"POSTPONE"`) ||
			!strings.Contains(document(), `"CAMERA"`) {
			t.Errorf("set: %v: %s", err, document())
		}
		for _, wrong := range []string{`{"type":"LATER"}`, `{"type":"POSTPONE","extra":1}`, `not JSON`, ``, `{"type":"WINDOWED"}`} {
			if err := set(kiosk.ID, wrong); err == nil || !strings.Contains(document(), `"POSTPONE"`) {
				t.Errorf("%q: %v: %s", wrong, err, document())
			}
		}
		if err := set(tenant.Policy.ID, `{"type":"POSTPONE"}`); err == nil || !strings.Contains(err.Error(), "only AGENT policies") {
			t.Errorf("a PLATFORM policy: %v", err)
		}
		if err := set(kiosk.ID, `{}`); err != nil || strings.Contains(document(), "systemUpdate") {
			t.Errorf("removed: %v: %s", err, document())
		}
	})
}
