package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// Authenticate checks a signed request, counts it, and takes its sequence
// number. Nothing that it refuses has any effect. A refusal that the device can
// correct carries the service's signed word.
func (l *Server) Authenticate(ctx context.Context, r protocol.Request, signature string) (agentdevice.Device, error) {
	d, err := l.admit(ctx, r, signature, l.Store.Contact)
	d.Signature = signature
	return d, err
}

// taker takes the sequence number of a device's request, as Store.Contact does.
type taker func(ctx context.Context, device string, key protocol.PublicKey, sequence int64) (agentdevice.Device, bool, error)

func (l *Server) admit(ctx context.Context, r protocol.Request, signature string, take taker) (agentdevice.Device, error) {
	var none agentdevice.Device
	sender := l.keys.get(r.Device)
	known := sender != nil && sender.key.Verify(r.Message(), signature) == nil
	if known {
		if err := l.count(sender, r, signature); err != nil {
			return none, err
		}
		if !l.skewed(r) {
			if d, taken, err := take(ctx, r.Device, sender.key, r.Sequence); err != nil || taken {
				return d, err
			}
		}
	}
	// Its key is not in memory; or it is skewed, replayed, ended, or has another key by now.
	device, err := l.identify(ctx, r, signature)
	if err == nil && !known {
		err = l.count(l.keys.put(device), r, signature)
	}
	if err != nil {
		return none, err
	}
	return l.contact(ctx, device, r, signature, take)
}

// identify finds the device and checks the signature with its stored key.
func (l *Server) identify(ctx context.Context, r protocol.Request, signature string) (agentdevice.Device, error) {
	device, err := l.Store.AgentDevice(ctx, r.Device)
	unknown := fault.CodeOf(err) == fault.NotFound
	if err != nil && !unknown {
		return agentdevice.Device{}, err
	}
	if unknown {
		l.noteUnknown(ctx, r.Device)
	}
	if unknown || device.Key.Verify(r.Message(), signature) != nil {
		return agentdevice.Device{}, &protocol.Refusal{Code: protocol.BadSignature, Message: "unknown device or wrong signature"}
	}
	return device, nil
}

// contact takes the request's sequence number, or says with the service's
// signature why it does not.
func (l *Server) contact(ctx context.Context, device agentdevice.Device, r protocol.Request, signature string,
	take taker) (agentdevice.Device, error) {
	var none agentdevice.Device
	if l.skewed(r) {
		return none, l.correctable(protocol.ClockSkew, "the device's clock is off", device, signature)
	}
	if device.State == agentdevice.Deleted {
		return none, l.tombstone(device, signature)
	}
	now, taken, err := take(ctx, device.ID, device.Key, r.Sequence)
	if err != nil || taken {
		return now, err
	}
	// Read again: for the last sequence, and because it may have ended since.
	if device, err = l.Store.AgentDevice(ctx, r.Device); err != nil {
		return none, err
	}
	if device.State == agentdevice.Deleted {
		return none, l.tombstone(device, signature)
	}
	return none, l.correctable(protocol.Replayed, "the sequence number was used before", device, signature)
}

// count counts a request whose signature is good. Only such requests count, so
// that no sender can use up what another device may send. The refusal costs no
// statement of the database; the sequence in it is the request's own.
func (l *Server) count(sender *known, r protocol.Request, signature string) error {
	wait := sender.spend(l.Now())
	if wait == 0 {
		return nil
	}
	err := l.correctable(protocol.RateLimited, "the device sends too many requests: wait",
		agentdevice.Device{ID: r.Device, CommandAlgorithm: sender.commands, LastSequence: r.Sequence}, signature)
	if refused, ok := errors.AsType[*protocol.Refusal](err); ok {
		refused.RetryAfter = int(math.Ceil(wait.Seconds()))
	}
	return err
}

// skewed reports a request whose time is too far off, either way.
func (l *Server) skewed(r protocol.Request) bool {
	skew := l.Now().UnixMilli() - r.Time
	return skew > protocol.MaxSkew || skew < -protocol.MaxSkew
}

// correctable is a refusal with the service's clock and the last sequence, bound
// to the request by its signature.
func (l *Server) correctable(code protocol.ErrorCode, message string, d agentdevice.Device, signature string) error {
	return l.refusal(code, message, d, protocol.KindTime, protocol.Time{DeviceID: d.ID, ServerTime: l.Now().UnixMilli(),
		LastSequence: d.LastSequence, InReplyTo: signature})
}

// refusal is a refusal with what the service says to the device about it, signed.
func (l *Server) refusal(code protocol.ErrorCode, message string, d agentdevice.Device, kind string, request any) error {
	sealed, err := l.seal(d, kind, request)
	if err != nil {
		return err
	}
	keys, err := l.signer(d.CommandAlgorithm).succession("")
	if err != nil {
		return err
	}
	return &protocol.Refusal{Code: code, Message: message, Signed: &sealed, Keys: keys}
}

