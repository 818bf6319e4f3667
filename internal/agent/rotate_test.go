package agent_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// secretOf is a key as it is kept.
func secretOf(t *testing.T, name string) []byte {
	t.Helper()
	secret, err := vectorKey(t, name).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// A device changes its key after a year, or goes on with the one that a change was begun with. Where the service has that one
// already, it is offered by itself.
func TestOnce_ChangesItsKey(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, test := range []struct {
		name  string
		made  int64
		next  string // the key that a change was begun with
		code  protocol.ErrorCode
		asks  int
		takes bool
	}{
		{"a year old", commandsNow - year.Milliseconds(), "", "", 0, false},
		{"older", commandsNow - year.Milliseconds() - 1, "", "", 1, true},
		{"of unknown age", 0, "", "", 0, false},
		{"begun", commandsNow, "next", "", 1, true},
		{"begun, and had", commandsNow, "next", protocol.BadSignature, 2, true},
		{"begun, and refused", commandsNow, "next", protocol.Busy, 1, false},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		change := object{"keyMade": test.made}
		if test.next != "" {
			change["nextKey"] = secretOf(t, test.next)
		}
		w.edit("identity.json", change)
		var offered []protocol.PublicKey
		a := (&interrupted{commandWorld: w}).agentFor(w, roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/rotate") {
				return w.RoundTrip(r)
			}
			var asks protocol.RotateRequest
			if err := json.NewDecoder(r.Body).Decode(&asks); err != nil {
				return nil, err
			}
			if offered = append(offered, asks.Key); test.code != "" && len(offered) == 1 {
				return respond(r, http.StatusConflict, protocol.Refusal{Code: test.code})
			}
			return respond(r, http.StatusOK, object{})
		}))
		_, err := a.Once(t.Context())
		w.close(a)
		begun := test.next == "" || !slices.ContainsFunc(offered, func(k protocol.PublicKey) bool {
			return k != forger{t: t}.public(vectorKey(t, test.next))
		})
		var kept struct{ Key, NextKey []byte }
		if err := json.Unmarshal([]byte(w.kept("identity.json")), &kept); err != nil {
			t.Fatal(err)
		}
		if test.takes {
			key, err := protocol.ParsePrivateKey(kept.Key)
			if err != nil || (forger{t: t}).public(key) != offered[len(offered)-1] {
				t.Errorf("%s: it has another key than the service: %v", test.name, err)
			}
		}
		expect.Equal(t, test.name, expect.Values{"offers": {len(offered), test.asks}, "goes on": {begun, true},
			"has another": {!slices.Equal(kept.Key, secretOf(t, "device")), test.takes}, "is changing": {len(kept.NextKey) > 0,
				!test.takes && test.next != ""}, "fails": {err != nil, test.asks > 0 && !test.takes}})
	}
}

// What another process wrote of the same device is kept; an identity that was given up does not come back.
func TestOnce_BesideAnotherProcess(t *testing.T) {
	t.Parallel()
	for device, keeps := range map[string]bool{"d1": true, "d2": false} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		a := (&interrupted{commandWorld: w}).agentFor(w, w)
		w.edit("identity.json", object{"deviceId": device, "key": secretOf(t, "next"), "reserved": 50_000})
		_, err := a.Once(t.Context())
		w.close(a)
		var kept struct {
			Key      []byte
			Reserved int64
		}
		if err := json.Unmarshal([]byte(w.kept("identity.json")), &kept); err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, device, expect.Values{"error": {err, error(nil)}, "its key": {slices.Equal(kept.Key, secretOf(t, "next")), keeps},
			"its numbers": {kept.Reserved >= 50_000, keeps}})
	}
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
	a := (&interrupted{commandWorld: w}).agentFor(w, w)
	defer w.close(a)
	if err := os.Remove(filepath.Join(w.dir, "identity.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Once(t.Context()); !errors.Is(err, agent.ErrNotEnrolled) || w.kept("identity.json") != "" {
		t.Errorf("given up: %v, %s", err, w.kept("identity.json"))
	}
}

// A key that follows may begin with the one before, at most a day from now; the one before is trusted for a week more.
func TestLearn_WhenKeysBegin(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, test := range []struct {
		id     string
		begins int64
		want   string
	}{
		{"k2", commandsNow + day.Milliseconds(), "k1 k2"}, {"k2", commandsNow + day.Milliseconds() + 1, "k1"},
		{"k2", commandsNow - 7*day.Milliseconds(), "k1 k2"}, {"k2", commandsNow - 7*day.Milliseconds() - 1, "k2"},
		{"k2", 1, "k2"}, {"k2", 0, "k1"}, {"k1", commandsNow, "k1"},
	} {
		w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")
		j, err := agent.NewJudge(w.dir, w.clock)
		if err != nil {
			t.Fatal(err)
		}
		f := forger{t: t}
		announced := f.seal(w.key, "k1", protocol.KindKey,
			protocol.CommandKey{ID: test.id, Key: f.public(vectorKey(t, "next")), NotBefore: test.begins})
		if got := strings.Join(j.Learn([]protocol.Envelope{announced}), " "); got != test.want {
			t.Errorf("%s from %d on: it trusts %s, want %s", test.id, test.begins, got, test.want)
		}
	}
}

// A device makes one key for a code at a service.
func TestEnroll_KeyOfACode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*againWorld)
		same   bool
	}{
		"the same code":  {func(*againWorld) {}, true},
		"another code":   {func(s *againWorld) { s.e.Token = "other" }, false},
		"elsewhere":      {func(s *againWorld) { s.e.Server = "https://other.example" }, false},
		"a damaged note": {func(s *againWorld) { s.write("enrolling.json", "damaged") }, false},
	} {
		s := newAgainWorld(t)
		s.dir = t.TempDir()
		s.e.Dir, s.refuses = s.dir, protocol.Refusal{Code: protocol.Busy}
		for try := range 2 {
			if _, err := agent.Enroll(t.Context(), s.e); err == nil {
				t.Fatal("it is enrolled")
			}
			if try == 0 {
				test.change(s)
			}
		}
		if same := s.asked[0].Key == s.asked[1].Key; same != test.same {
			t.Errorf("%s: the same key: %t", name, same)
		}
	}
	s := newAgainWorld(t)
	s.dir = t.TempDir()
	s.e.Dir = s.dir
	s.unreadable("enrolling.json")
	if _, err := agent.Enroll(t.Context(), s.e); err == nil || len(s.asked) > 0 {
		t.Errorf("with a note that cannot be read it asks %d times: %v", len(s.asked), err)
	}
}
