package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// former is the device that a state directory holds already, when it enrolls again
// at the same service.
type former struct {
	link *link
	// live: the service still manages it. Then its key, and no serial number, says
	// which asset the new enrollment is of.
	live bool
	// known is set instead of link, of a device that lost its identity, or that its service does not know.
	known *obeyed
}

// errErase is returned where a device would enroll out of an order to erase it.
var errErase = errors.New("the service has ordered to erase this device: it cannot enroll again")

// former returns the device that enrolls again; nil: the state directory holds
// none. It fails with ErrEnrolled for one that the service still manages, unless
// that is what Again asks for, and for one of another service or role.
func (e Enrollment) former(ctx context.Context, s store) (*former, error) {
	id, err := s.identity()
	switch {
	case errors.Is(err, ErrNotEnrolled):
		return nil, nil
	case errors.Is(err, ErrLost):
		return s.lost(err)
	case err != nil:
		return nil, err
	case strings.TrimSuffix(id.Server, "/") != strings.TrimSuffix(e.Server, "/") || id.Role != e.Role:
		return nil, ErrEnrolled
	}
	l, err := newLink(s, e.Client, e.Now)
	if err != nil {
		return nil, err
	}
	action, err := l.standing(ctx)
	switch {
	case e.Again && refusedAs(err, protocol.BadSignature): // its database may be older than this device
		return s.lost(err)
	case err != nil && e.Again:
		return nil, err
	case err != nil, action == "" && !e.Again:
		return nil, ErrEnrolled
	case action == protocol.WipeAgain && !l.companion():
		return nil, errErase
	case action == "":
		err = e.catchUp(ctx, l)
	}
	return &former{link: l, live: action == ""}, err
}

// refusedAs reports whether an error is a refusal with a code.
func refusedAs(err error, code protocol.ErrorCode) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.Answer.Code == code
}

// standing asks the service what it has to say to this device: nothing, or the
// action of a tombstone that it has signed.
func (l *link) standing(ctx context.Context) (protocol.TombstoneAction, error) {
	if len(l.identity().NextKey) > 0 { // the service has one of two keys
		if stone, ok := l.tombstone(l.rotate(ctx)); ok {
			return stone.Action, nil
		} // what this leaves open, the next request is refused for
	}
	// A policy that does not exist: unlike a check-in, it takes no commands.
	var none json.RawMessage
	_, err := l.exchange(ctx, http.MethodGet, "/policy/none", nil, &none)
	if err == nil || refusedAs(err, protocol.NotFound) {
		return "", nil
	}
	stone, ok := l.tombstone(err)
	if !ok {
		return "", err
	}
	return stone.Action, nil
}

// catchUp follows the command keys that the service has had since this device was
// last in touch: the answer to the enrollment names the present one.
func (e Enrollment) catchUp(ctx context.Context, l *link) error {
	boot, err := e.Device.BootID(ctx)
	if err != nil {
		return err
	}
	var answer protocol.CheckinResponse
	if _, err := l.call(ctx, "/checkin", protocol.CheckinRequest{AgentVersion: e.Version, BootID: boot, KeyID: l.newestKey()},
		&answer); err != nil {
		return err
	}
	return l.learn(answer.Keys)
}

// fits refuses an enrollment that would change the key by which this device knows
// its service. It is asked before the token is spent.
func (f *former) fits(e Enrollment) error {
	if f.known != nil {
		return f.known.fits(e)
	}
	known := f.link.identity().newestKey().Key.Algorithm
	switch {
	case e.algorithm() != known: // the service signs with the algorithm of the device's key
		return fmt.Errorf("this device knows its service by a key of the algorithm %s: use --alg %s", known, known)
	case e.CommandKey != "" && !f.link.identity().newestKey().Key.Named(e.CommandKey):
		return errors.New("the code is of a service that this device does not know: run muster-agent unenroll first")
	}
	return nil
}

// sign adds the former device's word to an enrollment.
func (f *former) sign(r *protocol.EnrollRequest) error {
	if f != nil && f.known != nil && r.Role == protocol.Manager {
		r.Lost = &protocol.Lost{KeyID: f.known.CommandKey.ID}
	}
	if f == nil || !f.live || f.link.companion() {
		return nil
	}
	id := f.link.deviceID()
	sig, err := f.link.signer().Sign(protocol.FormerMessage(id, r.Token, r.Key, r.Facts, r.Time))
	r.Former = &protocol.Former{DeviceID: id, Sig: sig}
	return err
}

// erased reports whether a refusal is the signed order to erase the device.
func (f *former) erased(r *refusal) bool {
	if f == nil || f.known != nil {
		return false
	}
	stone, ok := f.link.tombstone(r)
	return ok && stone.Action == protocol.WipeAgain
}

// hand gives the new identity what still holds of the former one, and drops what
// does not: commands of the former device have ended at the service. What the
// policy set stays on record, to be reported again or taken back.
func (f *former) hand(s store, next *identity, announced []protocol.Envelope) error {
	switch {
	case f == nil: // an end of an enrollment that was interrupted may have left files
	case f.known != nil:
		if err := f.known.hand(next, announced); err != nil {
			return err
		}
	case f.link.identity().newestKey().Key != next.newestKey().Key:
		return errNotObeyed
	default:
		next.Latest = max(next.Latest, f.link.identity().Latest)
	}
	for _, name := range []string{journalFile, orderFile} {
		if err := s.remove(name); err != nil {
			return err
		}
	}
	var done applied
	err := s.load(appliedFile, &done)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
		return nil // the agent finds that at its start
	}
	if err != nil {
		return err
	}
	done.Reported = false
	return s.save(appliedFile, done)
}
