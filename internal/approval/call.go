// Package approval is what a person decides with a passkey: a change of a policy, one call
// of an API key or connection, the loosening of a control. There is one rule who may
// decide (access.Approver), one signed form (package signature), and one check, Verifier,
// which is made when it is decided and again in the transaction that uses the decision.
//
// The package is pure; internal/database keeps the rows and takes each step under locks.
package approval

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

const (
	// WaitFor is how long a person has to decide.
	WaitFor = time.Hour
	// UseWithin is how long the caller may use what was approved.
	UseWithin = 10 * time.Minute
	// DeclineHolds is how long the same call is refused without asking again.
	DeclineHolds = time.Hour
	// MaxWaiting is how many undecided ones a caller has at most.
	MaxWaiting = 5
	// KeepFor is how long one is kept after it was asked for.
	KeepFor = 30 * 24 * time.Hour
)

// State is the state of an authorization: of one call of a key or connection that a person
// must authorize, which is for one device in one enrollment, one command with the same
// arguments, and one caller.
//
//	(none) ──ask──► WAITING ──approve──► APPROVED ──use──► USED
//	                 ▲ │  │               │  └──ten minutes──► EXPIRED
//	                 │ │  └──decline──►   │  DECLINED
//	                 │ └──one hour──►     │  EXPIRED
//	                 └──it is void────────┘
//
// An approval is void once the person may not give it any more, or what was signed is no
// longer what there is.
//
// USED, DECLINED and EXPIRED are final. One whose caller can never call again is EXPIRED, and so is one that began to wait, or
// was approved, while the clock was ahead: see access.Holds.
type State string

// The states. EXPIRED is not stored: the other two become it with time.
const (
	Waiting  State = "WAITING"
	Approved State = "APPROVED"
	Declined State = "DECLINED"
	Used     State = "USED"
	Expired  State = "EXPIRED"
)

// Caller is the key or connection that calls.
type Caller struct {
	// Actor names it; UserID is the user of the connection, or the maker of the key. It is
	// empty for a key that the operator made.
	access.Actor
	// UserSince is when that user's account was made, or when the user last got a
	// right; zero: there is no such user.
	UserSince time.Time
	// EndsAt is when the key expires; long past if the caller can never call again; zero: never.
	EndsAt time.Time
}

// NoCaller says why nothing can come of what a key, a connection or a user asked for.
const NoCaller = "who asked for this can never use it: the API key was revoked or has expired, the connection has ended, " +
	"or the user was deleted"

// Policy is a policy as it is at one moment.
type Policy struct {
	ID      string
	Version int
}

// Move is the change of a device's policy, with both policies as they were compared.
type Move struct{ From, To Policy }

// Call is what a caller asks for.
type Call struct {
	CompanyID string
	AssetID   string
	Epoch     int    // the device's enrollment
	Command   string // the command's type
	// Digest is a keyed digest of all that the authorization is bound to, the arguments
	// included: nothing can be read or guessed from it without the key.
	Digest string
	Caller Caller
	Note   access.Note // why, in the caller's words
	Move   Move        // of a change of policy, else zero
}

// Ask is a call with what decides whether a person must authorize it.
type Ask struct {
	Call
	Difference Difference
	Needed     bool // an authorization is, by the controls that the caller was let in by
	// OnTheWay are the policies to which other moves that are under way may bring the
	// device first, in the order of their ids, as they were compared.
	OnTheWay []Policy
	Verifier Verifier // of the decision that the call uses
}

// Authorization is one authorization.
type Authorization struct {
	ID string
	Call
	State     State // as it is stored: see At
	CreatedAt time.Time

	DecidedAt     time.Time // zero: not yet
	DecidedBy     string    // the user's id
	DecidedByName string
	PasskeyID     string // which signed the decision
	SignedID      string // of what was signed
	Reason        string // why it was declined, in the person's words

	UsedAt    time.Time // zero: not yet
	CommandID string    // of the command that used it
}

// Asked is the authorization as it was before it was decided: it waits.
func (a Authorization) Asked() Authorization {
	a.State, a.DecidedAt, a.DecidedBy, a.DecidedByName, a.PasskeyID, a.SignedID, a.Reason = Waiting, time.Time{}, "", "", "", "", ""
	return a
}

// For reports whether it is the authorization of a call.
func (a Authorization) For(c Call) bool {
	return a.CompanyID == c.CompanyID && a.AssetID == c.AssetID && a.Epoch == c.Epoch && a.Command == c.Command && a.Digest == c.Digest &&
		a.Caller.Kind == c.Caller.Kind && a.Caller.ID == c.Caller.ID && a.Move == c.Move
}

// At is the state at a time.
func (a Authorization) At(now time.Time) State {
	since, life := a.counts()
	if (a.State == Waiting || a.State == Approved) && (a.CallerEnded(now) || !access.Holds(since, life, now)) {
		return Expired
	}
	return a.State
}

// CallerEnded reports whether the caller can never call again, in the time in which it could be decided or used.
func (a Authorization) CallerEnded(now time.Time) bool {
	return !a.Caller.EndsAt.IsZero() && !now.Before(a.Caller.EndsAt) && now.Before(a.EndsAt())
}

