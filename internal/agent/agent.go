package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// Options are what an agent runs with.
type Options struct {
	Dir     string // the state directory
	Version string
	Device  Device
	Client  *http.Client
	// Installer installs updates of the agent; nil: it reports its version only.
	Installer Installer
	// Trial: Run ends with ErrProved once this process, a new version, is in touch.
	Trial bool
	// Push wakes a companion instead of the wake stream; nil: the stream does.
	Push Push
	// Network names the networks that the device is in; it is asked during pauses after
	// failures, which end when it changes. Nil: not known.
	Network func() string
	Now     func() time.Time
	// Elapsed is a clock that only goes forward while the machine runs, also asleep and in
	// every process alike; a restart sets it back. Nil: Now is one.
	Elapsed func() time.Duration
	Log     *slog.Logger
	// Kept is what Log has said lately, for the service to ask for; nil: it is not kept.
	Kept Kept
	// Crash is called before each durable step, so that tests can end the
	// process there. Nil otherwise.
	Crash func(step string)
	// Pace is how many times faster than real time Now runs, for simulations:
	// the agent waits that much less. 0: as fast.
	Pace float64
}

// Kept is what was logged lately: at most protocol.MaxLog bytes of UTF-8, without secrets. Text fails
// if the log cannot be read.
type Kept interface{ Text() ([]byte, error) }

// Agent is one enrolled device's agent.
type Agent struct {
	options Options
	store   store
	link    *link
	journal *Journal

	mu              sync.Mutex // one check-in at a time
	pushToken       string     // what the service has
	recovered       bool       // what the last process left behind is settled
	applied         applied
	report          *protocol.StatusReport // to be sent with the next check-in
	location        *protocol.Location     // to be sent with the next check-in
	confirmed       []protocol.Capability  // the capabilities that the service knows
	troubles        []string               // of the agent's own state, in every report of this process
	troublesUnsent  bool                   // no report with these troubles has reached the service
	erasing         time.Time              // since when a tombstone has asked for an erase; zero: none has
	woken           chan struct{}          // of one place
	commands        chan protocol.Envelope // of the stream, to be taken; of maxOffered places
	unopened        []protocol.Envelope    // of these, signed with a key that the next check-in may announce
	clockUnverified bool                   // the stream brought commands since a check-in was answered, which corrects the clock
	pace            pace
	gate            gate
	touched         chan struct{} // of one place: a check-in was answered
	updates         *updates
	working         sync.WaitGroup // what runs beside the check-ins
}

// ErrEnded is returned once the service, or a command of it, has ended the
// enrollment: there is nothing left to run.
var ErrEnded = errors.New("this device is no longer managed")

// New opens an enrolled device's agent. No other process may write in its state directory,
// but for orders that are left (Order).
func New(o Options) (*Agent, error) {
	if o.Elapsed == nil {
		o.Elapsed = func() time.Duration { return time.Duration(o.Now().UnixNano()) }
	}
	s := store{o.Dir}
	l, err := newLink(s, o.Client, o.Now)
	if err != nil {
		return nil, err
	}
	if err := s.sweepLeftovers(); err != nil {
		o.Log.Warn("leftovers not removed", "dir", o.Dir, "error", err)
	}
	journal, err := OpenJournal(s.path(journalFile), l.serviceTime())
	if err != nil {
		return nil, err
	}
	a := &Agent{options: o, store: s, link: l, journal: journal, woken: make(chan struct{}, 1),
		commands: make(chan protocol.Envelope, maxOffered), touched: make(chan struct{}, 1)}
	if n := journal.Skipped(); n > 0 {
		a.trouble(fmt.Sprintf("the journal was damaged: %d lines were passed over", n))
	}
	err = s.load(appliedFile, &a.applied)
	switch {
	case errors.Is(err, errDamaged): // it repeats what the service and the device know
		a.applied = applied{Lost: true}
		a.trouble("the record of the applied policy was damaged: the policy is applied again")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, errors.Join(err, journal.Close())
	}
	if a.updates, err = newUpdates(a); err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return a, nil
}

// trouble notes what an administrator should know of the agent's own state: in
// the log, and in the status reports of this process.
func (a *Agent) trouble(what string) {
	a.options.Log.Error("damaged state", "dir", a.options.Dir, "what", what)
	a.troubles, a.troublesUnsent = append(a.troubles, what), true
}

// Hint has the agent check in now. It does not block.
func (a *Agent) Hint() { hint(a.woken) }

// Close releases the state directory.
func (a *Agent) Close() error { return a.journal.Close() }

// DeviceID is the device's id at the service.
func (a *Agent) DeviceID() string { return a.link.deviceID() }

func (a *Agent) crash(step string) {
	if a.options.Crash != nil {
		a.options.Crash(step)
	}
}

const (
	// maxRounds bounds the check-ins of one Once: each tells the service something.
	maxRounds = 20
	// restartWait is how soon to check in again after these, or after a restart was ordered.
	restartWait = time.Second
)

