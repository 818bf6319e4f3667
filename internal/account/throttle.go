package account

import (
	"context"
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// FailureThrottle counts failures: what succeeded is given back. It fails as the database does.
type FailureThrottle interface {
	access.Throttle
	// GiveBack takes back one attempt from each key whose window is open.
	GiveBack(ctx context.Context, keys []string, now time.Time) error
}

// limit is how many failures a key may have in a window.
type limit struct {
	key     string
	maximum int
	window  time.Duration
}

// signInLimits returns the limits of sign-in with a password. A browser in which the person
// signed in before has limits of its own, so that other people cannot lock it out. All other
// attempts count for the network, for the network with this e-mail address, and for the e-mail
// address, which stops guessing from many networks. The network's limit is first: a client that
// is over it adds no rows for further addresses.
func signInLimits(email string, from Client) []limit {
	if from.Browser.Knows(email) {
		return []limit{
			{"signin-browser:" + from.Browser.ID, 5, time.Minute},
			{"signin-browser-day:" + from.Browser.ID, 50, 24 * time.Hour},
		}
	}
	network := Network(from.Address)
	limits := []limit{{"signin-client:" + network, 30, time.Minute}}
	if email == "" { // no user has it
		return limits
	}
	return append(limits,
		limit{"signin-pair:" + network + ":" + email, 5, time.Minute},
		limit{"signin-email:" + email, 100, 15 * time.Minute},
	)
}

// What people are told whose attempts are over a limit.
const (
	tooManyFailures = "too many failed attempts to sign in: try again later, or sign in with a passkey, with " +
		"your company, or in a browser in which you signed in before"
	tooManyProofs  = "too many wrong passwords in this session: try again in a minute, or use a passkey"
	tooManySignIns = "too many sign-ins with a company began in your network: try again in a minute"
	tooManyReturns = "too many people came back from their company's sign-in in your network: start again in a minute"
)

// AllowProviderSignIn counts the beginning of a sign-in at a provider: fault.RateLimited
// if there were too many from the client's network.
func (s SignIn) AllowProviderSignIn(ctx context.Context, from Client) error {
	// The database has counts under this key.
	return s.spend(ctx, []limit{{"signin-journey:" + Network(from.Address), 60, time.Minute}}, tooManySignIns)
}

// AllowProviderReturn counts a return from a provider with the state of a sign-in, before the provider is asked about it:
// fault.RateLimited if there were too many from the client's network, fault.Refused if the state was used already.
func (s SignIn) AllowProviderReturn(ctx context.Context, from Client, state string) error {
	if err := s.spend(ctx, []limit{{"signin-return:" + Network(from.Address), 60, time.Minute}}, tooManyReturns); err != nil {
		return err
	}
	hash := access.HashSecret(state)
	err := s.spend(ctx, []limit{{"signin-state:" + hex.EncodeToString(hash[:]), 1, PendingLife}}, "")
	if fault.CodeOf(err) == fault.RateLimited {
		return errTooLate()
	}
	return err
}

// spend counts an attempt before it is made, so that attempts at the same moment cannot
// pass together; those that succeed are given back. Over a limit it fails with
// fault.RateLimited and the text.
func (s SignIn) spend(ctx context.Context, limits []limit, text string) error {
	now := s.Now()
	for _, l := range limits {
		_, spent, closes, err := s.Throttle.Spend(ctx, l.key, l.maximum, l.window, now)
		if err != nil {
			return err
		}
		if !spent {
			return fault.Limited(closes.Sub(now), "%s", text)
		}
	}
	return nil
}

// Network returns the key under which attempts from an address are counted: for IPv6 its
// network of 64 bits, because a client can use every address in it; otherwise the address.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, _ := ip.WithZone("").Prefix(64) // cannot fail: 64 is at most 128
	return prefix.String()
}
