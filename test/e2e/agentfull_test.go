package e2e_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/needs"
)

// smallDisk is a file system of half a megabyte that exists for the programs which
// run by way of it alone.
type smallDisk struct {
	t    *testing.T
	dir  string
	keep *exec.Cmd // the process that keeps it
}

// newSmallDisk skips the test where it may not mount anything.
func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	d := &smallDisk{t: t, dir: t.TempDir()}
	d.keep = exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o size=512k none "$0" && echo mounted && exec sleep 600`, d.dir)
	out, err := d.keep.StdoutPipe()
	if err == nil {
		err = d.keep.Start()
	}
	if err != nil {
		needs.Mount().Missing(t, err)
	}
	t.Cleanup(func() { _ = d.keep.Process.Kill() })
	if n, _ := out.Read(make([]byte, 100)); n == 0 {
		needs.Mount().Missing(t, errors.New("it mounted nothing"))
	}
	return d
}

// run runs a program that sees the disk.
func (d *smallDisk) run(argv ...string) (string, error) {
	enter := append([]string{"--mount", "--target", fmt.Sprint(d.keep.Process.Pid), "--"}, argv...)
	out, err := exec.CommandContext(d.t.Context(), "nsenter", enter...).CombinedOutput()
	return string(out), err
}

func (d *smallDisk) must(argv ...string) string {
	d.t.Helper()
	out, err := d.run(argv...)
	if err != nil {
		d.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return out
}

// A person who fills a device's storage does not keep it from being erased: the agent
// holds a little room back for what it must note.
func TestAndroidCore_FullStorageIsNoWayOutOfAWipe(t *testing.T) {
	t.Parallel()
	disk, p, env := newSmallDisk(t), newJavaPhone(t), servertest.New(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK"), env.Start()
	client := tenant.Client(replica, access.All)
	token, server := servertest.AgentToken(t, client.QRCode(tenant.Policy, map[string]any{}))
	agent := func(args ...string) []string {
		return append([]string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", p.classes, "dev.muster.agent.jvm.Main"},
			append(args, "--state", disk.dir)...)
	}
	out := disk.must(agent("enroll", "--server", server, "--token", token)...)
	d, err := tenant.DB().AgentDevice(t.Context(), enrolledAs(out))
	if err != nil {
		t.Fatal(err)
	}
	disk.must(agent("run", "--once")...)
	if out, err := disk.run("dd", "if=/dev/zero", "of="+disk.dir+"/filler", "bs=4096"); err == nil || !strings.Contains(out, "No space") {
		t.Fatalf("filling the disk: %v, %s", err, out)
	}
	client.Post("/assets/"+d.AssetID+"/commands/wipe", nil).Want(t, 200)
	if out, err := disk.run(agent("run", "--once")...); err != nil {
		t.Logf("with full storage: %v: %s", err, out)
	}
	var wiped struct{ Wiped bool }
	readJSON(t, filepath.Join("/proc", fmt.Sprint(disk.keep.Process.Pid), "root", disk.dir, "device.json"), &wiped)
	if !wiped.Wiped {
		t.Error("it was not erased")
	}
	tenant.FallSilent()
	servertest.AwaitStatus(t, tenant, client, d.AssetID, "DELETED")
}
