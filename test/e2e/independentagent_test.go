package e2e_test

// An agent that was written from docs/agent-protocol.md alone: it uses nothing of
// this repository, so that the page is what makes it work (independentagentflow_test.go).

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type object = map[string]any

var errStrangerGone = errors.New("the stranger is no longer managed")

// stranger is a device with that agent. Its world survives the agent's death; its
// memory is a file.
type stranger struct {
	dir    string
	alg    string
	client *http.Client
	clock  func() time.Time
	crash  func(step string)

	// The device.
	boots, battery int
	settings       object
	shown          map[string]string // by command
	opened         []string
	erased         bool

	memory strangerMemory
}

// strangerMemory is what the agent has on disk.
type strangerMemory struct {
	Generation            int
	Server, Device        string
	Key                   []byte // PKCS #8
	Next, Offset, Latest  int64
	Keys                  []strangerKey // oldest first
	Reported, Superseded  bool
	Policy                object // id, version
	Wanted                object
	Commands              map[string]*strangerCommand
	Order                 []string
	Ended, RememberedBoot string
}

type strangerKey struct {
	ID  string `json:"id"`
	Key struct {
		Alg  string `json:"alg"`
		SPKI string `json:"spki"`
	} `json:"key"`
	NotBefore int64 `json:"notBefore"`
}

type strangerCommand struct {
	Type, Stage, Boot, State, Outcome string
	Args                              object
	Deadline, At                      int64
	Accepted                          bool
}

// save writes the memory, whole, to one of two files in turn: a damaged one leaves
// the other.
func (s *stranger) save() {
	s.memory.Generation++
	text, err := json.Marshal(s.memory)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(text)
	name := filepath.Join(s.dir, fmt.Sprintf("memory-%d", s.memory.Generation%2))
	if err := os.WriteFile(name+".new", append(sum[:], text...), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		panic(err)
	}
}

// load starts the agent's process again.
func (s *stranger) load() {
	var best strangerMemory
	for n := range 2 {
		text, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("memory-%d", n)))
		if err != nil || len(text) < sha256.Size {
			continue
		}
		var m strangerMemory
		if sum := sha256.Sum256(text[sha256.Size:]); bytes.Equal(sum[:], text[:sha256.Size]) &&
			json.Unmarshal(text[sha256.Size:], &m) == nil && m.Generation > best.Generation {
			best = m
		}
	}
	s.memory = best
	s.memory.Next += 1000 // what the damaged file may have used
	for _, c := range s.memory.Commands {
		if c.Stage == "STARTED" && !(c.Type == "REBOOT" || c.Type == "SHUTDOWN") {
			c.Stage, c.Accepted = "RECEIVED", true
		}
		if c.Stage == "DONE" && (c.Type == "STATUS_REPORT" || c.Type == "LOCATION_UPDATE") && c.State == "DONE" {
			c.Stage = "RECEIVED" // what was reported was in memory
		}
	}
}

func (s *stranger) boot() string { return fmt.Sprintf("boot-%d", s.boots) }

func (s *stranger) step(name string) {
	if s.crash != nil {
		s.crash(name)
	}
}

func (s *stranger) time() int64 { return s.clock().UnixMilli() + s.memory.Offset }

func text64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (s *stranger) key() crypto.Signer {
	key, err := x509.ParsePKCS8PrivateKey(s.memory.Key)
	if err != nil {
		panic(err)
	}
	return key.(crypto.Signer)
}

