package agentserver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/rollout"
)

// machine is what a version of the agent is installed on. Files whose bytes begin with
// "evil" are another signer's.
type machine struct {
	code      int64
	installed []string // what was installed, by its bytes
	refuse    error    // of Install
}

func (m *machine) Package() string { return "linux-arm64" }
func (m *machine) Code() int64     { return m.code }

func (m *machine) Check(path string, _ protocol.Update) error {
	content, err := os.ReadFile(path)
	if err == nil && bytes.HasPrefix(content, []byte("evil")) {
		err = errors.New("another key signed the file")
	}
	return err
}

func (m *machine) Install(_ context.Context, path string, u protocol.Update) error {
	if m.refuse != nil {
		return m.refuse
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	m.installed = append(m.installed, string(content))
	m.code = u.Code
	return agent.ErrRestart
}

// updating is a device whose agent takes updates.
type updating struct {
	*phone
	*machine
}

func (w *world) updating() *updating {
	w.t.Helper()
	w.link.Updates = w.db
	u := &updating{w.enroll(protocol.Ed25519), &machine{code: 1}}
	u.options.Installer = u.machine
	u.restart()
	return u
}

// restart starts the process again.
func (u *updating) restart() {
	u.world.t.Helper()
	if err := u.agent.Close(); err != nil {
		u.world.t.Fatal(err)
	}
	u.start()
}

// release rolls a file out to all devices.
func (w *world) release(version string, code int64, content []byte) rollout.Release {
	w.t.Helper()
	sum := sha256.Sum256(content)
	r := rollout.Release{Version: version, Package: "linux-arm64", Code: code, SHA256: hex.EncodeToString(sum[:]),
		Size: int64(len(content)), Signer: "s"}
	err := w.db.AddRelease(w.t.Context(), r, content)
	if err == nil {
		_, err = w.db.BeginRollout(w.t.Context(), version, 100)
	}
	all, err2 := w.db.Rollouts(w.t.Context())
	if err = errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	for _, was := range all {
		if was.Version == version {
			is := was
			is.Ring, is.Upto = 100, math.MaxInt64
			if moved, err := w.db.MoveRollout(w.t.Context(), was, is); err != nil || !moved {
				w.t.Fatal(moved, err)
			}
		}
	}
	return r
}

// outcome is what the service knows of the device's update.
func (u *updating) outcome(version string) (m rollout.Member) {
	u.world.t.Helper()
	err := u.world.db.Members(u.world.t.Context(), version, func(one rollout.Member) {
		if one.DeviceID == u.agent.DeviceID() {
			m = one
		}
	})
	if err != nil {
		u.world.t.Fatal(err)
	}
	return m
}

// settle checks in until there is nothing to do, starting the agent again where it asks.
func (u *updating) settle() {
	u.world.t.Helper()
	for range 6 {
		switch err := u.checkIn(); {
		case errors.Is(err, agent.ErrRestart):
			u.restart()
		case err != nil:
			u.world.t.Fatal(err)
		}
	}
}

// content is a file of several ranges and parts.
func content(prefix string) []byte {
	return append([]byte(prefix), bytes.Repeat([]byte("0123456789"), 250_000)...)
}

// No check-in of a command has the service forget which version of the agent runs.
func TestUpdate_EachCheckInSaysWhichAgentRuns(t *testing.T) {
	w := newWorld(t)
	u := w.updating()
	u.mustCheckIn()
	checkIns := 0
	u.between(func(_ string, _ *protocol.CheckinResponse, body []byte) []byte {
		checkIns++
		if got := w.device(u.phone).Build; got.Package != "linux-arm64" || got.Code != 1 {
			t.Errorf("after request %d the service knows %+v", checkIns, got)
		}
		return body
	})
	u.send(command.SyncPolicy, nil)
	u.mustCheckIn()
	u.send(command.ChangePolicy, command.PolicyRef(w.newPolicy("Another").ID))
	u.mustCheckIn()
	if checkIns < 6 {
		t.Errorf("%d requests", checkIns)
	}
}

func TestUpdate_Installs(t *testing.T) {
	w := newWorld(t)
	u := w.updating()
	u.settle() // the service knows what runs
	file := content("good")
	w.release("2.0", 2, file)
	u.settle()
	if len(u.installed) != 1 || u.installed[0] != string(file) {
		t.Fatalf("installed %d times", len(u.installed))
	}
	if m := u.outcome("2.0"); m.Outcome != rollout.Installed || m.Code != 2 || m.BeganAt.IsZero() || m.EndedAt.IsZero() {
		t.Errorf("the service knows %+v", m)
	}
	if left, _ := filepath.Glob(filepath.Join(u.options.Dir, "update*")); len(left) != 1 {
		t.Errorf("it leaves %v", left)
	}
	w.release("1.0-again", 3, content("good again"))
	u.settle()
	if len(u.installed) != 2 || u.outcome("1.0-again").Outcome != rollout.Installed {
		t.Errorf("the next version: %d, %+v", len(u.installed), u.outcome("1.0-again"))
	}
}

// Killed before every step, once, it installs the update once, and the service learns it.
func TestUpdate_KilledAtEveryStep(t *testing.T) {
	w := newWorld(t)
	w.link.Updates = w.db
	w.release("2.0", 2, content("good"))
	for kill, killed := 1, true; killed; kill++ {
		killed = false
		u := w.updating()
		step := 0
		u.options.Crash = func(name string) {
			if step++; step == kill {
				killed = true
				panic(name)
			}
		}
		for range 8 {
			err := error(nil)
			func() {
				defer func() { _ = recover() }()
				if err = u.checkIn(); errors.Is(err, agent.ErrRestart) {
					u.restart()
				}
			}()
			if killed {
				u.options.Crash = nil
				u.restart()
			}
		}
		if m := u.outcome("2.0"); m.Outcome != rollout.Installed || len(u.installed) != 1 {
			t.Errorf("killed at step %d: installed %d times, %+v", kill, len(u.installed), m)
		}
		if !killed && kill < 8 {
			t.Errorf("there are only %d steps", kill)
		}
	}
}

// The service loses answers of downloads and check-ins; a device that was away goes on.
func TestUpdate_BadNetwork(t *testing.T) {
	w := newWorld(t)
	u := w.updating()
	u.settle()
	w.release("2.0", 2, content("good"))
	var n atomic.Int32
	w.losing(func(*http.Request) bool { return n.Add(1)%3 == 0 })
	for range 60 {
		if err := u.checkIn(); errors.Is(err, agent.ErrRestart) {
			u.restart()
		}
	}
	if m := u.outcome("2.0"); m.Outcome != rollout.Installed || len(u.installed) != 1 {
		t.Errorf("installed %d times, %+v", len(u.installed), m)
	}
}

// What must not be installed is not, and its reason is reported once; the device stays.
func TestUpdate_Refused(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		change  func(u *updating)
		want    rollout.Outcome
		detail  string
	}{
		"other signer": {"evil", func(*updating) {}, rollout.Failed, "another key"},
		"refused each time": {"good", func(u *updating) { u.refuse = errors.New("INSTALL_FAILED\nno") }, rollout.Failed,
			"INSTALL_FAILED no"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			u := w.updating()
			u.settle()
			w.release("2.0", 2, content(test.content))
			test.change(u)
			u.settle()
			u.settle()
			m := u.outcome("2.0")
			if m.Outcome != test.want || !strings.Contains(m.Detail, test.detail) || len(u.installed) > 0 {
				t.Fatalf("%d installed, %+v", len(u.installed), m)
			}
			u.settle()
			if again := u.outcome("2.0"); again != m && again.EndedAt != m.EndedAt {
				t.Errorf("it says it again: %+v, %+v", m, again)
			}
			w.release("3.0", 3, content("good, and higher"))
			u.refuse = nil
			u.settle()
			if u.outcome("3.0").Outcome != rollout.Installed {
				t.Errorf("the next version: %+v", u.outcome("3.0"))
			}
		})
	}
}