// Once checks in, carries out what it is given, and checks in again until the
// service has every acknowledgment. It returns when to come back.
func (a *Agent) Once(ctx context.Context) (time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	keepReserve(a.options.Dir)
	for _, step := range []func(context.Context) error{a.recover, a.eraseAgain, a.takeOffered} {
		if err := step(ctx); ctx.Err() != nil {
			return 0, cmp.Or(err, ctx.Err())
		} else if err != nil { // a full disk holds back no check-in
			a.options.Log.WarnContext(ctx, "cannot carry out commands", "error", err)
		}
	}
	var late error // what could not be had of the service; it holds back nothing else
	for _, step := range []func(context.Context) error{a.obey, a.rotation, a.registerPush} {
		err := step(ctx)
		if err != nil {
			err = a.refused(ctx, err)
		}
		if away := (unreached{}); err != nil && !errors.As(err, &away) {
			return 0, err
		}
		late = errors.Join(late, err)
	}
	for range maxRounds {
		sent := a.acks()
		next, afterward, err := a.round(ctx)
		if err != nil {
			return 0, err
		}
		started := a.journal.Entries(Started)
		for _, e := range started { // the machine is going down, has come up again, or should be erased
			next = min(next, a.looksAgain(e))
		}
		if len(started) > 0 {
			if err := a.recover(ctx); err != nil {
				return 0, err
			}
		}
		unsent := a.acks()
		if anyNew(unsent, sent) {
			continue // acknowledgments go before the policy, which may take long
		}
		if late = errors.Join(late, afterward()); late != nil {
			return 0, late
		}
		if !a.hasUnsent() {
			return next, nil
		}
		if len(unsent) > 0 && len(unsent) == len(sent) && len(a.acks()) == len(unsent) && !a.unreported() {
			return 0, errUnconfirmed
		}
	}
	return restartWait, nil
}

// errUnconfirmed: an answer confirms nothing of what it was told.
var errUnconfirmed = errors.New("the service did not confirm what it was told about commands")

// anyNew reports whether one of the words is not among those that were sent.
func anyNew(words, sent []protocol.Ack) bool {
	return slices.ContainsFunc(words, func(w protocol.Ack) bool {
		return !slices.ContainsFunc(sent, func(s protocol.Ack) bool { return s.CommandID == w.CommandID && s.State == w.State })
	})
}

// unreported reports whether the service does not know yet what is applied.
func (a *Agent) unreported() bool { return a.applied.Policy.ID != "" && !a.applied.Reported }

// The least and the longest time until the next check-in, whatever an answer says.
const (
	minNext = time.Second
	maxNext = time.Hour
)

// ErrSuperseded is returned while another device is in the inventory as
// this one. The device keeps its policy and its key, and goes on asking: a
// person may set that right.
var ErrSuperseded = errors.New("another device has enrolled as this one: merge the two in the service, or enroll this one again " +
	"(muster-agent enroll) with a token made for its asset")

// refused handles an answer other than success. Only a tombstone that the
// service has signed ends the relation.
func (a *Agent) refused(ctx context.Context, err error) error {
	stone, ok := a.link.tombstone(err)
	switch {
	case !ok:
	case a.link.companion(), stone.Action == protocol.Unenroll:
		return ended(a.letGo(ctx)) // a companion has no more than itself to give up
	case stone.Action == protocol.WipeAgain:
		return a.eraseForGood(ctx)
	case stone.Action == protocol.Superseded:
		return ErrSuperseded
	}
	return err
}

// tombstone returns the tombstone of this device in a refusal, if the service has
// signed one in answer to this very request.
func (l *link) tombstone(err error) (stone protocol.Tombstone, ok bool) {
	r, ok := errors.AsType[*refusal](err)
	if !ok || r.Answer.Code != protocol.Ended || r.Answer.Signed == nil {
		return stone, false
	}
	_ = l.learn(r.Answer.Keys) // what is not believed opens nothing below
	err = l.open(*r.Answer.Signed, protocol.KindTombstone, &stone)
	if err != nil || stone.DeviceID != l.deviceID() || r.Signature == "" || stone.InReplyTo != r.Signature || stone.Time <= 0 {
		return protocol.Tombstone{}, false
	}
	l.keepTime(stone.Time)
	return stone, true
}

// letGo gives the device back and forgets the service. Each step may be
// repeated.
func (a *Agent) letGo(ctx context.Context) error {
	if err := a.release(ctx); err != nil {
		return err
	}
	a.crash("before destroy")
	return a.store.destroy()
}

// release takes back what the policy set.
func (a *Agent) release(ctx context.Context) error {
	if a.link.companion() {
		return nil
	}
	if _, err := a.options.Device.Do(ctx, Action{Type: LetGo}); err != nil && !errors.Is(err, ErrUnsupported) {
		return err
	}
	for _, setting := range a.mayHaveSet() {
		if err := a.options.Device.Apply(ctx, setting, ""); err != nil && !refusesForGood(err) {
			return err
		}
	}
	return nil
}

// Unenroll ends the enrollment at the service and releases the device.
func (a *Agent) Unenroll(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unenroll(ctx)
}

func (a *Agent) unenroll(ctx context.Context) error {
	var answer json.RawMessage
	if _, err := a.link.call(ctx, "/unenroll", struct{}{}, &answer); err != nil {
		if err = a.refused(ctx, err); errors.Is(err, ErrEnded) {
			return nil // it was over already, or an open wipe came first: done as the service signed it
		}
		return err
	}
	return a.letGo(ctx)
}
