package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/surface/web"
	"github.com/musterhq/muster/internal/validate"
)

const (
	// Every is how often the sender looks for mail: the first is sent within a minute.
	Every = 15 * time.Second
	// Pause is the time between two mails to one user, invitations aside.
	Pause = 5 * time.Minute
	// Settle is how long the sender waits after something happened, so that what happens to
	// many devices at once is one mail.
	Settle = 30 * time.Second
	// stale is how old what is known of the users may be when mail is sent to one.
	stale = 10 * time.Second
	// leaseName and leaseFor: of all replicas one sends. The lease outlives a conversation.
	leaseName = "mail"
	leaseFor  = 2 * callTime
	leaveTime = 5 * time.Second
	// batch bounds the companies that are read at once, and the invitations of a round.
	batch = 200
	// listed is how many items a mail names.
	listed = 20
	// firstRetry doubles with each failure, up to lastRetry.
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// InvitationPurpose is what an invitation's token is sealed for.
const InvitationPurpose = "mailed invitation"

// Outcome is what became of a mail.
type Outcome string

// The outcomes.
const (
	Sent    Outcome = "sent"
	Refused Outcome = "refused" // by the server, for good
	Failed  Outcome = "failed"  // it is tried again
)

// Outcomes lists them, for metrics.
func Outcomes() []Outcome { return []Outcome{Sent, Refused, Failed} }

// Leases are of what one replica does. Each method fails as the database does.
type Leases interface {
	// Lease gives a lease for some time, or renews it if holder holds it; false while another
	// does.
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	// Release gives it back, if holder still holds it.
	Release(ctx context.Context, name, holder string) error
}

// Observer counts mail.
type Observer interface {
	// Mail counts a mail by its outcome.
	Mail(o Outcome)
	// MailServer reports whether the server could be used at the last attempt, and true
	// where another replica has been sending for a while.
	MailServer(reached bool)
}

// Sender sends what is due. Its rounds are one after the other.
type Sender struct {
	Client    Client
	Store     attention.MailStore
	Leases    Leases
	Holder    string // of the lease: this replica
	Open      func(purpose string, sealed []byte) ([]byte, error)
	PublicURL string
	Observer  Observer
	Now       func() time.Time
	Log       *slog.Logger

	failures int       // of the server, in a row
	resume   time.Time // no attempt before
	other    time.Time // since when another replica has the lease; zero: none has
}

// errServer ends a round: the server cannot be used, or another replica has the lease. Nothing else is tried.
var errServer = errors.New("the mail server cannot be reached")

// Round sends what is due, if this replica has the lease and the server is not paused. A replica
// whose server is paused gives the lease back, and one that failed and has nothing to send asks
// the server whether it is there again.
func (s *Sender) Round(ctx context.Context) error {
	mine, err := s.Leases.Lease(ctx, leaseName, s.Holder, leaseFor)
	switch {
	case err != nil:
		return err
	case mine:
		s.other = time.Time{}
	case s.other.IsZero():
		s.other = s.Now()
	case s.Now().Sub(s.other) >= leaseFor: // a replica that fails gives it back before
		s.Observer.MailServer(true) // the replica that sends says how it is
	}
	if !mine {
		return nil
	}
	if s.paused() {
		return s.Leases.Release(ctx, leaseName, s.Holder)
	}
	if err = s.letters(ctx); err == nil {
		err = s.companies(ctx)
	}
	if err == nil && s.failures > 0 { // what failed is due later, or not at all
		err = s.reached(s.Client.Check(ctx) == nil)
	}
	if errors.Is(err, errServer) { // it is logged, and tried again later
		return nil
	}
	return err
}

// Leave lets another replica send at once. Call it after the last round, also where the
// context has ended.
func (s *Sender) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := s.Leases.Release(ctx, leaseName, s.Holder); err != nil {
		s.Log.WarnContext(ctx, "cannot give back a lease", "lease", leaseName, "error", err)
	}
}

func (s *Sender) paused() bool {
	wait := s.resume.Sub(s.Now())
	return wait > 0 && wait <= lastRetry // longer: the clock was ahead
}

// reached notes whether the server could be used; errServer: it could not, and is paused.
func (s *Sender) reached(yes bool) error {
	s.Observer.MailServer(yes)
	if yes {
		s.failures = 0
		return nil
	}
	s.resume = s.Now().Add(retry(s.failures) / 2)
	s.failures++
	return errServer
}

// retry is the pause after a number of failures in a row.
func retry(failures int) time.Duration {
	return min(firstRetry<<min(failures, 10), lastRetry)
}

// send hands one mail in, and says what became of it; empty: it was not tried, as this
// replica has no lease. errServer: the round ends. A
// conversation goes on while the replica is being stopped, or the server could have taken a
// mail that another replica sends again. It lasts callTime at most.
func (s *Sender) send(ctx context.Context, to string, text []byte) (Outcome, error) {
	mine, err := s.Leases.Lease(ctx, leaseName, s.Holder, leaseFor)
	if err != nil {
		return "", err
	} else if !mine {
		return "", errServer
	}
	err = s.Client.Send(context.WithoutCancel(ctx), to, text)
	refused, is := errors.AsType[*RecipientError](err)
	outcome := Sent
	switch {
	case is && refused.Permanent:
		outcome = Refused
	case err != nil:
		outcome = Failed
	}
	s.Observer.Mail(outcome)
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "mail was not sent", "outcome", string(outcome), "error", validate.Clean(err.Error(), 300))
	}
	return outcome, s.reached(err == nil || is)
}

// letters sends invitations.
func (s *Sender) letters(ctx context.Context) error {
	due, err := s.Store.Letters(ctx, batch)
	for _, l := range due {
		token, openErr := s.Open(InvitationPurpose, l.Sealed)
		if openErr != nil { // a replica with a newer key file sealed it, or its key is lost
			s.Log.WarnContext(ctx, "cannot open a mailed invitation", "letter", l.ID, "error", openErr)
			err = errors.Join(err, s.Store.LetterFailed(ctx, l.ID, s.Now().Add(retry(l.Failures))))
			continue
		}
		company := validate.Clean(l.Company, maxName)
		text := fmt.Sprintf("%s\n\nYou were invited to manage devices of %s with Muster. Set your password here:\n\n%s\n\nThe link works "+
			"once, for 7 days. If you did not expect it, ignore this mail.\n",
			greeting(l.Name), company, s.PublicURL+web.InvitationPath+"#"+string(token))
		outcome, failed := s.send(ctx, l.Email, message(s.Client.Config.From, l.Name, l.Email, "Invitation to "+company,
			text, l.ID+"\n"+text, s.Now()))
		switch outcome {
		case Failed:
			err = errors.Join(err, s.Store.LetterFailed(ctx, l.ID, s.Now().Add(retry(l.Failures))))
		case Sent, Refused: // also where the replica is being stopped
			err = errors.Join(err, s.Store.LetterDone(context.WithoutCancel(ctx), l, outcome == Refused))
		}
		if failed != nil || err != nil {
			return errors.Join(failed, err)
		}
	}
	return err
}

func greeting(name string) string { return "Hello " + validate.Clean(name, maxName) + "," }
