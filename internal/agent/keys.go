package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// keyGrace is how long a command key is trusted after another has followed it:
// replicas do not change at one moment.
const keyGrace = 7 * 24 * time.Hour

// keyAhead is how far in the future the beginning of a new key may lie: clocks
// differ.
const keyAhead = 24 * time.Hour

// anyTime is later than the beginning of any key, in Unix milliseconds.
const anyTime = math.MaxInt64 / 2

// signedNow is the time by which keys are judged, in Unix milliseconds: the
// service's clock, but never before what the service has signed already. So a
// device whose clock goes back does not trust a former key again. The caller
// holds mu.
func (l *link) signedNow() int64 {
	return max(l.now().UnixMilli()+l.id.OffsetMS, l.id.Latest)
}

// trusted leaves out the keys, oldest first, that were followed longer than
// keyGrace before now, in Unix milliseconds. The newest always stays.
func trusted(keys []protocol.CommandKey, now int64) []protocol.CommandKey {
	for len(keys) > 1 && now > keys[1].NotBefore+keyGrace.Milliseconds() {
		keys = keys[1:]
	}
	return keys
}

// open verifies an envelope with the key that it names, if the agent trusts that
// key now.
func (l *link) open(e protocol.Envelope, kind string, v any) error {
	l.mu.Lock()
	keys := trusted(l.id.CommandKeys, l.signedNow())
	l.mu.Unlock()
	for _, k := range keys {
		if k.ID == e.KeyID {
			return e.Open(k.Key, kind, v)
		}
	}
	return fmt.Errorf("signed with the key %q, which this device does not trust", e.KeyID)
}

// openTime opens the time that a refusal holds. Keys that the refusal announces may have
// signed it, whatever the device's clock shows: where it is far behind, they seem to begin
// in the future.
func (l *link) openTime(r protocol.Refusal, signed *protocol.Time) error {
	if keys := l.identity().CommandKeys; !l.trusts(r.Signed.KeyID) {
		for _, e := range r.Keys {
			followed, err := follow(keys, e, anyTime)
			if err != nil {
				continue // a forged announcement hides no true one behind it
			}
			keys = followed
			if newest := keys[len(keys)-1]; newest.ID == r.Signed.KeyID {
				return r.Signed.Open(newest.Key, protocol.KindTime, signed)
			}
		}
	}
	return l.open(*r.Signed, protocol.KindTime, signed)
}

// trusts reports whether the agent trusts the key with the id now.
func (l *link) trusts(keyID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(trusted(l.id.CommandKeys, l.signedNow()), func(k protocol.CommandKey) bool { return k.ID == keyID })
}

// newestKey is the id of the youngest key that the agent trusts: the service
// announces those that came after it.
func (l *link) newestKey() string { return l.identity().newestKey().ID }

func (id identity) newestKey() protocol.CommandKey { return id.CommandKeys[len(id.CommandKeys)-1] }

// learn follows the announcements, oldest first, from the newest key that the
// agent trusts to the present one. What another key announces is passed over: a
// former key that leaked must not name a successor of its own. So is what is not
// trusted, for the error says why: a forged announcement does not hide a true one
// behind it.
func (l *link) learn(announced []protocol.Envelope) error {
	var passed []error
	for _, e := range announced {
		if e.KeyID != l.newestKey() {
			continue
		}
		if err := l.trust(e); err != nil && len(passed) < maxPassed {
			passed = append(passed, err)
		}
	}
	return errors.Join(passed...)
}

// maxPassed bounds what learn says of announcements that are not trusted.
const maxPassed = 3

// trust adds the key that the newest one announced. The keys before may lose
// their power by it, a key that others announced does not.
func (l *link) trust(e protocol.Envelope) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.id
	var err error
	if next.CommandKeys, err = follow(next.CommandKeys, e, l.signedNow()); err != nil {
		return err
	}
	return l.save(next)
}

// follow adds the key that the newest of the trusted ones, oldest first, announces, as
// of now in Unix milliseconds.
func follow(keys []protocol.CommandKey, e protocol.Envelope, now int64) ([]protocol.CommandKey, error) {
	newest := keys[len(keys)-1]
	var k protocol.CommandKey
	if e.KeyID != newest.ID {
		return nil, errors.New("the announcement was not signed by the newest key")
	}
	if err := e.Open(newest.Key, protocol.KindKey, &k); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(keys, func(known protocol.CommandKey) bool { return known.ID == k.ID }) {
		return nil, errors.New("the announced key is known already")
	}
	if k.Key.Algorithm != newest.Key.Algorithm {
		return nil, fmt.Errorf("the key %q uses another algorithm than the key that it follows", k.ID)
	}
	if err := k.Key.Check(); err != nil || k.ID == "" {
		return nil, fmt.Errorf("the key %q cannot be kept: %w", k.ID, cmp.Or(err, protocol.ErrKey))
	}
	if k.NotBefore < newest.NotBefore {
		return nil, fmt.Errorf("the key %q begins before the key that it follows", k.ID)
	}
	if k.NotBefore > now+keyAhead.Milliseconds() {
		return nil, fmt.Errorf("the key %q begins too far in the future", k.ID)
	}
	return trusted(append(keys[:len(keys):len(keys)], k), now), nil
}