// tombstone is the refusal of a device that has ended, in answer to the request with
// the signature.
func (l *Server) tombstone(d agentdevice.Device, signature string) error {
	action := protocol.Unenroll
	switch {
	case d.Wiped:
		action = protocol.WipeAgain
	case d.Superseded && !d.IsCompanion():
		action = protocol.Superseded
	}
	return l.tombstoned(d, signature, action)
}

func (l *Server) tombstoned(d agentdevice.Device, signature string, action protocol.TombstoneAction) error {
	return l.refusal(protocol.Ended, "the device is no longer managed", d, protocol.KindTombstone,
		protocol.Tombstone{DeviceID: d.ID, Action: action, InReplyTo: signature, Time: l.Now().UnixMilli()})
}

// Policy returns the signed document of the policy that the device is to have.
// The bytes are the same for every device of a version.
func (l *Server) Policy(ctx context.Context, d agentdevice.Device, id string) (protocol.Envelope, string, error) {
	if id != d.PolicyID || d.IsCompanion() {
		return protocol.Envelope{}, "", &protocol.Refusal{Code: protocol.NotFound, Message: "this device has another policy"}
	}
	p, err := l.Directory.Policy(ctx, d.CompanyID, id)
	if err != nil {
		return protocol.Envelope{}, "", err
	}
	var document struct {
		Settings map[string]string `json:"settings"`
	}
	err = json.Unmarshal(p.Document, &document)
	var updates *policy.SystemUpdate
	if err == nil {
		updates, err = policy.SystemUpdateOf(p.Document)
	}
	if err != nil {
		return protocol.Envelope{}, "", fmt.Errorf("policy %s has a document that agents cannot read: %w", p.ID, err)
	}
	maps.DeleteFunc(document.Settings, func(_, value string) bool { return value == "" }) // null: not set
	if updates != nil {
		if document.Settings == nil {
			document.Settings = map[string]string{}
		}
		document.Settings[policy.SystemUpdateID] = updates.Value()
	}
	sealed, err := l.seal(d, protocol.KindPolicy, protocol.Policy{ID: p.ID, CompanyID: p.CompanyID, Version: p.Version,
		Settings: document.Settings, VROnly: p.VROnly})
	return sealed, `"` + p.ID + "." + strconv.Itoa(p.Version) + `"`, err
}

// Rotate gives the device another key.
func (l *Server) Rotate(ctx context.Context, d agentdevice.Device, r protocol.RotateRequest, sequence int64) error {
	message := protocol.RotateMessage(d.ID, r.Key, sequence)
	if d.Key.Verify(message, r.OldSig) != nil || r.Key.Verify(message, r.NewSig) != nil {
		return &protocol.Refusal{Code: protocol.BadSignature, Message: "both keys must sign the rotation"}
	}
	err := l.Store.UpdateAgent(ctx, d.ID, agentdevice.Change{Key: &r.Key, Was: d.Key})
	if fault.CodeOf(err) == fault.Refused {
		return &protocol.Refusal{Code: protocol.BadSignature, Message: "the device has another key by now"}
	}
	return err
}

// Unenroll ends a device at its own request. A device that is to be erased
// cannot leave: it is told to erase itself instead.
func (l *Server) Unenroll(ctx context.Context, d agentdevice.Device) error {
	if d.IsCompanion() {
		return l.endCompanion(ctx, d)
	}
	ended, err := l.end(ctx, d, agentdevice.Ending{How: agentdevice.Unenrolled})
	if err != nil || ended {
		return err
	}
	now, err := l.Store.AgentDevice(ctx, d.ID)
	switch {
	case err != nil || now.State == agentdevice.Deleted && !now.Wiped && !now.Superseded:
		return err
	case now.State != agentdevice.Deleted:
		return l.tombstoned(now, d.Signature, protocol.WipeAgain)
	}
	return l.tombstone(now, d.Signature)
}

// RegisterPush keeps the device's FCM token.
func (l *Server) RegisterPush(ctx context.Context, d agentdevice.Device, r protocol.PushTokenRequest) error {
	return l.Companions.SetPushToken(ctx, d, r.Token)
}

// assignment says which policy the device is to have, signed for this device and for
// the request that it answers.
func (l *Server) assignment(d agentdevice.Device, now time.Time) (*protocol.Envelope, error) {
	if d.PolicyID == "" {
		return nil, nil
	}
	sealed, err := l.seal(d, protocol.KindAssignment, protocol.Assignment{DeviceID: d.ID, CompanyID: d.CompanyID, PolicyID: d.PolicyID,
		Version: d.PolicyVersion, Number: d.LastSequence, Time: now.UnixMilli()})
	return &sealed, err
}
