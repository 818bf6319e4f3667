package ops_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service/ops"
)

func TestKeyFile_IsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "muster.keys")
	const racers = 8
	keys := make([]*ops.Keys, racers)
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			var err error
			if keys[i], err = ops.LoadOrMakeKeys(path, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	sealed := keys[0].Seal("answer", []byte("secret"))
	for i, k := range keys {
		if got, err := k.Open("answer", sealed); err != nil || string(got) != "secret" {
			t.Errorf("racer %d opens %q, %v", i, got, err)
		}
		if !bytes.Equal(k.Signing().Public().(ed25519.PublicKey), keys[0].Signing().Public().(ed25519.PublicKey)) {
			t.Errorf("racer %d signs with another key", i)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the key file is %v, %v; want mode 0600", info, err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("the directory holds %v, %v; want the key file alone", files, err)
	}
}

func TestKeys_OpenOnlyAsSealed(t *testing.T) {
	t.Parallel()
	mine, other := newKeys(t), newKeys(t)
	sealed := mine.Seal("answer", []byte("marker-4711"))
	if bytes.Contains(sealed, []byte("marker")) {
		t.Error("the sealed data shows the plain one")
	}
	if bytes.Equal(sealed, mine.Seal("answer", []byte("marker-4711"))) {
		t.Error("equal data seal to equal texts")
	}
	broken := bytes.Clone(sealed)
	broken[len(broken)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return mine.Open("other", sealed) },
		"another file":    func() ([]byte, error) { return other.Open("answer", sealed) },
		"damaged":         func() ([]byte, error) { return mine.Open("answer", broken) },
		"empty":           func() ([]byte, error) { return mine.Open("answer", nil) },
		"cut":             func() ([]byte, error) { return mine.Open("answer", sealed[:30]) },
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := open(); err == nil {
				t.Errorf("%s: opened %q", name, got)
			}
		})
	}
}

func TestLoadKeys_Refuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, says string }{
		"not JSON":      {"{", "damaged"},
		"newer version": {`{"version":2}`, "newer build"},
		"no keys":       {`{"version":1}`, "a key is missing"},
		"short key":     {`{"version":1,"signing":[{"id":"a","secret":"AAAA"}],"sealing":[{"id":"b","secret":"AAAA"}]}`, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ops.LoadOrMakeKeys(path, time.Now()); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v; want an error that says %q", err, tc.says)
			}
		})
	}
}

func newKeys(t *testing.T) *ops.Keys {
	t.Helper()
	keys, err := ops.LoadOrMakeKeys(filepath.Join(t.TempDir(), "keys"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// What calls left that were killed has keys: making and rotating the file, also by a symbolic link, remove it.
func TestKeyFile_RemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "keys[1]"), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"make":           func() error { return errors.Join(os.RemoveAll(path), ops.MakeKeyFile(path, time.Now())) },
		"rotate":         func() error { return ops.RotateKeyFile(path, time.Now()) },
		"rotate by link": func() error { return ops.RotateKeyFile(link, time.Now()) },
	} {
		if err := ops.MakeKeyFile(path, time.Now()); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		for _, left := range []string{path + ".new-1", path + ".new-23", filepath.Join(dir, "other.new-1")} {
			if err := os.WriteFile(left, []byte("keys"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := change(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if want := []string{path, filepath.Join(dir, "other.new-1")}; err != nil || !slices.Equal(files, want) {
			t.Errorf("%s: files %v, %v; want %v", name, files, err, want)
		}
	}
}

// New keys sign and seal; the old ones still open what they sealed.
func TestKeyFile_Rotate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	before, err := ops.LoadOrMakeKeys(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sealed := before.Seal("answer", []byte("secret"))
	if err := ops.RotateKeyFile(path, time.Now()); err != nil {
		t.Fatal(err)
	}
	after, err := ops.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Open("answer", sealed); err != nil || string(got) != "secret" {
		t.Errorf("what the old key sealed opens as %q, %v", got, err)
	}
	if _, err := before.Open("answer", after.Seal("answer", nil)); err == nil {
		t.Error("the old key still seals")
	}
	if bytes.Equal(after.Signing().Public().(ed25519.PublicKey), before.Signing().Public().(ed25519.PublicKey)) {
		t.Error("the old key still signs")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the key file is %v, %v; want mode 0600", info, err)
	}
	if err := ops.RotateKeyFile(filepath.Join(t.TempDir(), "none"), time.Now()); err == nil {
		t.Error("a file that is not there was rotated")
	}
}

// A key that begins before the one it follows would be refused by every device: the file stays as it is.
func TestRotateKeyFile_ClockBehindTheNewestKey(t *testing.T) {
	t.Parallel()
	path, made := filepath.Join(t.TempDir(), "keys"), time.Now().Truncate(time.Second)
	if err := ops.MakeKeyFile(path, made); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = ops.RotateKeyFile(path, made.Add(-time.Second))
	after, unread := os.ReadFile(path)
	if err == nil || !strings.Contains(err.Error(), made.UTC().Format(time.RFC3339)) || unread != nil || !bytes.Equal(before, after) {
		t.Errorf("a second before the newest key was made: %v; the file has changed: %t, %v", err, !bytes.Equal(before, after), unread)
	}
	if err := ops.RotateKeyFile(path, made); err != nil {
		t.Errorf("in the second in which it was made: %v", err)
	}
}

// The doctor finds a key that was made while the clock was ahead.
func TestDoctor_KeyFromTheFuture(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now().Truncate(time.Second)
	settings := config.Service{Listen: "127.0.0.1:0"}
	settings.KeyFile, settings.Database = filepath.Join(dir, "keys"), "sqlite:"+filepath.Join(dir, "muster.db")
	if err := ops.MakeKeyFile(settings.KeyFile, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for later, want := range map[time.Duration]ops.Severity{-time.Second: ops.Failed, 0: ops.Fine} {
		findings := ops.Diagnose(t.Context(), settings, func() time.Time { return now.Add(later) })
		if !slices.ContainsFunc(findings, func(f ops.Finding) bool { return f.Check == "key file" && f.Status == want }) {
			t.Errorf("%s later: no finding about the key file that is %s in %+v", later, want, findings)
		}
	}
}
