package usb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/usb"
	"github.com/musterhq/muster/internal/usb/adbtest"
)

// phone is a stock device with Android's own tools and, once installed, the app. In its
// directory are the app's state, device and detail, what it becomes with a bundle, the
// bundle that it got, what ran, and the beginning of a command that fails with what it says.
type phone struct {
	*toy
}

const phoneShell = `
stored() { cat "$toy/$1" 2>/dev/null; }
run() {
	if [ "$1" = getprop ]; then stored "props/$2"; return 0; fi
	line="$*"
	if [ "$1" = sh ]; then line="$3"; fi
	echo "$line" >>"$toy/ran"
	if [ -e "$toy/fails" ]; then
		case "$line" in "$(stored fails)"*) stored said >&2; return 1 ;; esac
	fi
	case "$line" in
	"pm install"*) [ -e "$toy/state" ] || printf not_owner >"$toy/state"; echo Success ;;
	dpm*) printf waiting >"$toy/state"; echo "Success: Device owner set to package dev.muster.agent/.AdminReceiver" ;;
	"content query"*)
		if [ -e "$toy/state" ]; then
			printf 'Row: 0 state=%s, device=%s, version=0.1.0, detail=%s\n' "$(stored state)" "$(stored device)" "$(stored detail)"
		else
			echo "Could not find provider: dev.muster.agent.enroll"
		fi ;;
	"content write"*) cp "$root${line##*< }" "$toy/bundle" && becomes=$(stored becomes || :) &&
		printf "${becomes:-enrolled}" >"$toy/state" ;;
	rm*) rm -r -f "$root$4" ;;
	esac
}
`

func newPhone(t *testing.T) phone {
	t.Helper()
	p := phone{newToy(t, "SECRETSERIAL", map[string]string{"ro.build.version.sdk": "34", "ro.build.version.release": "14",
		"ro.product.model": "Slate"})}
	p.Shell = "toy='" + p.dir + "'" + phoneShell
	return p
}

// bundle is what the app got.
func (p phone) bundle() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "bundle"))
	return string(text)
}

// takes has one device provisioned through the app.
func (p phone) takes(t *testing.T, d *enroller, transcript *usb.Transcript) usb.Result {
	t.Helper()
	fake := adbtest.New(t, p.Device)
	tool := &usb.Tool{ADB: client(fake), Enroller: d, Patience: 5 * time.Second, App: []byte("the app"), Transcript: transcript}
	if d.never {
		tool.Patience = 50 * time.Millisecond
	}
	got, err := tool.Once(t.Context())
	if err != nil || len(got) != 1 || got[0].Way != usb.Owner {
		t.Fatalf("%+v, %v", got, err)
	}
	if strings.Contains(fake.Calls(), token) {
		t.Errorf("the token is in %q", fake.Calls())
	}
	if left, err := filepath.Glob(filepath.Join(p.Root, "data/local/tmp/*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return got[0]
}

func TestOwner_InstallsOwnsAndHandsOver(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	got := p.takes(t, &enroller{}, nil)
	if got.Outcome != usb.Enrolled || !strings.Contains(p.bundle(), token) {
		t.Errorf("%+v, the bundle %q", got, p.bundle())
	}
	steps := strings.Split(strings.TrimSpace(p.ran(t)), "\n")
	want := []string{"content query", "mkdir", "chmod 700", "pm install -r -g -S 7 <", "content query",
		"dpm set-device-owner dev.muster.agent/dev.muster.agent.AdminReceiver",
		"cmd deviceidle whitelist +dev.muster.agent", "content write --uri content://dev.muster.agent.enroll/bundle <", "rm"}
	if len(steps) != len(want) {
		t.Fatalf("ran %q, want %q", steps, want)
	}
	for i, line := range steps {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("step %d was %q, want %q", i, line, want[i])
		}
	}
}

func TestOwner_KnowsItsOwn(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]usb.Outcome{ours: usb.AlreadyEnrolled, others: usb.Elsewhere} {
		t.Run(id, func(t *testing.T) {
			p := newPhone(t)
			p.write(t, "state", "enrolled")
			p.write(t, "device", id)
			if got := p.takes(t, &enroller{}, nil); got.Outcome != want || p.bundle() != "" {
				t.Errorf("%+v, want %s", got, want)
			}
		})
	}
	p := newPhone(t) // it is the owner and has no code: a run before this one ended early
	p.write(t, "state", "waiting")
	p.fail(t, "dpm", "Trying to set the device owner, but device owner is already set.")
	if got := p.takes(t, &enroller{}, nil); got.Outcome != usb.Enrolled {
		t.Errorf("%+v", got)
	}
}

