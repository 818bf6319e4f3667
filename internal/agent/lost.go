package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// ErrLost is returned where the state directory holds an enrollment whose identity, or
// the key in it, is damaged. The device enrolls again with a code of the same service.
var ErrLost = errors.New("this device has lost its identity")

// ErrWaiting is returned by Enroll while an administrator has not confirmed that a
// device which lost its identity is enrolled again. The same call asks again.
var ErrWaiting = errors.New("the device asks to be enrolled again, which an administrator has to confirm")

// obeyed is which service a device obeys, kept beside its identity: a device that lost
// that still knows whose code it may take.
type obeyed struct {
	Role       protocol.Role       `json:"role"`
	CommandKey protocol.CommandKey `json:"commandKey"` // the youngest
	// Latest is as in identity.
	Latest int64 `json:"latest,omitempty"`
}

const obeyedFile = "service.json"

// keepObeyed writes down whom an identity obeys, if that is not what is there.
func (s store) keepObeyed(id identity) error {
	var kept obeyed
	now := obeyed{id.Role, id.newestKey(), id.Latest}
	if s.load(obeyedFile, &kept) == nil && kept.Role == now.Role && kept.CommandKey == now.CommandKey {
		return nil
	}
	return s.save(obeyedFile, now)
}

// lost is a device that enrolls again because it lost its identity.
func (s store) lost(why error) (*former, error) {
	var kept obeyed
	err := s.load(obeyedFile, &kept)
	if err == nil && (kept.CommandKey.ID == "" || kept.CommandKey.Key.Check() != nil) {
		err = errDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("%w; which service it obeyed is not known either: %w", why, err)
	}
	return &former{known: &kept}, nil
}

// fits refuses an enrollment that would change whom this device obeys.
func (k *obeyed) fits(e Enrollment) error {
	switch {
	case e.Role != k.Role:
		return errors.New("this device lost its identity in another role: use --role " + string(k.Role))
	case e.algorithm() != k.CommandKey.Key.Algorithm:
		return fmt.Errorf("this device knows its service by a key of the algorithm %[1]s: use --alg %[1]s", k.CommandKey.Key.Algorithm)
	}
	return nil
}

// hand gives a new identity to a device that lost the one before, if the key that signed
// it is the one that the device obeyed, or follows from that.
func (k *obeyed) hand(next *identity, announced []protocol.Envelope) error {
	keys := []protocol.CommandKey{k.CommandKey}
	for _, e := range announced {
		if followed, err := follow(keys, e, max(k.Latest, next.Latest)); err == nil {
			keys = followed
		}
	}
	if keys[len(keys)-1].Key != next.newestKey().Key {
		return errNotObeyed
	}
	next.Latest = max(next.Latest, k.Latest)
	return nil
}

var errNotObeyed = errors.New("the answer does not name the command key that this device knows: it stays what it was; create a new code, " +
	"and see what answers at the service's address")

// SerialNumber is that of a device, for a person who is to find it in the portal.
func SerialNumber(ctx context.Context, d Device) string {
	facts, err := d.Facts(ctx)
	if err != nil {
		return ""
	}
	return facts.SerialNumber
}
