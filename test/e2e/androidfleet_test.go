package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/needs"
	"github.com/musterhq/muster/test/spec"
)

// Many devices of the app's core in one JVM for a simulated day: each checks in
// every time, and neither the memory nor a journal grows with the rounds. With
// MUSTER_SOAK=1 there are a thousand, every quarter of an hour.
func TestAndroidCore_ManyDevices(t *testing.T) {
	t.Parallel()
	devices, step := 20, 4*time.Hour
	if os.Getenv("MUSTER_SOAK") == "1" {
		devices, step = 1000, 15*time.Minute
	}
	env := servertest.New(t)
	p := newJavaPhone(t)
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK", "SMS=BLOCK"), env.Start()
	run := exec.CommandContext(t.Context(), "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", p.classes,
		"dev.muster.agent.jvm.Fleet", p.state)
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	run.Stderr = &stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for range devices {
		token, err := replica.Agents().Issue(t.Context(), tenant.Company, tenant.Policy,
			provisioning.Wanted{Usage: provisioning.PersonalUsage(""), Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(in, "%s\n", token.Payload)
	}
	lines := bufio.NewScanner(out)
	round := func() (heap, journal int64) {
		t.Helper()
		fmt.Fprintf(in, "at %d\n", env.Now().UnixMilli())
		if !lines.Scan() {
			t.Fatalf("the fleet ended: %s", stderr.String())
		}
		var done int
		if _, err := fmt.Sscan(lines.Text(), &done, &heap, &journal); err != nil || done != devices {
			t.Fatalf("%q: %d of %d checked in, %v\n%s", lines.Text(), done, devices, err, stderr.String())
		}
		return heap, journal
	}
	round()
	warm, _ := round()
	var heap, journal int64
	for passed := time.Duration(0); passed < 24*time.Hour; passed += step {
		env.Advance(step)
		client := tenant.Client(replica, access.All)
		found := client.Get("/assets?size=3").Want(t, 200)
		var page struct{ Content []struct{ PathName string } }
		found.JSON(t, &page)
		for _, a := range page.Content {
			client.Post("/assets/"+filepath.Base(a.PathName)+"/commands/message", spec.CommandOf("message").Request()).Want(t, 200)
		}
		heap, journal = round()
	}
	if limit := warm + warm/4 + 4<<20; heap > limit {
		t.Errorf("%d devices take %d bytes after a day, %d at its beginning", devices, heap, warm)
	}
	if journal > 1<<20 {
		t.Errorf("a journal has %d bytes", journal)
	}
	t.Logf("%d devices: %d bytes of memory, %d at the beginning, the largest journal %d", devices, heap, warm, journal)
	in.Close()
	if err := run.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

// dexed is the core as the app holds it, translated to Android's bytecode, and back
// again so that a JVM can run it.
func dexed(t *testing.T, classes string) string {
	t.Helper()
	enjarify := needs.Enjarify().Of(t)
	needs.Maven().Of(t)
	listed, err := exec.CommandContext(t.Context(), "../../android/artifacts.sh", "build").Output()
	jars := bytes.Fields(listed)
	if err != nil || len(jars) != 3 {
		needs.Maven().Missing(t, fmt.Errorf("cannot fetch the translator: %w", err))
	}
	out := t.TempDir()
	dex, back := filepath.Join(out, "classes.dex"), filepath.Join(out, "back.jar")
	for _, args := range [][]string{
		{"java", "-cp", string(jars[1]), "com.android.dx.command.Main", "--dex", "--min-sdk-version=28", "--output=" + dex, classes},
		{enjarify, "-f", "-o", back, dex},
	} {
		translate := exec.CommandContext(t.Context(), args[0], args[1:]...)
		translate.Env = append(os.Environ(), "PATH=/usr/bin:/bin") // enjarify wants the system's Python
		if output, err := translate.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}
	}
	return back
}

// The same agent from the bytecode that Android runs: the translation is right.
func TestAndroidCore_FromDex(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("enjarify is a package of Debian")
	}
	env := servertest.New(t)
	p := newJavaPhone(t)
	p.classes = dexed(t, p.classes)
	p.flags = []string{"-Xverify:all"}
	tenant, replica := env.NewAgentSite("acme", "CAMERA=BLOCK", "LOCATION_MODE=ENFORCED"), env.Start()
	client := tenant.Client(replica, access.All)
	p.enroll(tenant, client, "")
	if got := p.device().Settings["CAMERA"]; got != "BLOCK" {
		t.Errorf("CAMERA is %q", got)
	}
	p.must("rotate")
	for _, command := range []string{"message", "reboot", "status-report", "location-update", "sync-policy", "upload-log"} {
		client.Post("/assets/"+p.assetID+"/commands/"+command, spec.CommandOf(command).Request()).Want(t, 200)
		p.must("run", "--once")
		tenant.Settled(client, p.assetID, "SUCCESS")
	}
	client.Post("/assets/"+p.assetID+"/commands/relinquish-ownership", nil).Want(t, 200)
	p.must("run", "--once")
	servertest.AwaitStatus(t, tenant, client, p.assetID, "DELETED")
	if s := p.device(); !s.Released || len(s.Settings) != 0 {
		t.Errorf("the device is %+v", s)
	}
}
