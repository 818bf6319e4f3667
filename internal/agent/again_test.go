package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// againWorld is a service that a device asks to enroll it again, and that device.
type againWorld struct {
	*enroller
	says      string                   // what it says to the device: a refusal's code, a tombstone's action, or "away"; empty: it answers
	gives     protocol.TombstoneAction // in answer to the enrollment
	otherKey  bool                     // the enrollment is answered with a key that the device does not know
	paths     []string                 // of the requests
	e         agent.Enrollment
	lost      bool // the device lost its identity
	whom, key any  // the role and the key that it noted of whom it obeys
}

func newAgainWorld(t *testing.T) *againWorld {
	t.Helper()
	w := newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "RECEIVED", "intime,answers,does")
	s := &againWorld{enroller: &enroller{commandWorld: w}, whom: protocol.Manager,
		key: protocol.CommandKey{ID: "k1", Key: forger{t: t}.public(w.key), NotBefore: 1}}
	s.e = agent.Enrollment{Server: "https://muster.example", Token: "token", Role: protocol.Manager, Algorithm: protocol.ES256,
		Options: agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: s}, Now: w.clock, Log: slog.New(slog.DiscardHandler)}}
	return s
}

// stone is a tombstone in answer to a request with the signature.
func (w *commandWorld) stone(action protocol.TombstoneAction, signature string) protocol.Refusal {
	sealed := forger{t: w.t}.seal(w.key, "k1", protocol.KindTombstone,
		protocol.Tombstone{DeviceID: "d1", Action: action, InReplyTo: signature, Time: commandsNow})
	return protocol.Refusal{Code: protocol.Ended, Signed: &sealed}
}

// respond answers a request with a value.
func respond(r *http.Request, status int, value any) (*http.Response, error) {
	text, err := json.Marshal(value)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// RoundTrip implements http.RoundTripper.
func (s *againWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, protocol.Base)
	s.paths = append(s.paths, path)
	switch {
	case path == "/enroll":
		return s.enroll(r)
	case path == "/checkin":
		return s.commandWorld.RoundTrip(r)
	case s.says == "away":
		return nil, errAway
	}
	status, answer := http.StatusConflict, any(protocol.Refusal{Code: protocol.ErrorCode(s.says)})
	switch action := protocol.TombstoneAction(s.says); action {
	case "":
		status = http.StatusOK
	case protocol.Unenroll, protocol.WipeAgain, protocol.Superseded:
		answer = s.stone(action, r.Header.Get(protocol.HeaderSignature))
	}
	return respond(r, status, answer)
}

