package e2e_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apk"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
)

// The service has an app: a code names where it is and who signed it, and it is
// served as Android's download wants it.
func TestAndroidApp_InCodesAndServed(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant := env.NewAgentSite("acme", "CAMERA=BLOCK")
	const sample = "../../internal/apk/testdata/signed.apk"
	want, err := apk.Open(sample)
	if err != nil {
		t.Fatal(err)
	}
	replica := env.Start(func(c *config.Service, _ *service.Options) { c.AgentAPK = sample })
	code := provisioningMembers(t, tenant.Client(replica, access.All).QRCode(tenant.Policy, map[string]any{}))
	if code["DEVICE_ADMIN_PACKAGE_DOWNLOAD_LOCATION"] != replica.PublicURL()+"/agent/agent.apk" ||
		code["DEVICE_ADMIN_SIGNATURE_CHECKSUM"] != want.Checksum {
		t.Errorf("the code says %v, want the checksum %s", code, want.Checksum)
	}
	answer := servertest.Send(t, "GET", replica.PublicURL()+"/agent/agent.apk", "")
	if !bytes.Equal(answer.Body, want.Data) || answer.Header.Get("Content-Type") != "application/vnd.android.package-archive" ||
		answer.Header.Get("Content-Length") != strconv.Itoa(len(want.Data)) {
		t.Errorf("%d %v: %d bytes", answer.Status, answer.Header, len(answer.Body))
	}
	elsewhere := env.Start(func(c *config.Service, _ *service.Options) {
		c.AgentAPK, c.AgentAPKURL = sample, "http://cdn.example/muster.apk"
	})
	code = provisioningMembers(t, tenant.Client(elsewhere, access.All).QRCode(tenant.Policy, map[string]any{}))
	if code["DEVICE_ADMIN_PACKAGE_DOWNLOAD_LOCATION"] != "http://cdn.example/muster.apk" {
		t.Errorf("with another address the code says %v", code)
	}
}

// Without an app a code has no download in it, and is good for what has an agent.
func TestAndroidApp_Missing(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
	code := provisioningMembers(t, tenant.Client(replica, access.All).QRCode(tenant.Policy, map[string]any{}))
	for _, member := range []string{"DEVICE_ADMIN_PACKAGE_DOWNLOAD_LOCATION", "DEVICE_ADMIN_SIGNATURE_CHECKSUM"} {
		if _, there := code[member]; there {
			t.Errorf("the code has %s: %v", member, code)
		}
	}
	noApp(t, replica.PublicURL())
}

// An app that is not one keeps the service from starting, with the file's name.
func TestAndroidApp_NotAnApp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.apk")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := servertest.New(t)
	settings := env.Config()
	settings.AgentAPK = path
	_, err := service.New(t.Context(), settings, service.Options{Now: env.Now, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "MUSTER_AGENT_APK") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// The doctor finds an app that keeps the service from starting.
func TestDoctor_AndroidApp(t *testing.T) {
	t.Parallel()
	env, dir := servertest.New(t), t.TempDir()
	text, unreadable := filepath.Join(dir, "text.apk"), filepath.Join(dir, "unreadable.apk")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(unreadable, unreadable); err != nil { // also for root
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		status ops.Severity
		says   string
	}{
		"":                                       {ops.Fine, "none"},
		"../../internal/apk/testdata/signed.apk": {ops.Fine, "signed by CN="},
		filepath.Join(dir, "absent.apk"):         {ops.Failed, "no such file"},
		unreadable:                               {ops.Failed, "unreadable.apk"},
		text:                                     {ops.Failed, "not a signed Android app"},
		dir:                                      {ops.Failed, "not an Android app"},
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			settings := env.Config()
			settings.AgentAPK = path
			findings := ops.Diagnose(t.Context(), settings, env.Now)
			found := slices.IndexFunc(findings, func(f ops.Finding) bool { return f.Check == "Android app" })
			if found < 0 {
				t.Errorf("%q: not checked", path)
				return
			}
			f := findings[found]
			if f.Status != want.status || !strings.Contains(f.Detail, want.says) || (f.Remedy == "") != (f.Status == ops.Fine) {
				t.Errorf("%q: %+v, want %+v", path, f, want)
			}
		})
	}
}

// provisioningMembers are a code's members without Android's prefix.
func provisioningMembers(t *testing.T, text string) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	short := map[string]any{}
	for name, value := range all {
		short[strings.TrimPrefix(name, "android.app.extra.PROVISIONING_")] = value
	}
	return short
}
