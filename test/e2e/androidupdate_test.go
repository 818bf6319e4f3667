package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/servertest"
)

// rollOut brings a file to every device at once.
func rollOut(t *testing.T, db *database.DB, version string, code int64, content []byte) {
	t.Helper()
	sum := sha256.Sum256(content)
	rollOutAs(t, db, rollout.Release{Version: version, Package: "dev.muster.agent", Code: code, SHA256: hex.EncodeToString(sum[:]),
		Size: int64(len(content)), Signer: "s"}, content)
}

// rollOutAs is rollOut for a release.
func rollOutAs(t *testing.T, db *database.DB, r rollout.Release, content []byte) {
	t.Helper()
	if err := db.AddRelease(t.Context(), r, content); err != nil {
		t.Fatal(err)
	}
	was, err := db.BeginRollout(t.Context(), r.Version, 100)
	if err != nil {
		t.Fatal(err)
	}
	for moved := false; !moved; {
		all, err := db.Rollouts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.Version == was.Version {
				is := one
				is.Ring, is.Upto = 100, math.MaxInt64
				if moved, err = db.MoveRollout(t.Context(), one, is); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// outcomeOf is what the service knows of a device's update.
func outcomeOf(t *testing.T, db *database.DB, version, deviceID string) (m rollout.Member) {
	t.Helper()
	err := db.Members(t.Context(), version, func(one rollout.Member) {
		if one.DeviceID == deviceID {
			m = one
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newUpdatingPhone is a device with version 1, which the service knows.
func newUpdatingPhone(t *testing.T, tenant *servertest.Tenant, client servertest.Client, by string) *javaPhone {
	t.Helper()
	p := newJavaPhone(t)
	if err := os.WriteFile(filepath.Join(p.state, "program-code"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.enroll(tenant, client, by)
	p.must("run", "--once")
	return p
}

func (p *javaPhone) program() string {
	content, _ := os.ReadFile(filepath.Join(p.state, "program")) // none: nothing was installed
	return string(content)
}

// settle runs the agent until it has reported to the service what there is to report.
func (p *javaPhone) settle() {
	for range 5 {
		_, _ = p.try("run", "--once") // a way that is hostile may fail it
	}
}

// The app's core installs an update once, killed before each step of it, and the service
// learns that; the next version as well.
func TestAndroidCore_Updates(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant := env.NewAgentSite("acme", "CAMERA=BLOCK")
	client := tenant.Client(env.Start(), access.All)
	p := newUpdatingPhone(t, tenant, client, "")
	file := append([]byte("good"), bytes.Repeat([]byte("0123456789"), 150_000)...)
	rollOut(t, tenant.DB(), "2.0", 2, file)
	for _, step := range []string{"before update wanted", "before range", "before whole", "before update verified",
		"before update began", "before install",
		"before update over"} {
		if step == "before update over" {
			p.must("run", "--once") // it installs
		}
		p.dies(step)
	}
	p.settle()
	if m := outcomeOf(t, tenant.DB(), "2.0", p.deviceID); p.program() != string(file) || m.Outcome != rollout.Installed || m.Code != 2 {
		t.Errorf("%d bytes are installed, and the service knows %+v", len(p.program()), m)
	}
	if left, _ := filepath.Glob(filepath.Join(p.state, "update*")); len(left) != 1 {
		t.Errorf("it leaves %v", left)
	}
	for i, prefix := range []string{"evil", "bad"} { // of another signer; refused by Android
		version := "9." + prefix
		rollOut(t, tenant.DB(), version, int64(3+i), []byte(prefix))
		p.settle()
		if m := outcomeOf(t, tenant.DB(), version, p.deviceID); p.program() != string(file) || m.Outcome != rollout.Failed ||
			m.Detail == "" || strings.Contains(m.Detail, "\n") {
			t.Errorf("%s: %+v", prefix, m)
		}
	}
}

// Who is between the app's core and its service installs nothing: forged, replayed and cut.
func TestAndroidCore_UpdatesBesideHostileWays(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant := env.NewAgentSite("acme", "CAMERA=BLOCK")
	client := tenant.Client(env.Start(), access.All)
	var change atomic.Pointer[func(path string, body []byte) []byte]
	_, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ModifyResponse: func(r *http.Response) error {
		if change.Load() == nil {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		body = (*change.Load())(r.Request.URL.Path, body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Del("Content-Length")
		return err
	}}
	way := httptest.NewServer(proxy)
	t.Cleanup(way.Close)
	p := newUpdatingPhone(t, tenant, client, way.URL)
	file := append([]byte("good"), bytes.Repeat([]byte("0123456789"), 150_000)...)
	rollOut(t, tenant.DB(), "2.0", 2, file)
	update := func(edit func(sealed map[string]string)) func(string, []byte) []byte {
		return func(_ string, body []byte) []byte {
			var all map[string]json.RawMessage
			var sealed map[string]string
			if json.Unmarshal(body, &all) != nil || json.Unmarshal(all["update"], &sealed) != nil {
				return body
			}
			edit(sealed)
			all["update"], _ = json.Marshal(sealed)
			text, _ := json.Marshal(all)
			return text
		}
	}
	var kept map[string]string
	files := func(edit func(body []byte) []byte) func(string, []byte) []byte {
		return func(path string, body []byte) []byte {
			if strings.Contains(path, "/file/") {
				return edit(body)
			}
			return body
		}
	}
	for name, how := range map[string]func(string, []byte) []byte{
		"another payload": update(func(s map[string]string) {
			payload, _ := base64.RawURLEncoding.DecodeString(s["payload"])
			s["payload"] = base64.RawURLEncoding.EncodeToString(bytes.Replace(payload, []byte(`"code":2`), []byte(`"code":9`), 1))
		}),
		"of another kind": update(func(s map[string]string) { s["kind"] = "assignment" }),
		"replayed": update(func(s map[string]string) {
			if kept == nil {
				kept = map[string]string{"kind": s["kind"], "payload": s["payload"], "keyId": s["keyId"], "sig": s["sig"]}
				s["sig"] = ""
				return
			}
			for k, v := range kept {
				s[k] = v
			}
		}),
		"nothing":  files(func([]byte) []byte { return nil }),
		"one byte": files(func(body []byte) []byte { return body[:min(1, len(body))] }),
	} {
		change.Store(&how)
		p.settle()
		if p.program() != "" {
			t.Fatalf("%s: it installed %d bytes", name, len(p.program()))
		}
	}
	change.Store(nil)
	p.settle()
	if m := outcomeOf(t, tenant.DB(), "2.0", p.deviceID); p.program() != string(file) || m.Outcome != rollout.Installed {
		t.Errorf("with true answers: %d bytes, %+v", len(p.program()), m)
	}
}

// A device without room for an update keeps nothing of it, stays in touch, and can be erased.
func TestAndroidCore_UpdateWithoutRoom(t *testing.T) {
	t.Parallel()
	disk, p, env := newSmallDisk(t), newJavaPhone(t), servertest.New(t)
	tenant := env.NewAgentSite("acme", "CAMERA=BLOCK")
	client := tenant.Client(env.Start(), access.All)
	token, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
	agent := func(args ...string) []string {
		return append([]string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", p.classes, "dev.muster.agent.jvm.Main"},
			append(args, "--state", disk.dir)...)
	}
	disk.must("sh", "-c", "echo 1 >"+disk.dir+"/program-code")
	id := enrolledAs(disk.must(agent("enroll", "--server", server, "--token", token)...))
	disk.must(agent("run", "--once")...)
	rollOut(t, tenant.DB(), "2.0", 2, bytes.Repeat([]byte("0123456789"), 150_000)) // the disk has half a megabyte
	for range 2 {
		disk.must(agent("run", "--once")...)
	}
	if left := disk.must("sh", "-c", "ls "+disk.dir); strings.Contains(left, "update.part") || strings.Contains(left, "program\n") ||
		!strings.Contains(left, "update.json") {
		t.Errorf("it leaves %s", left)
	}
	if m := outcomeOf(t, tenant.DB(), "2.0", id); m.Outcome != rollout.Offered {
		t.Errorf("the service knows %+v", m)
	}
	d, err := tenant.DB().AgentDevice(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	client.Post("/assets/"+d.AssetID+"/commands/wipe", nil).Want(t, 200)
	disk.must(agent("run", "--once")...)
	var wiped struct{ Wiped bool }
	text := disk.must("cat", disk.dir+"/device.json")
	if err := json.Unmarshal([]byte(text), &wiped); err != nil || !wiped.Wiped {
		t.Errorf("it was not erased: %v", err)
	}
}