func (s *againWorld) enroll(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var asks protocol.EnrollRequest
	if err := json.Unmarshal(body, &asks); err != nil {
		return nil, err
	}
	if s.gives != "" {
		s.refuses = s.stone(s.gives, asks.Proof)
	}
	if s.otherKey {
		s.commandWorld.key = vectorKey(s.t, "other")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return s.enroller.RoundTrip(r)
}

// againRow is a device that enrolls again.
type againRow struct {
	name   string
	change func(*againWorld)
	again  bool
	says   string
	want   string // in the error; empty: it is enrolled
	paths  string // of its requests
	word   string // what it adds of the device before: its former identity, or that it lost that
}

func (row againRow) try(t *testing.T) {
	t.Helper()
	s := newAgainWorld(t)
	s.says, s.e.Again = row.says, row.again
	if row.change != nil {
		row.change(s)
	}
	if s.whom != nil {
		s.write("service.json", object{"role": s.whom, "commandKey": s.key})
	}
	if s.lost {
		s.write("identity.json", "damaged")
	}
	s.write("order", "rotate")
	_, err := agent.Enroll(t.Context(), s.e)
	word := ""
	for _, asks := range s.asked {
		if asks.Former != nil && asks.Former.DeviceID == "d1" {
			word += "former"
		}
		if asks.Lost != nil && asks.Lost.KeyID == "k1" {
			word += "lost"
		}
	}
	_, journal := os.Stat(filepath.Join(s.dir, "journal"))
	_, order := os.Stat(filepath.Join(s.dir, "order"))
	reported := strings.Contains(s.kept("applied.json"), `"reported":true`)
	expect.Equal(t, row.name, expect.Values{"enrolled": {err == nil, row.want == ""}, "requests": {strings.Join(s.paths, " "), row.paths},
		"says why": {err == nil || strings.Contains(err.Error(), row.want), true}, "adds": {word, row.word},
		"enrolled already": {errors.Is(err, agent.ErrEnrolled), row.want == already}, "keeps the journal": {journal == nil, row.want != ""},
		"keeps the order": {order == nil, row.want != ""}, "policy reported": {reported, row.want != ""}})
	if err != nil {
		t.Log(err)
	}
}

// already is in agent.ErrEnrolled.
const already = "is enrolled already"

// A device enrolls again if its service has released it, or if it is asked to; never out of an order to erase it, at another
// service, or in another role.
func TestEnroll_Again(t *testing.T) {
	t.Parallel()
	companion := func(s *againWorld) { s.e.Role = protocol.Companion; s.edit("identity.json", object{"role": "companion"}) }
	changing := func(s *againWorld) {
		next, err := vectorKey(t, "next").Marshal()
		if err != nil {
			t.Fatal(err)
		}
		s.edit("identity.json", object{"nextKey": next})
	}
	for _, row := range []againRow{
		{"managed", nil, false, "not_found", already, "/policy/none", ""},
		{"managed, and is to", nil, true, "not_found", "", "/policy/none /checkin /enroll", "former"},
		{"managed, and is to, with an answer", nil, true, "", "", "/policy/none /checkin /enroll", "former"},
		{"released", nil, false, "unenroll", "", "/policy/none /enroll", ""},
		{"superseded", nil, false, "superseded", "", "/policy/none /enroll", ""},
		{"superseded, and is to", nil, true, "superseded", "", "/policy/none /enroll", ""},
		{"to be erased", nil, false, "wipe", "ordered to erase", "/policy/none", ""},
		{"to be erased, and is to", nil, true, "wipe", "ordered to erase", "/policy/none", ""},
		{"a companion to be erased", companion, false, "wipe", "", "/policy/none /enroll", ""},
		{"a managed companion, and is to", companion, true, "not_found", "", "/policy/none /checkin /enroll", ""},
		{"away", nil, false, "away", already, "/policy/none", ""},
		{"away, and is to", nil, true, "away", "connection refused", "/policy/none", ""},
		{"not known any more", nil, false, "bad_signature", already, "/policy/none", ""},
		{"not known any more, and is to", nil, true, "bad_signature", "", "/policy/none /enroll", "lost"},
		{"superseded, as it changes its key", changing, false, "superseded", "", "/rotate /enroll", ""},
		{"managed, as it changes its key", changing, false, "not_found", already, "/rotate /policy/none", ""},
		{"at another service", func(s *againWorld) { s.e.Server = "https://other.example" }, false, "superseded", already, "", ""},
		{"at the same service", func(s *againWorld) { s.e.Server += "/" }, false, "superseded", "", "/policy/none /enroll", ""},
		{"in another role", func(s *againWorld) { s.e.Role = protocol.Companion }, false, "superseded", already, "", ""},
	} {
		row.try(t)
	}
}

// A device that enrolls again keeps to the key by which it knows its service, also where it lost its identity.
func TestEnroll_AgainAtTheServiceItKnows(t *testing.T) {
	t.Parallel()
	lost := func(change func(*againWorld)) func(*againWorld) {
		return func(s *againWorld) {
			s.lost = true
			change(s)
		}
	}
	nothing := func(*againWorld) {}
	otherKey, ed25519 := func(s *againWorld) { s.otherKey = true }, func(s *againWorld) { s.e.Algorithm = protocol.Ed25519 }
	wipes := func(s *againWorld) { s.gives = protocol.WipeAgain }
	known, other := forger{t: t}.public(vectorKey(t, "device")), forger{t: t}.public(vectorKey(t, "other"))
	for _, row := range []againRow{
		{"by the code of its service", func(s *againWorld) { s.e.CommandKey = known.SPKI }, false, "unenroll", "", "/policy/none /enroll", ""},
		{"by the code of another", func(s *againWorld) { s.e.CommandKey = other.SPKI }, false, "unenroll", "does not know", "/policy/none", ""},
		{"with another algorithm", ed25519, false, "unenroll", "use --alg es256", "/policy/none", ""},
		{"answered with another key", otherKey, false, "unenroll", "does not name the command key", "/policy/none /enroll", ""},
		{"answered with a wipe", wipes, false, "unenroll", "ordered to erase", "/policy/none /enroll", ""},
		{"answered with an end", func(s *againWorld) { s.gives = protocol.Superseded }, false, "unenroll", "refused the enrollment",
			"/policy/none /enroll", ""},
		{"lost", lost(nothing), false, "", "", "/enroll", "lost"},
		{"lost, a companion", lost(func(s *againWorld) { s.whom, s.e.Role = "companion", "companion" }), false, "", "", "/enroll", ""},
		{"lost, in another role", lost(func(s *againWorld) { s.whom = "companion" }), false, "", "use --role companion", "", ""},
		{"lost, with another algorithm", lost(ed25519), false, "", "use --alg es256", "", ""},
		{"lost, without a note", lost(func(s *againWorld) { s.whom = nil }), false, "", "not known either", "", ""},
		{"lost, with a note of no id", lost(func(s *againWorld) { s.key = protocol.CommandKey{Key: known} }), false, "", "not known either",
			"", ""},
		{"lost, with a note of no key", lost(func(s *againWorld) { s.key = object{"id": "k1"} }), false, "", "not known either", "", ""},
		{"lost, answered with another key", lost(otherKey), false, "", "does not name the command key", "/enroll", "lost"},
		{"lost, answered with a wipe", lost(wipes), false, "", "refused the enrollment", "/enroll", "lost"},
	} {
		row.try(t)
	}
}
