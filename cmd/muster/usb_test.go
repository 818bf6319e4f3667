package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/usb/adbtest"
	"github.com/musterhq/muster/test/poll"
)

// The whole way with real programs: the service, `muster usb` and the agent, which
// init starts on the headset.
func TestUSB_RealProcesses(t *testing.T) {
	t.Parallel()
	headset := servertest.NewHeadset(t, "VR-9", true)
	adb := adbtest.New(t, headset.Device).Dir()
	p := processes{t: t, dir: t.TempDir(), env: []string{"PATH=" + adb + ":" + os.Getenv("PATH")}}
	var company, policy struct{ PathName string }
	p.json(&company, "company", "create", "--slug", "acme", "--name", "Acme")
	p.json(&policy, "policy", "create", "--company", "acme", "--name", "Headsets", "--type", "AGENT", "--vr-only", "--set", "CAMERA=BLOCK")
	service := p.serve()
	defer service.end()
	var result struct {
		Enrolled int
		Devices  []struct{ Serial, Outcome, Way, Asset string }
	}
	p.json(&result, "usb", "--policy", policy.PathName, "--server", service.address)
	if result.Enrolled != 1 || len(result.Devices) != 1 || result.Devices[0].Way != "SYSTEM" ||
		!strings.HasPrefix(result.Devices[0].Asset, company.PathName+"/assets/") {
		t.Fatalf("muster usb says %+v\n%s", result, headset.Log())
	}
	poll.Until(t, "the headset is enrolled and has its policy", func() error {
		var assets []struct{ PathName, Status string }
		p.json(&assets, "asset", "list", "--company", "acme")
		if len(assets) == 1 && assets[0].PathName == result.Devices[0].Asset && assets[0].Status == "ACTIVE" &&
			headset.State().Platform.Restrictions["no_camera"] {
			return nil
		}
		return fmt.Errorf("assets %+v; %v\n%s", assets, headset.State().Platform, headset.Log())
	})
	if left, _ := filepath.Glob(filepath.Join(headset.Dir, "data/muster-inbox/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
