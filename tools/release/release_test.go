package main

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// sample is a release of one small program. It is made twice; both are compared.
func sample(t *testing.T, key string) release {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: "1.2.3-4-gabcdef0", time: time.Unix(1_700_000_000, 0).UTC(), root: root, build: t.TempDir(), out: t.TempDir()}
	small := filepath.Join(t.TempDir(), "layers") // a small Go program
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", small,
		"../layers").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	program, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"linux-amd64/muster": program, "linux-arm64/muster": {4}, "windows-amd64/muster.exe": {1}, "darwin-arm64/muster": {2},
		"devices/muster-agent-linux-arm64": {3}, "man/muster.1": []byte(".TH MUSTER 1\n"), "man/muster.bash": {}, "man/_muster": {},
		"man/muster.fish": {},
	} {
		path := filepath.Join(r.build, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.make(key, "secret"); err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever the umask, the place and the clock: the same bytes, signed.
func TestRelease_SameBytesTwice(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := minisign.EncryptKey("secret", private)
	key := filepath.Join(t.TempDir(), "key")
	if err := errors.Join(err, os.WriteFile(key, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	one, two := sample(t, key), sample(t, key)
	files, err := os.ReadDir(one.out)
	if err != nil || len(files) != 12 {
		t.Errorf("the release has %d files (%v), want 4 archives, 4 packages, image, components, checksums, signature: %v",
			len(files), err, files)
	}
	for _, file := range files {
		first, err := os.ReadFile(filepath.Join(one.out, file.Name()))
		second, err2 := os.ReadFile(filepath.Join(two.out, file.Name()))
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs from one time to the next: %v", file.Name(), err)
		}
	}
	sums, err := os.ReadFile(filepath.Join(one.out, "SHA256SUMS"))
	signature, err2 := os.ReadFile(filepath.Join(one.out, "SHA256SUMS.minisig"))
	if err := errors.Join(err, err2); err != nil || !minisign.Verify(public, sums, signature) {
		t.Errorf("the signature does not verify: %v", err)
	}
	imageHolds(t, filepath.Join(one.out, "muster-"+one.version+"-image.tar"))
	debHolds(t, one)
	rpmHolds(t, one)
}

// imageHolds checks the image's user, and that the archive has one image for both architectures, which has a name: what loads it
// takes no archive of several, and chooses by the machine.
func imageHolds(t *testing.T, path string) {
	t.Helper()
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	configurations, reader := 0, tar.NewReader(packed)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Size > 10_000 {
			continue
		}
		var found struct {
			Manifests []v1.Descriptor
			Config    struct {
				User       string
				Entrypoint []string
			}
		}
		if content, err := io.ReadAll(reader); err == nil && json.Unmarshal(content, &found) == nil && found.Config.Entrypoint != nil {
			configurations++
			if found.Config.User != "1000:1000" || found.Config.Entrypoint[0] != "/usr/bin/muster" {
				t.Errorf("the image is configured as %+v", found)
			}
		}
		if name := "org.opencontainers.image.ref.name"; header.Name == "index.json" && (len(found.Manifests) != 1 ||
			!found.Manifests[0].MediaType.IsIndex() || found.Manifests[0].Annotations[name] != "muster:1.2.3.4.gabcdef0") {
			t.Errorf("the archive has %+v, want an index named muster:1.2.3.4.gabcdef0", found.Manifests)
		}
	}
	if configurations != 2 {
		t.Errorf("the archive has %d images, want 2", configurations)
	}
	if roots := authorities(); bytes.Count(roots, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Error("the image lacks certificate authorities")
	}
}

// debHolds checks contents and modes of the package for Debian.
func debHolds(t *testing.T, r release) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is missing: the package for Debian is not read")
	}
	output, err := exec.CommandContext(t.Context(), "dpkg-deb", "-c", filepath.Join(r.out, "muster_1.2.3+4.gabcdef0-1_amd64.deb")).
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for name, mode := range map[string]string{
		"./usr/bin/muster": "-rwxr-xr-x root/root", "./usr/sbin/muster-admin": "-rwxr-xr-x root/root",
		"./etc/muster/muster.env":   "-rw------- root/root",
		"./etc/muster/credentials/": "drwx------ root/root", "./usr/lib/systemd/system/muster.service": "-rw-r--r-- root/root",
		"./usr/share/man/man1/muster.1.gz":       "-rw-r--r-- root/root",
		"./usr/share/man/man8/muster-admin.8.gz": "-rw-r--r-- root/root",
	} {
		found := false
		for line := range strings.Lines(string(output)) {
			found = found || strings.HasSuffix(line, " "+name+"\n") && strings.HasPrefix(line, mode)
		}
		if !found {
			t.Errorf("the package has no %s with %s:\n%s", name, mode, output)
		}
	}
}

