package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/usb"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

// stockShell is a stock device as adb's shell sees it. Its app is the core on a JVM:
// what is written into the provider enrolls it. The words are those of adb shell.
const stockShell = `
run() {
	line="$*"
	if [ "$1" = sh ]; then line="$3"; fi
	echo "$line" >>"$dir/ran"
	case "$line" in
	"getprop ro.build.version.sdk") echo 34 ;;
	"getprop ro.build.version.release") echo 14 ;;
	"getprop ro.product.model") echo Slate ;;
	"getprop sys.boot_completed") echo 1 ;;
	getprop*) echo ;;
	"pm install"*) touch "$dir/installed"; echo Success ;;
	"dpm set-device-owner"*) touch "$dir/owner"; echo "Success: Device owner set to package dev.muster.agent/.AdminReceiver" ;;
	"content query"*)
		if [ ! -e "$dir/installed" ]; then echo "Could not find provider: dev.muster.agent.enroll"; return 0; fi
		state=not_owner device=
		if [ -e "$dir/owner" ]; then state=waiting; fi
		if [ -e "$state_dir/identity.json" ]; then
			state=enrolled device=$(sed -n 's/.*"deviceId":"\([^"]*\)".*/\1/p' "$state_dir/identity.json")
		fi
		echo "Row: 0 state=$state, device=$device, version=0.1.0, detail=" ;;
	"content write"*)
		cp "$root${line##*< }" "$dir/bundle"
		$java enroll --state "$state_dir" --bundle "$dir/bundle" >&2 && $java run --once --state "$state_dir" >&2 ;;
	mkdir*) mkdir -p "$root$3" ;;
	rm*) rm -r -f "$root$4" ;;
	esac
}
`

// muster usb makes the app the owner of a stock device, and the real core enrolls by
// the bundle that it writes into the provider; again it knows its own, and after the
// device was relinquished it enrolls it again.
func TestUSB_StockDevice(t *testing.T) {
	t.Parallel()
	p := newJavaPhone(t)
	dir := t.TempDir()
	shell := fmt.Sprintf("dir='%s' state_dir='%s' java='java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp %s dev.muster.agent.jvm.Main'",
		dir, p.state, p.classes)
	c := newCable(t)
	c.adb = adbtest.New(t, &adbtest.Device{Serial: "STOCK-1", Root: t.TempDir(), Shell: shell + stockShell})
	c.policy = c.AgentPolicy(c.tenant.Company, "Phones", "CAMERA=BLOCK")
	transcript := filepath.Join(dir, "transcript")
	plug := func(want usb.Outcome) (assetID string) {
		t.Helper()
		results, err := c.usb("--app", "../../internal/apk/testdata/signed.apk", "--transcript", transcript)
		got := results["STOCK-1"]
		if err != nil || got.Outcome != want || got.Way != usb.Owner {
			t.Fatalf("%+v, %v, want %s", got, err, want)
		}
		return filepath.Base(got.Asset)
	}
	p.assetID = plug(usb.Enrolled)
	if got := p.device().Settings["CAMERA"]; got != "BLOCK" {
		t.Errorf("CAMERA is %q", got)
	}
	plug(usb.AlreadyEnrolled)
	client := c.tenant.Client(c.replica, access.All)
	client.Post("/assets/"+p.assetID+"/commands/relinquish-ownership", nil).Want(t, 200)
	p.must("run", "--once")
	servertest.AwaitStatus(t, c.tenant, client, p.assetID, "DELETED")
	plug(usb.Enrolled)
	ran, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"adb's arguments": c.adb.Calls(), "what ran": string(ran),
		"the transcript": string(content)} {
		if strings.Contains(text, "met_") {
			t.Errorf("the token is in %s", what)
		}
	}
	if strings.Contains(string(content), "STOCK-1") || !strings.Contains(string(content), "$ dpm set-device-owner") {
		t.Errorf("the transcript is %q", content)
	}
}
