package conformance_test

import (
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/resource"
)

// Both generations of the TypeScript client list, call, read an image and an
// error, sign a person in, step up, and carry out a reviewed change of policy.
func TestMCP_TypeScriptClients(t *testing.T) {
	t.Parallel()
	program, err := os.Executable() // TestMain makes it the bridge
	if err != nil {
		t.Fatal(err)
	}
	for script, steps := range map[string]int{"v1.mjs": 13, "v2.mjs": 12} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			code, out := node(t, nil, []string{
				"MCP_URL=" + w.endpoint(), "API_KEY=" + w.Key(w.Company, access.All),
				"READING_KEY=" + w.Key(w.Company, access.DevicesRead|access.PoliciesRead), "BRIDGE=" + program,
				"BROWSER=" + w.browser().serve(t),
				"POLICY_ID=" + w.Policy.PathName(), "POLICY_NAME=" + w.Policy.Name, "ASSET_ID=" + w.assetName(),
			}, script)
			if done := strings.Count(out, "ok "); code != 0 || done != steps {
				t.Errorf("exit %d after %d of %d steps:\n%s", code, done, steps, out)
			}
		})
	}
}

// assetName is the device's asset as the API calls it.
func (w *world) assetName() string {
	return resource.Of(w.Company.Slug, resource.Assets, w.device.AssetID)
}
