package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

// processes runs commands of muster in a directory of its own.
type processes struct {
	t   *testing.T
	dir string
	env []string
}

func (p processes) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(p.t.Context(), "muster", args...)
	c.Dir, c.Env, c.Stderr = p.dir, append(p.env, "PATH="+os.Getenv("PATH"), "HOME="+p.dir, "MUSTER_LISTEN=127.0.0.1:0"), os.Stderr
	return c
}

func (p processes) json(v any, args ...string) {
	p.t.Helper()
	said, err := p.command(append(args, "-o", "json")...).Output()
	if err == nil {
		err = json.Unmarshal(said, v)
	}
	if err != nil {
		p.t.Fatalf("muster %v: %v: %s", args, err, said)
	}
}

// serve starts the service and returns its address and how to end it.
func (p processes) serve() (address string, end func()) {
	p.t.Helper()
	c := p.command("serve")
	c.Stderr = nil
	log, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	for address == "" && lines.Scan() {
		if _, after, found := strings.Cut(lines.Text(), "publicURL="); found {
			address, _, _ = strings.Cut(after, " ")
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "met_") {
				p.t.Error("a token is in the service's log")
			}
		}
	}()
	return address, func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		<-drained
		if err := c.Wait(); err != nil {
			p.t.Errorf("the service ended with %v", err)
		}
	}
}

// The whole way with real programs: the service, `muster usb` and the agent, which
// init starts on the headset.
func TestUSBWithRealProcesses(t *testing.T) {
	t.Parallel()
	headset := servertest.NewHeadset(t, "VR-9", true)
	_, port, err := net.SplitHostPort(adbtest.NewServer(t, headset.Device).Address)
	if err != nil {
		t.Fatal(err)
	}
	p := processes{t, t.TempDir(), []string{"ANDROID_ADB_SERVER_PORT=" + port}}
	var company, policy struct{ PathName string }
	p.json(&company, "company", "create", "--slug", "acme", "--name", "Acme")
	p.json(&policy, "policy", "create", "--company", "acme", "--name", "Headsets", "--type", "AGENT", "--vr-only", "--set", "CAMERA=BLOCK")
	address, end := p.serve()
	defer end()
	var told struct {
		Enrolled int
		Devices  []struct{ Serial, Outcome, Way, Asset string }
	}
	p.json(&told, "usb", "--policy", policy.PathName, "--server", address)
	if told.Enrolled != 1 || len(told.Devices) != 1 || told.Devices[0].Way != "SYSTEM" || !strings.HasPrefix(told.Devices[0].Asset, company.PathName+"/assets/") {
		t.Fatalf("muster usb says %+v\n%s", told, headset.Log())
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var assets []struct{ PathName, Status string }
		p.json(&assets, "asset", "list", "--company", "acme")
		if len(assets) == 1 && assets[0].PathName == told.Devices[0].Asset && assets[0].Status == "ACTIVE" && headset.State().Platform.Restrictions["no_camera"] {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("assets %+v; %v\n%s", assets, headset.State().Platform, headset.Log())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(headset.Dir, "data/muster-inbox/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