func (s *stranger) sign(lines ...string) string {
	message := []byte(strings.Join(lines, "\n"))
	var sig []byte
	var err error
	if s.alg == "es256" {
		sum := sha256.Sum256(message)
		sig, err = s.key().Sign(rand.Reader, sum[:], crypto.SHA256)
	} else {
		sig, err = s.key().Sign(rand.Reader, message, crypto.Hash(0))
	}
	if err != nil {
		panic(err)
	}
	return text64(sig)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// enroll takes the text of a code.
func (s *stranger) enroll(code, serial string) error {
	var payload struct {
		Bundle map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
	}
	if err := json.Unmarshal([]byte(code), &payload); err != nil {
		return err
	}
	of := func(name string) string { return payload.Bundle["dev.muster.agent."+name] }
	var key any
	var err error
	if s.alg == "es256" {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return err
	}
	if s.memory.Key, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(s.key().Public())
	if err != nil {
		return err
	}
	facts, err := json.Marshal(object{"serialNumber": serial, "brand": "stranger", "manufacturer": "Else", "model": "S1",
		"sdk": 34, "osVersion": "14"})
	if err != nil {
		return err
	}
	now := s.clock().UnixMilli()
	proof := s.sign("muster-enroll-v1", hash([]byte(of("ENROLLMENT_TOKEN"))), s.alg, text64(der), hash(facts), fmt.Sprint(now))
	body, err := json.Marshal(object{"token": of("ENROLLMENT_TOKEN"), "key": object{"alg": s.alg, "spki": text64(der)},
		"facts":        json.RawMessage(facts),
		"agentVersion": "stranger 1", "role": "manager", "time": now, "proof": proof})
	if err != nil {
		return err
	}
	response, err := s.client.Post(of("SERVER_URL")+"/agent/v2/enroll", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var sealed envelope
	var answer struct {
		DeviceID, Proof string
		Time            int64
		CommandKey      strangerKey
		Key             struct{ Alg, SPKI string }
	}
	if err := json.NewDecoder(response.Body).Decode(&sealed); err != nil || response.StatusCode != 200 {
		return fmt.Errorf("enroll: status %d, %w", response.StatusCode, err)
	}
	content, err := base64.RawURLEncoding.DecodeString(sealed.Payload)
	if err == nil {
		err = json.Unmarshal(content, &answer)
	}
	if err != nil {
		return err
	}
	named := "COMMAND_KEY"
	if s.alg == "es256" {
		named += "_ES256"
	}
	commandKey, err := base64.RawURLEncoding.DecodeString(answer.CommandKey.Key.SPKI)
	if digest := sha256.Sum256(commandKey); err != nil || "sha256:"+text64(digest[:]) != of(named) &&
		answer.CommandKey.Key.SPKI != of(named) {
		return errors.New("the server has another command key")
	}
	s.memory.Keys = []strangerKey{answer.CommandKey}
	if err := s.open(&sealed, "enrolled", &answer); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(proof))
	if answer.Proof != text64(sum[:]) || answer.Key.SPKI != text64(der) {
		return errors.New("the answer is to another enrollment")
	}
	s.memory.Server, s.memory.Device = of("SERVER_URL"), answer.DeviceID
	s.memory.Offset, s.memory.Latest, s.memory.Next = answer.Time-now, answer.Time, 1
	s.memory.Commands, s.settings, s.shown = map[string]*strangerCommand{}, object{}, map[string]string{}
	s.save()
	return nil
}

type envelope struct{ Kind, Payload, KeyID, Sig string }

// open decodes an envelope that a trusted key signed as one of the kind.
func (s *stranger) open(e *envelope, kind string, v any) error {
	if e == nil || e.Kind != kind {
		return fmt.Errorf("no %s", kind)
	}
	keys := s.memory.Keys
	for now := max(s.time(), s.memory.Latest); len(keys) > 1 && now > keys[1].NotBefore+7*24*3600*1000; {
		keys = keys[1:]
	}
	for _, k := range keys {
		if k.ID != e.KeyID {
			continue
		}
		der, err1 := base64.RawURLEncoding.DecodeString(k.Key.SPKI)
		sig, err2 := base64.RawURLEncoding.DecodeString(e.Sig)
		payload, err3 := base64.RawURLEncoding.DecodeString(e.Payload)
		public, err4 := x509.ParsePKIXPublicKey(der)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return err
		}
		message := strings.Join([]string{"muster-service-v1", e.Kind, e.KeyID, e.Payload}, "\n")
		good, sum := false, sha256.Sum256([]byte(message))
		switch key := public.(type) {
		case ed25519.PublicKey:
			good = s.alg == "ed25519" && ed25519.Verify(key, []byte(message), sig)
		case *ecdsa.PublicKey:
			good = s.alg == "es256" && ecdsa.VerifyASN1(key, sum[:], sig)
		}
		if !good {
			return errors.New("not signed by the service")
		}
		return json.Unmarshal(payload, v)
	}
	return errors.New("signed with a key that is not trusted")
}