// A device that lost its key takes a code again, or waits for an administrator.
func TestOwner_LostItsKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state, device, becomes string
		never                  bool
		want                   usb.Outcome
		takes                  bool
	}{
		"takes a code":                     {"lost", ours, "enrolled", false, usb.Enrolled, true},
		"has no identity either":           {"lost", "", "enrolled", false, usb.Enrolled, true},
		"has to be confirmed":              {"lost", ours, "asking", true, usb.Asking, true},
		"waits for that already":           {"asking", ours, "", false, usb.Asking, false},
		"is of another service":            {"lost", others, "", false, usb.Elsewhere, false},
		"of another service, and it waits": {"asking", others, "", false, usb.Elsewhere, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPhone(t)
			p.write(t, "state", test.state)
			p.write(t, "device", test.device)
			p.write(t, "becomes", test.becomes)
			got := p.takes(t, &enroller{never: test.never}, nil)
			if got.Outcome != test.want || (p.bundle() != "") != test.takes || strings.Contains(p.ran(t), "dpm") {
				t.Errorf("%+v, the bundle %q, it ran %s", got, p.bundle(), p.ran(t))
			}
			if test.want == usb.Asking && (got.Asset != "" || !strings.Contains(got.Detail, "an administrator confirms")) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An operator's own build has a package of its own, and the same classes.
func TestOwner_AnotherPackage(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.fail(t, "content write", "[ERROR] no")
	fake := adbtest.New(t, p.Device)
	tool := &usb.Tool{ADB: client(fake), Enroller: &enroller{}, Patience: 5 * time.Second, App: []byte("the app"),
		Package: "com.example.device"}
	if _, err := tool.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"content query --uri content://com.example.device.enroll/state",
		"dpm set-device-owner com.example.device/dev.muster.agent.AdminReceiver",
		"cmd deviceidle whitelist +com.example.device", "content write --uri content://com.example.device.enroll/bundle"} {
		if !strings.Contains(p.ran(t), want) {
			t.Errorf("%q is missing in %s", want, p.ran(t))
		}
	}
}

// A refusal says what the device's maker is known to put in the way.
func TestOwner_NamesWhatMakersPutInTheWay(t *testing.T) {
	t.Parallel()
	for maker, want := range map[string]string{"samsung": "Auto Blocker", "Xiaomi": "remove the account again",
		"POCO": "remove the account again", "Oculus": "cannot be removed"} {
		t.Run(maker, func(t *testing.T) {
			p := newPhone(t)
			p.write(t, "props/ro.product.manufacturer", maker)
			p.fail(t, "dpm", "java.lang.IllegalStateException: Not allowed to set the device owner because there are already some "+
				"accounts on the device.")
			got := p.takes(t, &enroller{}, nil)
			if got.Outcome != usb.Failed || !strings.Contains(got.Detail, "remove each in its settings") ||
				!strings.Contains(got.Detail, want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Every refusal that is known ends in an explanation, with Android's own words.
func TestOwner_ExplainsRefusals(t *testing.T) {
	t.Parallel()
	const state = "java.lang.IllegalStateException: "
	for _, test := range []struct{ tool, says, want string }{
		{"dpm", state + "Not allowed to set the device owner because there are already some accounts on the device.",
			"remove each in its settings"},
		{"dpm", state + "Not allowed to set the device owner because there are already several users on the device.", "more than one user"},
		{"dpm", state + "Trying to set the device owner, but device owner is already set.", "relinquish it"},
		{"dpm", state + "Trying to set the device owner, but the user already has a profile owner.", "work profile"},
		{"dpm", state + "Cannot set the device owner if the device is already set-up", "before the setup is complete"},
		{"dpm", state + "Cannot set the device owner if the device is already provisioned", "before the setup is complete"},
		{"dpm", state + "Not allowed to set the device owner because this device has already paired.", "paired"},
		{"dpm", state + "User not running: 0", "unlock it once"},
		{"dpm", state + "User is not system user: 10", "switch to the first"},
		{"dpm", state + "Cannot provision a unmanaged device in headless system user mode", "without a first user"},
		{"dpm", "java.lang.SecurityException: Neither user 2000 nor current process has android.permission.MANAGE_DEVICE_ADMINS.",
			"Security settings"},
		{"dpm", "java.lang.IllegalArgumentException: Unknown admin: ComponentInfo{dev.muster.agent/dev.muster.agent.AdminReceiver}",
			"another user"},
		{"dpm", "java.lang.RuntimeException: Can't set package ComponentInfo{dev.muster.agent/…} as device owner.", "over USB"},
		{"dpm", "something new", "it said: something new"},
		{"pm install", "Failure [INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected]", "newer version"},
		{"pm install", "Failure [INSTALL_FAILED_UPDATE_INCOMPATIBLE: signatures do not match]", "another key"},
		{"pm install", "Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]", "storage is full"},
		{"pm install", "Failure [INSTALL_FAILED_OLDER_SDK]", "older than 9"},
		{"pm install", "Failure [INSTALL_FAILED_VERIFICATION_FAILURE: Install not allowed]", "Play Protect"},
		{"pm install", "Failure [INSTALL_FAILED_USER_RESTRICTED: Install canceled by user]", "developer options"},
		{"pm install", "Failure [INSTALL_PARSE_FAILED_NOT_APK]", "not a whole"},
		{"content write", "[ERROR] java.lang.IllegalStateException: this device is enrolled already", "enrolled already"},
	} {
		t.Run(test.want, func(t *testing.T) {
			p := newPhone(t)
			p.fail(t, test.tool, test.says)
			got := p.takes(t, &enroller{}, nil)
			if got.Outcome != usb.Failed || !strings.Contains(got.Detail, test.want) {
				t.Errorf("%s says %q: %s %q, want %q", test.tool, test.says, got.Outcome, got.Detail, test.want)
			}
		})
	}
}

// A device that the service does not see says why, and how it becomes free again.
func TestOwner_NotSeen(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	const detail = "cannot reach the service: timeout, really"
	p.write(t, "detail", detail)
	got := p.takes(t, &enroller{never: true}, nil)
	if got.Outcome != usb.Failed || !strings.Contains(got.Detail, detail) || !strings.Contains(got.Detail, "content delete") {
		t.Errorf("%+v", got)
	}
}

// brokenFile cannot be written.
type brokenFile struct{}

func (brokenFile) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A transcript holds what was run and answered, without what identifies.
func TestTranscript_LeavesOutWhatIdentifies(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	p := newPhone(t)
	p.fail(t, "cmd deviceidle", "Account {name=grace@example.com, type=x} on SECRETSERIAL "+token)
	p.write(t, "device", ours)
	p.takes(t, &enroller{}, &usb.Transcript{To: &text})
	for _, want := range []string{"$ dpm set-device-owner dev.muster.agent/dev.muster.agent.AdminReceiver\n  Success", "[account]",
		"[serial]", "Acme Slate, Android 14 (34)$", "exit code 1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	for _, secret := range []string{"grace@", "SECRETSERIAL", token, ours} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("%q is in\n%s", secret, text.String())
		}
	}
	broken := &usb.Transcript{To: brokenFile{}}
	newPhone(t).takes(t, &enroller{}, broken)
	if broken.Err == nil {
		t.Error("a full disk went unnoticed")
	}
}
