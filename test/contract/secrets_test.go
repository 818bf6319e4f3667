package contract_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/servertest"
)

// The passwords that must leave no trace (contract 4.2, 4.4).
const (
	screenLockMarker = "mArKeR-screen-lock-83572"
	wifiMarker       = "mArKeR-wifi-password-19404"
)

// The new screen-lock password and the Wi-Fi password are found in no file,
// log, row, metric or answer, whether the command goes well, is refused by a
// vendor that quotes it, or is repeated under an Idempotency-Key.
func TestSecrets_PasswordsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := env.NewTenant("acme"), env.Start()
	texts := map[string][]byte{}
	for i, f := range []*emulator.Fault{
		nil,
		{Status: 400, Reason: "Invalid value at 'new_password': " + screenLockMarker},
		{Status: 503, Reason: "cannot handle " + screenLockMarker},
		{Status: 429, Reason: screenLockMarker},
		{AfterEffect: true},
	} {
		device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
		if f != nil {
			f.Method = "devices.issueCommand"
			env.Fault(*f)
		}
		client := tenant.Client(replica, access.All)
		name := string(rune('a' + i))
		for _, repetition := range []string{"first", "again"} {
			texts[name+repetition] = client.Post("/assets/"+device.AssetID+"/commands/change-screen-lock-password",
				map[string]string{"newPassword": screenLockMarker}, "Idempotency-Key", name).Body
			texts[name+repetition+"qr"] = client.Post("/policies/"+tenant.Policy.ID+"/provisioning-qr-codes",
				map[string]any{"wifiSsid": "Depot", "wifiPassword": wifiMarker}, "Idempotency-Key", name+"qr").Body
		}
		texts[name+"history"] = client.Get("/assets/" + device.AssetID + "/commands").Body
		texts[name+"asset"] = client.Get("/assets/" + device.AssetID).Body
	}
	client := tenant.Client(replica, access.All)
	// Refused arguments are not quoted either.
	texts["short"] = client.Post("/assets/x/commands/change-screen-lock-password",
		map[string]string{"newPassword": " " + screenLockMarker}).Want(t, 400).Body
	texts["unknown"] = client.Post("/assets/x/commands/change-screen-lock-password",
		map[string]string{screenLockMarker: screenLockMarker, "newPassword": "1"}).Want(t, 400).Body
	texts["wifi"] = client.Post("/policies/x/provisioning-qr-codes", map[string]any{"wifiPassword": wifiMarker}).Want(t, 400).Body
	_, metrics := servertest.Fetch(t, replica.PublicURL()+"/metrics")
	texts["metrics"] = []byte(metrics)
	if err := env.Admin().Backup(t.Context(), filepath.Join(env.Dir, "copy.db")); err != nil {
		t.Fatal(err)
	}
	replica.Stop()
	texts["log"] = env.Log.Text()
	readAll(t, env.Dir, texts)
	delete(texts, "unknown") // an unknown member's name is the caller's own and may be repeated
	for where, text := range texts {
		for _, marker := range []string{screenLockMarker, wifiMarker} {
			if how := trace(text, marker); how != "" {
				t.Errorf("%s holds a password (%s)", where, how)
			}
		}
	}
}

func readAll(t *testing.T, dir string, into map[string][]byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		into[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// trace says how a text holds a marker, in any of its usual disguises.
func trace(text []byte, marker string) string {
	disguises := map[string]string{
		"plain": marker, "hex": hex.EncodeToString([]byte(marker)), "escaped": url.QueryEscape(marker),
	}
	for offset, padding := range []string{"", "x", "xx"} {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(padding + marker))
		disguises["base64 at "+padding] = encoded[offset+1 : len(encoded)-2]
	}
	for how, disguise := range disguises {
		if bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(disguise))) {
			return how
		}
	}
	return ""
}

// The search itself finds what it looks for.
func TestSecrets_SearchFindsEncodings(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"x" + wifiMarker, base64.StdEncoding.EncodeToString([]byte(`{"a":"` + wifiMarker + `"}`)),
		base64.StdEncoding.EncodeToString([]byte(`{"ab":"` + wifiMarker + `"}`)),
		base64.StdEncoding.EncodeToString([]byte(`{"abc":"` + wifiMarker + `"}`)),
		base64.URLEncoding.EncodeToString([]byte(wifiMarker)), hex.EncodeToString([]byte("12" + wifiMarker)),
	} {
		if trace([]byte(text), wifiMarker) == "" {
			t.Errorf("the marker is not found in %s", text)
		}
	}
	if how := trace([]byte("nothing of the kind"), wifiMarker); how != "" {
		t.Errorf("the marker is found where it is not: %s", how)
	}
}
