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
	// CommandKey is the SubjectPublicKeyInfo of the service's command key, from
	// the code; empty: the answer to the enrollment is believed.
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
}

const pendingFile = "enrolling.json"

// ErrEnrolled is returned where the state directory holds an identity that the
// service has not given up.
var ErrEnrolled = errors.New("this device is enrolled already: use --again for another enrollment at its service, or run muster-agent unenroll first")

// Enroll redeems the token and keeps the identity that it gets for it. After a
// lost answer or a crash it may be called again with the same token. A device that
// was superseded or released, and still holds its identity, enrolls again; one
// that is managed does with Again, and signs with its former key that it is the
// same device.
func Enroll(ctx context.Context, e Enrollment) (deviceID string, err error) {
	if err := checkServer(e.Server); err != nil {
		return "", err
	}
	s := store{e.Dir}
	before, err := e.former(ctx, s)
	if err == nil && before != nil {
		err = before.fits(e)
	}
	if err != nil {
		return "", err
	}
	key, raw, err := e.key(s)
	if err != nil {
		return "", err
	}
	answer, err := e.redeem(ctx, key, before)
	if err != nil {
		return "", err
	}
	if answer.DeviceID == "" || len(answer.CommandKeys) == 0 {
		return "", errors.New("the service's answer to the enrollment names no device or no key")
	}
	if e.CommandKey != "" && answer.CommandKeys[0].Key.SPKI != e.CommandKey {
		return "", errors.New("the answering server does not have the command key that the code names: create a new code, and look for a proxy in between")
	}
	id := identity{Server: e.Server, DeviceID: answer.DeviceID, Role: e.Role, Key: raw, CommandKeys: answer.CommandKeys,
		Reserved: 1, OffsetMS: answer.ServerTime - e.Now().UnixMilli(), KeyMade: answer.ServerTime, Latest: answer.ServerTime, Connection: e.Connection}
	if err := before.hand(s, &id); err != nil {
		return "", err
	}
	if err := s.save(identityFile, id); err != nil {
		return "", err
	}
	return id.DeviceID, s.remove(pendingFile)
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
	return key, raw, s.save(pendingFile, pending{e.Server, e.Token, raw})
}

// algorithm is that of the device's key.
func (e Enrollment) algorithm() protocol.Algorithm { return cmp.Or(e.Algorithm, protocol.Ed25519) }

func (e Enrollment) redeem(ctx context.Context, key protocol.PrivateKey, before *former) (protocol.EnrollResponse, error) {
	var answer protocol.EnrollResponse
	facts, err := e.Device.Facts(ctx)
	if err != nil {
		return answer, err
	}
	told, err := json.Marshal(facts)
	if err != nil {
		return answer, err
	}
	public, err := key.Public()
	if err != nil {
		return answer, err
	}
	now := e.Now().UnixMilli()
	proof, err := key.Sign(protocol.EnrollMessage(e.Token, public, told, now))
	if err != nil {
		return answer, err
	}
	asks := protocol.EnrollRequest{Token: e.Token, Key: public, Facts: told, AgentVersion: e.Version, Role: e.Role, Time: now, Proof: proof}
	if err := before.sign(&asks); err != nil {
		return answer, err
	}
	body, err := json.Marshal(asks)
	if err != nil {
		return answer, err
	}
	address := strings.TrimSuffix(e.Server, "/") + protocol.Base + "/enroll"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.Client.Do(request)
	if err != nil {
		return answer, fmt.Errorf("cannot reach the service: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refused := readRefusal(response, "")
		if before.erased(refused) {
			return answer, errErase
		}
		return answer, fmt.Errorf("the service refused the enrollment (%s): %s", refused.Answer.Code, refused.Answer.Message)
	}
	return answer, json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer)
}
