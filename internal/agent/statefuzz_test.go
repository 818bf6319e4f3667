package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent"
)

// FuzzReadStatus reads state that a bad disk may have left. It is refused, or names
// a device and a service; and reading changes nothing.
func FuzzReadStatus(f *testing.F) {
	whole :=
		`{"server":"https://muster.example","deviceId":"d","role":"manager","commandKeys":[{"id":"k","key":{"alg":"ed25519","spki":"x"}}]}`
	f.Add(whole, `{"policy":{"id":"p","version":1}}`)
	f.Add(strings.TrimSuffix(whole, "}")+`,"checksum":"00000000"}`, "")
	f.Add(`{"server":"","deviceId":"d"}`, "{")
	f.Fuzz(func(t *testing.T, identity, applied string) {
		dir := t.TempDir()
		for name, text := range map[string]string{"identity.json": identity, "applied.json": applied} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := agent.ReadStatus(dir)
		if err == nil && (s.DeviceID == "" || !strings.HasPrefix(s.Server, "http")) {
			t.Errorf("%q was taken for an identity: %+v", identity, s)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
			t.Errorf("reading left %v, %v", files, err)
		}
	})
}
