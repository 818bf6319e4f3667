package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// ApplyTo applies one setting to a device and reads it back, as converging does.
func ApplyTo(ctx context.Context, d Device, id, value string) protocol.SettingReport {
	return (&Agent{options: Options{Device: d}}).apply(ctx, id, value)
}

// WaitUnderGuard is how long an agent waits instead of d while what it changed
// is under guard for so long.
func WaitUnderGuard(d, left time.Duration, answered bool) time.Duration {
	const elapsed = time.Hour
	return (&Agent{options: Options{Elapsed: func() time.Duration { return elapsed }},
		applied: applied{Guard: &guard{Until: (elapsed + left).Milliseconds()}}}).guarded(d, answered)
}

// JudgeChain judges the certificates that a service shows at a host.
func JudgeChain(pin, host string, shown []*x509.Certificate, passed time.Time) error {
	return Connection{Pins: []string{pin}}.judge(tls.ConnectionState{ServerName: host, PeerCertificates: shown}, passed)
}

// Connectivity are the settings under the lock-out guard.
func Connectivity() []string { return connectivity[:] }

// KeepReserve and WithReserve are the room that an agent holds back.
func KeepReserve(dir string) { keepReserve(dir) }

// WithReserve tries a write that failed again, in the place of the reserve.
func WithReserve(dir string, write func() error) error { return withReserve(dir, write) }

// Settled reports whether what a device shows is what was asked for.
func Settled(want, got string) bool { return settled(want, got) }

// OneLine is a text as an outcome.
func OneLine(text string) string { return oneLine(text) }

// Judge is an enrolled device that judges what a service says.
type Judge struct{ link *link }

// NewJudge opens the device of a state directory.
func NewJudge(dir string, now func() time.Time) (Judge, error) {
	l, err := newLink(store{dir}, nil, now)
	return Judge{l}, err
}

// Tombstone is the action of a tombstone that it takes, in the answer to the request
// with the signature.
func (j Judge) Tombstone(r protocol.Refusal, signature string) protocol.TombstoneAction {
	stone, _ := j.link.tombstone(&refusal{Status: 410, Answer: r, Signature: signature})
	return stone.Action
}

// Correct hears a refusal for the clock, of the request with the signature. It returns by how
// much it sets its clock, in milliseconds, and the ids of the keys that it then trusts.
func (j Judge) Correct(r protocol.Refusal, signature string) (offset int64, ids []string) {
	j.link.correct(&refusal{Status: 401, Answer: r, Signature: signature})
	return j.link.identity().OffsetMS, j.Learn(nil)
}

// Learn hears announcements. It returns the ids of the keys that it then trusts.
func (j Judge) Learn(announced []protocol.Envelope) (ids []string) {
	_ = j.link.learn(announced)
	for _, k := range j.link.identity().CommandKeys {
		ids = append(ids, k.ID)
	}
	return ids
}

// Assigned is the policy that an assignment gives it, in the answer to the request
// with the sequence number.
func (j Judge) Assigned(sealed protocol.Envelope, sequence int64) string {
	assigned, err := j.link.assignment(sealed, sequence)
	if err != nil {
		return ""
	}
	return assigned.PolicyID
}

// Compact rewrites the journal, and from then on makes its directory durable by sync.
func (j *Journal) Compact(sync func(dir string) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.syncDir = sync
	j.compact()
}

// Fill has the disk of an agent full, or not any more.
func (a *Agent) Fill(full error) { a.journal.Compact(func(string) error { return full }) }

// Pace is how long an agent waits after failures.
type Pace struct{ pace pace }

// Failed notes a failure and returns how long to wait.
func (p *Pace) Failed(now time.Time, err error, stream bool) time.Duration {
	return p.pace.failed(now, err, stream)
}

// Answered notes a check-in that was answered, Held a stream that has been open long.
func (p *Pace) Answered() { p.pace.answered() }

// Held notes a stream that has been open long.
func (p *Pace) Held() { p.pace.held() }

// InTouch reports whether the latest check-in was answered.
func (p *Pace) InTouch() bool { return p.pace.inTouch() }

// Offered has the agent take a command of the stream.
func (a *Agent) Offered(command protocol.Envelope) { a.offered(command) }

// Events are what the lines of a wake stream mean: "hint", the id of the key that signed a command, or "alive".
func Events(stream string) (events []string) {
	_ = readEvents(strings.NewReader(stream), func(e wakeEvent) {
		switch {
		case e.command != nil:
			events = append(events, e.command.KeyID)
		case e.hint:
			events = append(events, "hint")
		default:
			events = append(events, "alive")
		}
	})
	return events
}

// Runs has the agent behave as in Run.
func (a *Agent) Runs() { a.gate.on = true }

// Hinted reports whether an agent checks in again at once. It takes the hint.
func (a *Agent) Hinted() bool {
	select {
	case <-a.woken:
		return true
	default:
		return false
	}
}