// EndsAt is when it ends unless something is done: a waiting one is to be decided until
// then, an approved one to be used.
func (a Authorization) EndsAt() time.Time {
	since, life := a.counts()
	return since.Add(life)
}

// counts is since when, and for how long, it waits or can be used.
func (a Authorization) counts() (since time.Time, life time.Duration) {
	if a.State == Approved {
		return a.DecidedAt, UseWithin
	}
	return a.CreatedAt, WaitFor
}

// MayBeDecided returns fault.Refused, saying why, for one that is decided or over.
func (a Authorization) MayBeDecided(now time.Time) error {
	switch state := a.At(now); state {
	case Waiting:
		return nil
	case Declined:
		return fault.New(fault.Refused, "this was declined already")
	case Expired:
		if a.CallerEnded(now) {
			return fault.New(fault.Refused, NoCaller)
		}
		return fault.New(fault.Refused, "this has expired: the caller can ask again")
	default:
		return fault.New(fault.Refused, "this was approved already")
	}
}

// Matter is what a person decides about, for a device that has a policy.
func (a Authorization) Matter(devicePolicy string) access.Matter {
	m := access.Matter{Needs: access.DevicesCommandDestructive | access.DevicesRead, AskedBy: a.Caller.UserID,
		AskedSince: a.Caller.UserSince, Policies: []string{devicePolicy}}
	if a.Move != (Move{}) {
		m.Needs = access.DevicesRead | access.PoliciesWrite | access.PoliciesRead
		m.Policies = append(m.Policies, a.Move.From.ID, a.Move.To.ID)
	}
	return m
}

// Difference is how far two policies differ.
type Difference int

// The differences, from none.
const (
	Same   Difference = iota // in nothing but the name
	Other                    // in something
	Risky                    // in a setting of high impact or with a warning, or in what no setting names
	NoMove                   // the command moves no device
)

// Needed reports whether a call needs an authorization.
func Needed(kind access.Kind, c access.Controls, destructive bool, d Difference) bool {
	if !kind.Automated() {
		return false
	}
	if destructive {
		return c.DestructiveApproval
	}
	switch c.ApplyApproval {
	case access.ApproveRisky:
		return d == Risky
	case access.ApproveAll:
		return d == Risky || d == Other
	default:
		return false
	}
}

// Verdict is what a call that needs an authorization meets.
type Verdict int

// The verdicts.
const (
	Uses    Verdict = iota // an approved one, which it uses
	Waits                  // one that waits for a person
	Refused                // one that a person declined
	Asks                   // none: it asks for one
	TooMany                // none, and its caller has MaxWaiting that wait
)

// Snapshot is what the verdict depends on, at one moment.
type Snapshot struct {
	// Last is the authorization of the same call that still counts; nil: there is none.
	Last *Authorization
	// Waiting is how many of the caller's wait for a person.
	Waiting int
	Now     time.Time
}

// Decide returns the verdict about a call that needs an authorization.
func Decide(s Snapshot) Verdict {
	if s.Last != nil {
		switch s.Last.At(s.Now) {
		case Waiting:
			return Waits
		case Approved:
			return Uses
		case Declined:
			if access.Holds(s.Last.DecidedAt, DeclineHolds, s.Now) {
				return Refused
			}
		case Used, Expired:
		}
	}
	if s.Waiting >= MaxWaiting {
		return TooMany
	}
	return Asks
}

// Path is where a person finds an authorization, below the service's address.
const Path = "/authorizations"

// Refusal is the error of a call without an authorization that it could use.
type Refusal struct {
	Verdict Verdict
	ID      string // of the authorization that waits or was declined; empty: there is none
	// By is who declined it, At when, and Reason why, in the person's words.
	By, Reason string
	At         time.Time
	// Void is an authorization that was approved and does not count any more, and Why the
	// reason; nil: there is none.
	Void *Authorization
	Why  error
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("a person must authorize the call (verdict %d, authorization %s)", r.Verdict, r.ID)
}

// Fault is the refusal for the caller, with the address of the authorization at a service.
func (r *Refusal) Fault(publicURL string) *fault.Error {
	var f *fault.Error
	var a fault.Approval // without an address, too: the same call may succeed later, so that the fault is not kept
	if r.ID != "" {
		a.URL = publicURL + Path + "/" + r.ID
	}
	switch {
	case r.ID == "" && r.Verdict == Asks:
		f = fault.New(fault.Forbidden, "a person must authorize this call: the call itself is answered with the address where they can")
	case r.ID == "":
		f = fault.New(fault.Forbidden, "a person must authorize this call, and %d calls of this caller wait for a person already: "+
			"no further one is asked for until one of them is decided or an hour old", MaxWaiting)
	case r.Verdict == Refused:
		why := ""
		if r.Reason != "" {
			why = fmt.Sprintf(" The person's reason: %q.", r.Reason)
		}
		f = fault.New(fault.Forbidden, "a person declined this call: see %s.%s The same call can be asked for again an hour after that",
			a.URL, why)
		a.Declined = &fault.Declined{By: r.By, At: r.At, Reason: r.Reason}
	default:
		f = fault.New(fault.Forbidden, "a person must authorize this call at %s; then send the same call again within %d minutes. "+
			"Another reason or more permissions do not replace it", a.URL, int(UseWithin.Minutes()))
	}
	f.Approval = &a
	return f
}
