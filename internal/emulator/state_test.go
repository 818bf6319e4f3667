package emulator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/emulator"
)

// restart ends the emulator and makes another one on the same directory.
func (r *fixture) restart(dir string) *fixture {
	r.t.Helper()
	r.stop()
	next := newFixture(r.t, inDir(dir))
	next.enterprise = r.enterprise
	next.base = r.base
	next.client.Transport = direct{next.emulator.Handler()}
	next.connect()
	return next
}

func inDir(dir string) func(*emulator.Options) {
	return func(o *emulator.Options) { o.DataDir = dir }
}

// An emulator on the same directory goes on where the last one stopped.
func TestState_SurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{Behavior: emulator.Behavior{CommandOutcome: "HOLD", LatencyMS: new(2000)}})
		lost := r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{Model: "TC58"})
		gone := r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{Behavior: emulator.Behavior{Online: new(false)}})
		token := r.token(&am.EnrollmentToken{PolicyName: "p"})
		if _, err := r.management.Enterprises.Devices.Delete(gone).Do(); err != nil {
			t.Fatal(err)
		}
		held := r.issue(device, &am.Command{Type: "LOCK", Duration: "3600s"})
		short := r.issue(device, &am.Command{Type: "LOCK", Duration: "60s"})
		r.complete(lost, startLostMode())
		push := r.emulator.RegisterPush("", "")
		r.pull()
		r.set(device, emulator.Behavior{CommandOutcome: "HOLD"})
		secret := r.issue(lost, &am.Command{Type: "RESET_PASSWORD", NewPassword: "marker-77"})
		before := r.get(lost)
		r = r.restart(dir)
		if got := r.get(lost); got.HardwareInfo.SerialNumber != before.HardwareInfo.SerialNumber || got.AppliedState != "LOST" ||
			got.EnrollmentTime != before.EnrollmentTime {
			t.Errorf("came back as %+v", got)
		}
		time.Sleep(90 * time.Second)
		if !r.operation(short.Name).Done || r.operation(held.Name).Done || !r.operation(secret.Name).Done {
			t.Error("the commands did not go on")
		}
		r.wantKinds("COMMAND COMMAND")
		r.set(device, emulator.Behavior{CommandOutcome: "SUCCESS"})
		if !r.operation(held.Name).Done {
			t.Error("the held command was forgotten")
		}
		r.set(gone, emulator.Behavior{Online: new(true)})
		r.wantKinds("COMMAND STATUS_REPORT")
		time.Sleep(5 * time.Minute)
		if notes := r.pull(); !strings.HasPrefix(kinds(notes), "USAGE_LOGS") {
			t.Errorf("the lost device is silent: %s", kinds(notes))
		}
		if _, err := r.emulator.Enroll(t.Context(), emulator.Enrollment{EnrollmentToken: token.Value}); err != nil {
			t.Errorf("the token was forgotten: %v", err)
		}
		if !r.emulator.DropPush(push) {
			t.Error("the push token was forgotten")
		}
		if p, err := r.management.Enterprises.Policies.Patch(r.enterprise+"/policies/p", &am.Policy{}).Do(); err != nil || p.Version != 1 {
			t.Errorf("the policy came back changed: %+v, %v", p, err)
		}
	}, inDir(dir))
	text, err := os.ReadFile(filepath.Join(dir, "emulator.json"))
	if err != nil || strings.Contains(string(text), "marker-77") {
		t.Errorf("the state keeps a password, or %v", err)
	}
}

// Unacknowledged messages are delivered after a restart.
func TestState_MessagesSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	virtual(t, func(t *testing.T, r *fixture) {
		r.device(emulator.Enrollment{})
		r.enroll(r.enterprise+"/policies/p", "", emulator.Enrollment{})
		if code, text := r.raw("POST", "/v1/"+defaultSubscription+":pull", `{"maxMessages":1}`); code != 200 ||
			!strings.Contains(text, "ENROLLMENT") {
			t.Fatalf("%d %s", code, text)
		}
		r = r.restart(dir)
		r.wantKinds("ENROLLMENT STATUS_REPORT")
		r = r.restart(dir)
		r.wantKinds("")
	}, inDir(dir))
}

// The state is saved while the emulator runs, so that a crash loses little.
func TestState_SavedWhileRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		time.Sleep(time.Second)
		text, err := os.ReadFile(filepath.Join(dir, "emulator.json"))
		if err != nil || !strings.Contains(string(text), strings.TrimPrefix(r.enterprise, "enterprises/")) {
			t.Errorf("not saved within a second: %v", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("left behind %v, %v", entries, err)
		}
	}, inDir(dir))
}

func TestState_Damaged(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`{"version":1,`: "is damaged", `{"version":99}`: "has form 99", `[]`: "is damaged"} {
		t.Run(text, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "emulator.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := emulator.New(emulator.Options{Now: time.Now, DataDir: dir}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
}

func TestEmulator_Options(t *testing.T) {
	t.Parallel()
	if _, err := emulator.New(emulator.Options{}); err == nil {
		t.Error("an emulator without a clock was made")
	}
	if _, err := emulator.New(emulator.Options{Now: time.Now, Settings: emulator.Settings{Quota: emulator.Quota{Requests: 1}}}); err ==
		nil {
		t.Error("a quota without a time was accepted")
	}
	virtual(t, func(t *testing.T, r *fixture) {
		if err := r.emulator.Run(t.Context()); err == nil {
			t.Error("a second Run was accepted")
		}
		signup, err := r.management.SignupUrls.Create().ProjectId("p").CallbackUrl("https://a.example/x").Do()
		if err != nil || !strings.HasPrefix(signup.Url, "https://emulator.example/signup/") {
			t.Errorf("sign-up is %+v, %v", signup, err)
		}
	}, func(o *emulator.Options) { o.PublicURL = "https://emulator.example/" })
}
