package conformance_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/test/port"
)

const inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

// The Inspector's exit codes.
const (
	inspectorOK = 0
	needsAuth   = 3
	toolFailed  = 5
)

// inspect runs the Inspector's command line.
func (w *world) inspect(t *testing.T, see func(string), key string, arguments ...string) (int, string) {
	t.Helper()
	all := []string{inspector, "--cli", w.endpoint(), "--transport", "http", "-q", "--format", "json"}
	if key != "" {
		all = append(all, "--header", "X-API-Key: "+key)
	}
	// It would not print the address to sign in at without a terminal to print to.
	return node(t, see, []string{"MCP_AUTO_OPEN_ENABLED=true", "BROWSER=true"}, append(all, arguments...)...)
}

// The Inspector lists and calls in both eras, writes a QR code's picture, and
// distinguishes errors by their codes.
func TestMCP_Inspector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, reading := w.Key(w.Company, access.All), w.Key(w.Company, access.DevicesRead)
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			code, out := w.inspect(t, nil, key, "--protocol-era", era, "--method", "tools/list", "--strict")
			if code != inspectorOK || strings.Count(out, `"inputSchema"`) != 35 {
				t.Errorf("tools/list: exit %d:\n%s", code, out)
			}
			code, out = w.inspect(t, nil, key, "--protocol-era", era, "--method", "tools/call", "--tool-name", "get_asset", "--tool-arg",
				"assetId="+w.assetName())
			if code != inspectorOK || !strings.Contains(out, w.assetName()) {
				t.Errorf("tools/call: exit %d:\n%s", code, out)
			}
			picture := filepath.Join(t.TempDir(), "code.json")
			code, out = w.inspect(t, nil, key, "--protocol-era", era, "--method", "tools/call", "--tool-name",
				"create_provisioning_qr_code",
				"--tool-arg", "policyId="+w.Policy.PathName(), "--output", picture)
			checkPicture(t, code, out, picture)
			if era == "legacy" {
				return // what follows does not depend on the era
			}
			code, out = w.inspect(t, nil, key, "--protocol-era", era, "--method", "tools/call", "--tool-name", "get_asset",
				"--tool-arg", "assetId=none")
			if code != toolFailed || !strings.Contains(out, "not_found") {
				t.Errorf("an error: exit %d:\n%s", code, out)
			}
			code, out = w.inspect(t, nil, reading, "--protocol-era", era, "--method", "tools/call", "--tool-name", "wipe_device",
				"--tool-arg", "assetId=none")
			if code != toolFailed || !strings.Contains(out, "tool_not_found") {
				t.Errorf("a hidden tool: exit %d:\n%s", code, out)
			}
			code, out = w.inspect(t, nil, "", "--protocol-era", era, "--stored-auth-only", "--method", "tools/list")
			if code != needsAuth || !strings.Contains(out, "auth_required") {
				t.Errorf("no credentials: exit %d:\n%s", code, out)
			}
		})
	}
}

func checkPicture(t *testing.T, code int, out, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if code != inspectorOK || err != nil {
		t.Errorf("the QR code: exit %d, %v:\n%s", code, err, out)
		return
	}
	var result struct {
		Content []struct {
			Type, MimeType string
			Data           []byte
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	last := result.Content[len(result.Content)-1]
	if last.Type != "image" || last.MimeType != "image/png" || !bytes.HasPrefix(last.Data, []byte("\x89PNG")) {
		t.Errorf("the QR code is written as %s", text)
	}
}

// The Inspector signs a person in by itself.
func TestInspector_SignsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	see, done := w.browser().watch(t)
	code, out := w.inspect(t, see, "", "--protocol-era", "modern", "--callback-url", "http://"+port.Address(t)+"/oauth/callback",
		"--method", "tools/call", "--tool-name", "count_assets")
	done()
	if code != inspectorOK || !strings.Contains(out, `\"count\":1`) {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
