package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/test/executable"
	"github.com/musterhq/muster/test/needs"
)

// serviceUser is the user of the service in these tests.
const serviceUser = 65534

// kept is a directory of the service's user, in which root works too.
type kept struct{ processes }

// newKept makes the directory, with a program that every user can run.
func newKept(t *testing.T) *kept {
	t.Helper()
	needs.Root().Of(t)
	path, err := exec.LookPath("muster")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	bin, dir := filepath.Join(base, "bin"), filepath.Join(base, "lib")
	for _, err := range []error{
		os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755), os.Mkdir(bin, 0o755), os.Mkdir(dir, 0o700),
		os.Chown(dir, serviceUser, serviceUser),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	executable.Write(t, filepath.Join(bin, "muster"), text)
	database := "MUSTER_DATABASE=sqlite:" + filepath.Join(dir, "muster.db")
	return &kept{processes{t: t, dir: dir, env: []string{database}, program: filepath.Join(bin, "muster")}}
}

// asService are the processes of the service's user.
func (k *kept) asService() processes {
	p := k.processes
	p.user = &syscall.Credential{Uid: serviceUser, Gid: serviceUser}
	return p
}

// owned fails if a file of the directory is not the service's alone.
func (k *kept) owned(after string) {
	k.t.Helper()
	err := filepath.WalkDir(k.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return nil // a log that was removed
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != serviceUser || owner.Gid != serviceUser || info.Mode().Perm() != 0o600 {
			k.t.Errorf("after %s, %s has mode %04o and belongs to %d:%d, want 0600 and %d", after, entry.Name(), info.Mode().Perm(),
				owner.Uid, owner.Gid, serviceUser)
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// What root does beside the service's files leaves them to the service.
func TestRoot_LeavesFilesToTheService(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	backup := filepath.Join(k.dir, "backup.db")
	steps := []struct {
		name string
		args []string
	}{
		{"the first command", []string{"company", "create", "--slug", "acme"}},
		{"making a key file", []string{"doctor", "--make-key-file", filepath.Join(k.dir, "other.keys")}},
		{"reading", []string{"company", "list"}},
		{"a backup", []string{"backup", backup}},
		{"a key rotation", []string{"doctor", "--rotate-key-file", filepath.Join(k.dir, "muster.db.keys")}},
		{"a restore", []string{"restore", backup}},
		{"migrate", []string{"migrate"}},
	}
	for _, step := range steps {
		k.run(step.args...)
		k.owned(step.name)
	}
	service := k.asService().serve()
	k.run("policy", "create", "--company", "acme", "--name", "Kiosk", "--type", "AGENT")
	k.owned("writing while the service runs")
	service.kill()
	k.run("company", "list") // it takes in the log of the service that was killed
	k.owned("reading after a kill")
	k.run("restore", backup)
	k.owned("a restore after a kill")
	k.asService().serve().end()
}

// A key file that a group may read stays so, and one of another user is not taken over.
func TestRotateKeyFile_KeepsOwnerAndMode(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	path := filepath.Join(k.dir, "keys")
	k.run("doctor", "--make-key-file", path)
	if err := os.Chown(path, 0, serviceUser); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	k.run("doctor", "--rotate-key-file", path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	k.asService().refused("another user's", []string{"belongs to another user (id 0)", "as root"}, "doctor", "--rotate-key-file", path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 0 || owner.Gid != serviceUser || info.Mode().Perm() != 0o640 {
		t.Errorf("the key file has mode %04o and belongs to %d:%d", info.Mode().Perm(), owner.Uid, owner.Gid)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) || strings.Count(string(after), `"secret"`) != 4 {
		t.Errorf("the key file is %q, want what root made of it; %v", after, err)
	}
}