// A key of minisign -W has no password.
func TestSign_KeyWithoutPassword(t *testing.T) {
	t.Parallel()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.MarshalText()
	key, r := filepath.Join(t.TempDir(), "key"), release{version: "1.2.3", out: t.TempDir()}
	if err := errors.Join(err, os.WriteFile(key, text, 0o600), r.sign(key, "", []byte("sums"))); err != nil {
		t.Fatal(err)
	}
	signature, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS.minisig"))
	if err != nil || !minisign.Verify(public, []byte("sums"), signature) {
		t.Errorf("the signature does not verify: %v", err)
	}
}

// rpmHolds checks contents, modes and scripts of the package for Red Hat.
func rpmHolds(t *testing.T, r release) {
	t.Helper()
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Log("rpm is missing: the package for Red Hat is not read")
		return
	}
	output, err := exec.CommandContext(t.Context(), "rpm", "-qp", "--qf",
		"[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILEFLAGS:fflags}\n]", "--scripts",
		filepath.Join(r.out, "muster-1.2.3+4.gabcdef0-1.x86_64.rpm")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{
		"/usr/bin/muster -rwxr-xr-x root root", "/usr/sbin/muster-admin -rwxr-xr-x root root",
		"/etc/muster/muster.env -rw------- root root cn",
		"/etc/muster/credentials drwx------ root root", "/usr/lib/systemd/system/muster.service -rw-r--r-- root root",
		"/usr/share/man/man8/muster-admin.8.gz -rw-r--r-- root root",
		"postinstall scriptlet", "preuninstall scriptlet", "postuninstall scriptlet", "systemctl try-restart muster.service",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the package for Red Hat has no %q:\n%s", want, output)
		}
	}
}

func TestPackageVersion(t *testing.T) {
	t.Parallel()
	for described, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3-rc1": "1.2.3~rc1", "v1.2.3-4-gabc": "1.2.3+4.gabc", "abc1234": "0.0.0+20231114221320.abc1234",
		"abc-dirty": "0.0.0+20231114221320.abc.dirty",
	} {
		if got := (release{version: described, time: time.Unix(1_700_000_000, 0).UTC()}).packageVersion(); got != want {
			t.Errorf("%s is packaged as %s, want %s", described, got, want)
		}
	}
}

// muster-admin reads the settings as systemd reads them for the service, with relative paths from
// where the service works, and takes no other database.
func TestAdmin_ReadsSettings(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../packaging/muster-admin")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := `id() { echo 0; }; show() { echo "$1, $MUSTER_DATABASE, $MUSTER_MAIL_FROM, $MUSTER_TLS_CERT${MUSTER_KEY_FILE-}"; };` +
		strings.NewReplacer("/etc/muster", dir, "exec muster", "show").Replace(string(script))
	for _, c := range []struct{ settings, want string }{
		{"MUSTER_DATABASE=postgres://db/m?sslmode=disable&a=b; # c", "postgres://db/m?sslmode=disable&a=b; # c, , "},
		{"# a\n  MUSTER_DATABASE='sqlite:/a b'  \nMUSTER_MAIL_FROM=\"M <m@acme.test>\"\n", "sqlite:/a b, M <m@acme.test>, "},
		{"MUSTER_MAIL_FROM=M $HOME <m@acme.test>", "sqlite:/var/lib/muster/muster.db, M $HOME <m@acme.test>, "},
		{"MUSTER_DATABASE=a\nMUSTER_TLS_CERT=/run/credentials/muster.service/muster_tls-cert", "a, , " + dir + "/credentials/tls-cert"},
		{"MUSTER_DATABASE=sqlite:m.db\nMUSTER_TLS_CERT='my certs/a.pem'", "sqlite:/var/lib/muster/m.db, , /var/lib/muster/my certs/a.pem"},
		{"MUSTER_DATABASE=postgres://db/m\nMUSTER_MAIL_FROM=a/b\nMUSTER_KEY_FILE=keys/k", "postgres://db/m, a/b, /var/lib/muster/keys/k"},
		{"MUSTER_DATABASE=sqlite:/m.db\nMUSTER_KEY_FILE=/k", "sqlite:/m.db, , /k"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "muster.env"), []byte(c.settings), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", text, "muster-admin", "doctor")
		cmd.Env = []string{"PATH=/usr/bin:/bin", "MUSTER_MAIL_FROM=", "MUSTER_TLS_CERT="}
		if got, err := cmd.CombinedOutput(); err != nil || string(got) != "doctor, "+c.want+"\n" {
			t.Errorf("with %q it runs with %s, %v; want %s", c.settings, got, err, c.want)
		}
	}
}

// The unit is without mistakes, and exposes little.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is missing: the unit is not checked")
	}
	output, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=14",
		"../../packaging/muster.service").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "Overall exposure level") {
		t.Errorf("the exposure is above 1.4, or not known: %v\n%s", err, output)
	}
	output, err = exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no",
		"../../packaging/muster.service").CombinedOutput()
	for line := range strings.Lines(string(output)) {
		if !strings.Contains(line, "/usr/bin/muster is not executable") && strings.Contains(line, "muster.service:") {
			t.Errorf("systemd-analyze (%v) says: %s", err, line)
		}
	}
}