// Another process, or who ends TLS, forges, replays, cuts and reorders: nothing is installed,
// and with true answers the device updates afterwards.
func TestUpdate_HostileAnswers(t *testing.T) {
	w := newWorld(t)
	first := w.updating()
	first.settle()
	file := content("good")
	w.release("2.0", 2, file)
	evil, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	var replayed, foreign json.RawMessage
	answers := func(change func(all map[string]json.RawMessage)) func(string, int, []byte) (int, []byte) {
		return func(path string, status int, body []byte) (int, []byte) {
			var all map[string]json.RawMessage
			if !strings.HasSuffix(path, "/checkin") || json.Unmarshal(body, &all) != nil || all["update"] == nil {
				return status, body
			}
			change(all)
			text, _ := json.Marshal(all)
			return status, text
		}
	}
	forge := func(key protocol.PrivateKey, id, kind string, change func(u *protocol.Update)) func(all map[string]json.RawMessage) {
		return func(all map[string]json.RawMessage) {
			var sealed protocol.Envelope
			var offer protocol.Update
			_ = json.Unmarshal(all["update"], &sealed)
			public, _ := w.link.Signer.Key.Public()
			_ = sealed.Open(public, protocol.KindUpdate, &offer)
			change(&offer)
			forged, _ := protocol.Seal(key, id, kind, offer)
			all["update"], _ = json.Marshal(forged)
		}
	}
	files := func(change func(body []byte) []byte) func(string, int, []byte) (int, []byte) {
		return func(path string, status int, body []byte) (int, []byte) {
			if strings.Contains(path, "/file/") {
				body = change(body)
			}
			return status, body
		}
	}
	other := w.updating()
	other.options.Client = answering(answers(func(all map[string]json.RawMessage) { foreign = all["update"]; delete(all, "update") }))
	other.restart()
	other.settle()
	true1 := w.link.Signer.Key
	for name, change := range map[string]func(string, int, []byte) (int, []byte){
		"signed by another":  answers(forge(evil, "k1", protocol.KindUpdate, func(*protocol.Update) {})),
		"under another id":   answers(forge(evil, "evil", protocol.KindUpdate, func(*protocol.Update) {})),
		"of another kind":    answers(forge(true1, "k1", protocol.KindAssignment, func(*protocol.Update) {})),
		"for another device": answers(func(all map[string]json.RawMessage) { all["update"] = foreign }),
		"of another request": answers(forge(true1, "k1", protocol.KindUpdate, func(u *protocol.Update) { u.Number-- })),
		"a lower version":    answers(forge(true1, "k1", protocol.KindUpdate, func(u *protocol.Update) { u.Code = 1 })),
		"another package": answers(forge(true1, "k1", protocol.KindUpdate, func(u *protocol.Update) {
			u.Package = "linux-amd64"
		})),
		"no size":   answers(forge(true1, "k1", protocol.KindUpdate, func(u *protocol.Update) { u.File.Size = 0 })),
		"too large": answers(forge(true1, "k1", protocol.KindUpdate, func(u *protocol.Update) { u.File.Size = 1 << 40 })),
		"a path in place of a sum": answers(forge(true1, "k1", protocol.KindUpdate, func(u *protocol.Update) {
			u.File.SHA256 = "../../checkin"
		})),
		"another sum": answers(forge(true1, "k1", protocol.KindUpdate, func(u *protocol.Update) {
			u.File.SHA256 = strings.Repeat("0", 64)
		})),
		"replayed": answers(func(all map[string]json.RawMessage) {
			if replayed == nil {
				replayed = all["update"]
				delete(all, "update")
			} else {
				all["update"] = replayed
			}
		}),
		"other bytes":     files(func(body []byte) []byte { return bytes.Repeat([]byte("x"), len(body)) }),
		"cut":             files(func(body []byte) []byte { return body[:len(body)/2] }),
		"nothing":         files(func([]byte) []byte { return nil }),
		"longer":          files(func(body []byte) []byte { return append(body, "more"...) }),
		"one byte a time": files(func(body []byte) []byte { return body[:min(1, len(body))] }),
		"another status": func(path string, status int, body []byte) (int, []byte) {
			if strings.Contains(path, "/file/") {
				status = http.StatusOK
			}
			return status, body
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := w.updating()
			u.options.Client = answering(change)
			u.restart()
			for range 6 {
				if err := u.checkIn(); errors.Is(err, agent.ErrRestart) && name != "cut" && name != "longer" {
					t.Fatal("it installs")
				}
			}
			if len(u.installed) > 0 && u.installed[0] != string(file) {
				t.Fatal("it installed other bytes")
			}
			u.options.Client = agent.NewClient()
			now := time.Now().Add(25 * time.Hour) // what failed rests for a day
			u.options.Now, w.link.Now = func() time.Time { return now }, func() time.Time { return now }
			defer func() { w.link.Now = time.Now }()
			u.restart()
			u.settle()
			if len(u.installed) != 1 || u.installed[0] != string(file) {
				t.Errorf("with true answers it installed %d", len(u.installed))
			}
		})
	}
}

// A pause between the download and the installation holds the device back; a week away
// changes nothing.
func TestUpdate_HeldBack(t *testing.T) {
	w := newWorld(t)
	u := w.updating()
	u.settle()
	w.release("2.0", 2, content("good"))
	u.options.Client = answering(func(path string, status int, body []byte) (int, []byte) {
		if strings.Contains(path, "/file/") {
			if _, err := w.db.PauseRollouts(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return status, body
	})
	u.restart()
	u.settle()
	if len(u.installed) > 0 || u.outcome("2.0").BeganAt.IsZero() == false {
		t.Fatalf("installed %d, %+v", len(u.installed), u.outcome("2.0"))
	}
	now := time.Now().Add(7 * 24 * time.Hour)
	u.options.Now, w.link.Now = func() time.Time { return now }, func() time.Time { return now }
	if _, err := w.db.BeginRollout(t.Context(), "2.0", 100); err != nil {
		t.Fatal(err)
	}
	u.restart()
	u.settle()
	if len(u.installed) != 1 || u.outcome("2.0").Outcome != rollout.Installed {
		t.Errorf("after the pause: %d, %+v", len(u.installed), u.outcome("2.0"))
	}
}