// learn follows the succession of command keys.
func (s *stranger) learn(announced []envelope) {
	for _, e := range announced {
		newest := s.memory.Keys[len(s.memory.Keys)-1]
		var k strangerKey
		if e.KeyID != newest.ID || s.open(&e, "key", &k) != nil || k.NotBefore < newest.NotBefore || k.NotBefore > s.time()+24*3600*1000 {
			continue
		}
		s.memory.Keys = append(s.memory.Keys, k)
		s.save()
	}
}

// send makes one signed request.
func (s *stranger) send(ctx context.Context, method, path string, body []byte) (*http.Response, int64, string, error) {
	sequence := s.memory.Next
	s.memory.Next++
	s.save() // the number is on disk before it is used
	now := fmt.Sprint(s.time())
	sig := s.sign("muster-agent-v1", method, "/agent/v2"+path, s.memory.Device, now, fmt.Sprint(sequence), hash(body))
	request, err := http.NewRequestWithContext(ctx, method, s.memory.Server+"/agent/v2"+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, "", err
	}
	for name, value := range map[string]string{"Muster-Device": s.memory.Device, "Muster-Time": now, "Muster-Seq": fmt.Sprint(sequence),
		"Muster-Sig": sig} {
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	return response, sequence, sig, err
}

// call makes a request, corrects what the service has signed, and decodes the answer.
func (s *stranger) call(method, path string, message, answer any) (int64, error) {
	var body []byte
	if message != nil {
		body, _ = json.Marshal(message)
	}
	for range 3 {
		response, sequence, sig, err := s.send(context.Background(), method, path, body)
		if err != nil {
			return 0, err
		}
		text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
		response.Body.Close()
		if err != nil {
			return 0, err
		}
		if response.StatusCode == 200 {
			return sequence, json.Unmarshal(text, answer)
		}
		corrected, err := s.refused(text, sig)
		if !corrected {
			return 0, fmt.Errorf("status %d: %w", response.StatusCode, err)
		}
	}
	return 0, errors.New("refused again and again")
}

// refused believes of a refusal only what is signed.
func (s *stranger) refused(text []byte, sig string) (corrected bool, err error) {
	var r struct {
		Error  string
		Signed *envelope
		Keys   []envelope
	}
	_ = json.Unmarshal(text, &r) // the server may not be the service
	s.learn(r.Keys)
	switch r.Error {
	case "clock_skew", "replayed":
		var correction struct {
			DeviceID, InReplyTo      string
			ServerTime, LastSequence int64
		}
		if s.open(r.Signed, "time", &correction) != nil || correction.DeviceID != s.memory.Device || correction.InReplyTo != sig {
			return false, errors.New(r.Error)
		}
		s.memory.Offset = correction.ServerTime - s.clock().UnixMilli()
		s.memory.Latest = max(s.memory.Latest, correction.ServerTime)
		s.memory.Next = max(s.memory.Next, correction.LastSequence+1)
		s.save()
		return true, nil
	case "ended":
		var stone struct{ DeviceID, Action, InReplyTo string }
		if s.open(r.Signed, "tombstone", &stone) != nil || stone.DeviceID != s.memory.Device || stone.InReplyTo != sig {
			return false, errors.New(r.Error)
		}
		switch stone.Action {
		case "unenroll":
			return false, s.letGo()
		case "wipe":
			s.erased = true
			return false, errStrangerGone
		case "superseded":
			s.memory.Superseded = true
			s.save()
		}
	}
	return false, errors.New(r.Error)
}

func (s *stranger) letGo() error {
	s.settings, s.memory.Ended = object{}, "released"
	s.save()
	return errStrangerGone
}

// acks are what the service has not confirmed.
func (s *stranger) acks() (all []object) {
	for _, id := range s.memory.Order {
		switch c := s.memory.Commands[id]; {
		case c.Stage == "DONE":
			all = append(all, object{"commandId": id, "state": c.State, "outcome": c.Outcome, "at": c.At})
		case c.Stage == "RECEIVED" && !c.Accepted && (c.Type == "WIPE_COMPANY_DATA" || c.Type == "RELINQUISH_OWNERSHIP"):
			all = append(all, object{"commandId": id, "state": "ACCEPTED", "at": c.At})
		}
	}
	return all
}

type strangerAnswer struct {
	Commands   []envelope
	Acked      []string
	Policy     object
	Assignment *envelope
	Keys       []envelope
}

// checkIn checks in until the service has every ack.
func (s *stranger) checkIn() error {
	if s.memory.Ended != "" {
		return errStrangerGone
	}
	report := object{}
	for round := range 20 {
		for _, id := range s.memory.Order { // the machine has restarted
			if c := s.memory.Commands[id]; c.Stage == "STARTED" && c.Boot != s.boot() {
				s.finish(c, "DONE", "restarted")
			}
		}
		s.carryOut(report)
		if round > 0 && len(s.acks()) == 0 && len(report) == 0 && s.memory.Reported {
			return nil
		}
		message := object{"agentVersion": "stranger 1", "bootId": s.boot(), "keyId": s.memory.Keys[len(s.memory.Keys)-1].ID,
			"acks":         s.acks(),
			"capabilities": []string{"notify", "launch", "reboot", "shutdown", "wipe"}}
		for name, value := range report {
			message[name] = value
		}
		if s.memory.Policy != nil && !s.memory.Reported {
			message["policy"] = s.policyReport()
		}
		var answer strangerAnswer
		sequence, err := s.call("POST", "/checkin", message, &answer)
		if err != nil {
			return err
		}
		s.step("answered")
		clear(report)
		s.memory.Reported = s.memory.Reported || message["policy"] != nil
		if err := s.take(answer); err != nil {
			return err
		}
		if err := s.follow(answer, sequence, false); err != nil {
			return err
		}
	}
	return errors.New("the service never has enough")
}

func (s *stranger) policyReport() object {
	report := object{"id": s.memory.Policy["id"], "version": s.memory.Policy["version"], "etag": ""}
	var states []object
	for id := range s.memory.Wanted {
		states = append(states, object{"id": id, "state": "applied"})
	}
	report["settings"] = states
	return report
}

// take notes what was confirmed and takes commands into the memory.
func (s *stranger) take(answer strangerAnswer) error {
	s.learn(answer.Keys)
	for _, id := range answer.Acked {
		c := s.memory.Commands[id]
		switch {
		case c == nil:
		case c.Stage == "DONE":
			c.Stage = "CONFIRMED"
			if c.State == "DONE" && (c.Type == "WIPE_COMPANY_DATA" || c.Type == "RELINQUISH_OWNERSHIP") {
				return s.letGo()
			}
		case c.Stage == "RECEIVED":
			c.Accepted = true
		}
	}
	for _, e := range answer.Commands {
		var c struct {
			DeviceID, ID, Type string
			Args               object
			Deadline           int64
		}
		if s.open(&e, "command", &c) != nil || c.DeviceID != s.memory.Device {
			continue
		}
		if known := s.memory.Commands[c.ID]; known != nil {
			if known.Stage == "CONFIRMED" {
				known.Stage = "DONE"
			}
			continue
		}
		s.memory.Commands[c.ID] = &strangerCommand{Type: c.Type, Args: c.Args, Deadline: c.Deadline, Stage: "RECEIVED", At: s.time()}
		s.memory.Order = append(s.memory.Order, c.ID)
	}
	s.save()
	return nil
}

func (s *stranger) finish(c *strangerCommand, state, outcome string) {
	c.Stage, c.State, c.Outcome, c.At = "DONE", state, outcome, s.time()
	s.step("before done")
	s.save()
}

// carryOut runs what was received.
func (s *stranger) carryOut(report object) {
	for _, id := range s.memory.Order {
		c := s.memory.Commands[id]
		first := c.Type == "WIPE_COMPANY_DATA" || c.Type == "RELINQUISH_OWNERSHIP"
		if c.Stage != "RECEIVED" && !(c.Stage == "STARTED" && c.Boot == s.boot()) || first && !c.Accepted {
			continue
		}
		if c.Deadline != 0 && s.time() > c.Deadline+600_000 {
			s.finish(c, "FAILED", "expired")
			continue
		}
		c.Stage, c.Boot = "STARTED", s.boot()
		s.save()
		s.save() // in both files: neither alone may forget that a restart began
		s.step("started")
		switch c.Type {
		case "REBOOT", "SHUTDOWN":
			s.boots++
			s.step("going down")
			return // nothing else until the machine is up again
		case "NOTIFICATION_MESSAGE":
			s.shown[id] = fmt.Sprint(c.Args["title"], "/", c.Args["body"])
			s.finish(c, "DONE", "shown")
		case "LAUNCH_APP":
			if name := fmt.Sprint(c.Args["packageName"]); name == "com.example.app" {
				s.opened = append(s.opened, name)
				s.finish(c, "DONE", "opened")
			} else {
				s.finish(c, "FAILED", "NOT_INSTALLED: "+name)
			}
		case "STATUS_REPORT":
			report["status"] = object{"at": s.time(), "values": object{"batteryLevel": s.battery},
				"specifications": object{"osVersion": "14"}}
			s.finish(c, "DONE", "reported")
		case "LOCATION_UPDATE":
			report["location"] = object{"latitude": 48.1, "longitude": 11.5, "accuracyMeters": 7, "at": s.time()}
			s.finish(c, "DONE", "reported")
		case "SYNC_POLICY":
			var answer strangerAnswer
			sequence, err := s.call("POST", "/checkin", object{"agentVersion": "stranger 1", "bootId": s.boot()}, &answer)
			if err == nil {
				err = s.follow(answer, sequence, true)
			}
			if err != nil {
				s.finish(c, "FAILED", err.Error())
				continue
			}
			s.finish(c, "DONE", "applied")
		case "WIPE_COMPANY_DATA":
			s.erased = true
			s.finish(c, "DONE", "erased")
		case "RELINQUISH_OWNERSHIP":
			s.settings = object{}
			s.finish(c, "DONE", "released")
		default:
			s.finish(c, "FAILED", "unknown command")
		}
	}
}

// follow applies the policy that the answer to a request assigns.
func (s *stranger) follow(answer strangerAnswer, sequence int64, again bool) error {
	var to struct {
		DeviceID, CompanyID, PolicyID string
		Version                       int
		Number, Time                  int64
	}
	if err := s.open(answer.Assignment, "assignment", &to); err != nil {
		return err
	}
	if to.DeviceID != s.memory.Device || to.Number != sequence {
		return errors.New("an assignment for another device or request")
	}
	s.memory.Latest = max(s.memory.Latest, to.Time)
	if have := s.memory.Policy; !again && have != nil && have["id"] == to.PolicyID &&
		fmt.Sprint(have["version"]) == fmt.Sprint(to.Version) {
		return nil
	}
	var sealed envelope
	if _, err := s.call("GET", fmt.Sprintf("/policy/%s?v=%d", to.PolicyID, to.Version), nil, &sealed); err != nil {
		return err
	}
	var p struct {
		ID, CompanyID string
		Version       int
		Settings      object
	}
	if err := s.open(&sealed, "policy", &p); err != nil {
		return err
	}
	if p.ID != to.PolicyID || p.CompanyID != to.CompanyID || p.Version < to.Version {
		return errors.New("another policy than was assigned")
	}
	s.settings = object{}
	for id, value := range p.Settings {
		s.settings[id] = value
	}
	s.memory.Policy, s.memory.Wanted, s.memory.Reported = object{"id": p.ID, "version": to.Version}, p.Settings, false
	s.save()
	return nil
}

// hints opens the wake stream and calls hint for each until ctx ends.
func (s *stranger) hints(ctx context.Context, hint func()) error {
	response, _, _, err := s.send(ctx, "GET", "/wake", nil)
	if err != nil {
		return err
	}
	go func() {
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data:") {
				hint()
			}
		}
	}()
	return nil
}

// rotate gives the device another key.
func (s *stranger) rotate() error {
	old, _ := x509.ParsePKCS8PrivateKey(s.memory.Key)
	_, next, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(next.Public())
	if err != nil {
		return err
	}
	message := strings.Join([]string{"muster-rotate-v1", s.memory.Device, "ed25519", text64(der), fmt.Sprint(s.memory.Next)}, "\n")
	body := object{"key": object{"alg": "ed25519", "spki": text64(der)},
		"oldSig": text64(ed25519.Sign(old.(ed25519.PrivateKey), []byte(message))),
		"newSig": text64(ed25519.Sign(next, []byte(message)))}
	var answer object
	if _, err := s.call("POST", "/rotate", body, &answer); err != nil {
		return err
	}
	s.memory.Key, err = x509.MarshalPKCS8PrivateKey(next)
	s.save()
	return err
}

// forget damages the newest file.
func (s *stranger) forget() error {
	name := filepath.Join(s.dir, fmt.Sprintf("memory-%d", s.memory.Generation%2))
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	damaged := slices.Clone(text)
	damaged[len(damaged)/2] ^= 1
	return os.WriteFile(name, damaged, 0o600)
}
