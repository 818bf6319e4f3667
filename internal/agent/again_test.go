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
