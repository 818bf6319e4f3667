package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// Enrollment is what a device needs to enroll.
type Enrollment struct {
	Options   // those that the agent runs with afterwards
	Server    string
	Token     string // one-time, from the QR code or the USB tool
	Role      protocol.Role
	Algorithm protocol.Algorithm
	// CommandKey names the service's command key, from the code (see
	// protocol.PublicKey.Named); empty: the device keeps the key that signs the answer.
	CommandKey string
	// Again: a device that the service manages enrolls again, as the same asset.
	Again bool
	// Connection is kept: Client was made from it.
	Connection Connection
}

// pending is a key that was made for a token whose answer was not seen yet:
// the same token with the same key gets the same answer again.
type pending struct {
	Server string `json:"server"`
	Token  string `json:"token"`
	Key    []byte `json:"key"` // PKCS #8
	// With the rest of the code, a device that lost its identity asks again in another process.
	Role       protocol.Role      `json:"role,omitempty"`
	Algorithm  protocol.Algorithm `json:"algorithm,omitempty"`
	CommandKey string             `json:"commandKey,omitempty"`
	Connection Connection         `json:"connection"`
}

const pendingFile = "enrolling.json"

// ErrEnrolled is returned where the state directory holds an identity that the
// service has not given up.
var ErrEnrolled = errors.New("this device is enrolled already: use --again for another enrollment at its service, or run muster-agent " +
	"unenroll first")

// Enrolled is what came of an enrollment.
type Enrolled struct {
	DeviceID string
	// Key is the name of the command key that the device obeys from now on.
	Key string
}

// Enroll redeems the token and keeps the identity that it gets for it. After a
// lost answer or a crash it may be called again with the same token. A device that
// was superseded or released, and still holds its identity, enrolls again; one
// that is managed does with Again, and signs with its former key that it is the
// same device. One that lost its identity, or that its service does not know any more, takes a
// code of the service that it obeyed, and fails with ErrWaiting while an administrator has not confirmed that.
func Enroll(ctx context.Context, e Enrollment) (Enrolled, error) {
	if err := checkServer(e.Server); err != nil {
		return Enrolled{}, err
	}
	s := store{e.Dir}
	before, err := e.former(ctx, s)
	if err == nil && before != nil {
		err = before.fits(e)
	}
	if err != nil {
		return Enrolled{}, err
	}
	key, raw, err := e.key(s)
	if err != nil {
		return Enrolled{}, err
	}
	answer, announced, err := e.redeem(ctx, key, before)
	if err != nil {
		return Enrolled{}, err
	}
	name, err := answer.CommandKey.Key.Name()
	if err != nil {
		return Enrolled{}, err
	}
	id := identity{Server: e.Server, DeviceID: answer.DeviceID, Role: e.Role, Key: raw,
		CommandKeys: []protocol.CommandKey{answer.CommandKey},
		Reserved:    1, OffsetMS: answer.Time - e.Now().UnixMilli(), KeyMade: answer.Time, Latest: answer.Time, Connection: e.Connection}
	if err := before.hand(s, &id, announced); err != nil {
		return Enrolled{}, err
	}
	for _, save := range []func() error{func() error { return s.keepObeyed(id) }, func() error { return s.save(identityFile, id) }} {
		if err := save(); err != nil {
			return Enrolled{}, err
		}
	}
	return Enrolled{DeviceID: id.DeviceID, Key: name}, s.remove(pendingFile)
}

// key returns the key that was made for this token, or makes one and keeps it.
func (e Enrollment) key(s store) (protocol.PrivateKey, []byte, error) {
	var p pending
	err := s.load(pendingFile, &p)
	if err == nil && p.Token == e.Token && p.Server == e.Server {
		key, err := protocol.ParsePrivateKey(p.Key)
		return key, p.Key, err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
		return protocol.PrivateKey{}, nil, err
	}
	key, err := protocol.NewPrivateKey(e.algorithm())
	if err != nil {
		return key, nil, err
	}
	raw, err := key.Marshal()
	if err != nil {
		return key, nil, err
	}
	return key, raw, s.save(pendingFile, pending{e.Server, e.Token, raw, e.Role, e.algorithm(), e.CommandKey, e.Connection})
}

// Asking returns the enrollment, without Options, of a device that lost its identity and has
// a code with which it may ask again (ErrWaiting); false: there is none.
func Asking(dir string) (Enrollment, bool) {
	s := store{dir}
	var p pending
	if _, err := s.identity(); !errors.Is(err, ErrLost) || s.load(pendingFile, &p) != nil || p.Role == "" {
		return Enrollment{}, false
	}
	return Enrollment{Server: p.Server, Token: p.Token, Role: p.Role, Algorithm: p.Algorithm, CommandKey: p.CommandKey,
		Connection: p.Connection}, true
}

// algorithm is that of the device's key.
func (e Enrollment) algorithm() protocol.Algorithm { return cmp.Or(e.Algorithm, protocol.Ed25519) }

// request is what the device asks, signed with its key and with its former one.
func (e Enrollment) request(ctx context.Context, key protocol.PrivateKey, before *former) (protocol.EnrollRequest, error) {
	asks := protocol.EnrollRequest{Token: e.Token, AgentVersion: e.Version, Role: e.Role, Time: e.Now().UnixMilli()}
	facts, err := e.Device.Facts(ctx)
	if err != nil {
		return asks, err
	}
	if asks.Facts, err = json.Marshal(facts); err != nil {
		return asks, err
	}
	if asks.Key, err = key.Public(); err != nil {
		return asks, err
	}
	if err = before.sign(&asks); err != nil {
		return asks, err
	}
	asks.Proof, err = key.Sign(asks.Message())
	return asks, err
}

// refusedEnrollment is a refusal that says why, for the person who enrolls the device.
type refusedEnrollment struct{ *refusal }

func (r refusedEnrollment) Error() string {
	return fmt.Sprintf("the service refused the enrollment (%s): %s", r.Answer.Code, r.Answer.Message)
}

// Unwrap returns the refusal.
func (r refusedEnrollment) Unwrap() error { return r.refusal }

// redeem asks the service, and returns what it signed in answer to this request, with
// the keys that it announced beside that.
func (e Enrollment) redeem(ctx context.Context, key protocol.PrivateKey,
	before *former) (enrolled protocol.Enrolled, announced []protocol.Envelope, err error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	asks, err := e.request(ctx, key, before)
	if err != nil {
		return enrolled, nil, err
	}
	body, err := json.Marshal(asks)
	if err != nil {
		return enrolled, nil, err
	}
	address := strings.TrimSuffix(e.Server, "/") + protocol.Base + "/enroll"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return enrolled, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.Client.Do(request)
	if err != nil {
		return enrolled, nil, fmt.Errorf("cannot reach the service: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refused := readRefusal(response, asks.Proof)
		if before.erased(refused) {
			return enrolled, nil, errErase
		}
		if refused.Answer.Code == protocol.Waiting {
			return enrolled, nil, ErrWaiting
		}
		var err error = refusedEnrollment{refused}
		if refused.Answer.Code == protocol.BadToken || refused.Answer.Code == protocol.Malformed { // it takes a new code
			err = errors.Join(err, store{e.Dir}.remove(pendingFile))
		}
		return enrolled, nil, err
	}
	var answer protocol.EnrollAnswer
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return enrolled, nil, fmt.Errorf("cannot read the service's answer: %w", err)
	}
	enrolled, err = answer.OpenEnrolled(e.CommandKey, asks.Key, asks.Proof)
	return enrolled, answer.Keys, err
}
