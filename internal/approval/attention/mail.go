package attention

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Event is what people get mail about.
type Event string

// The events.
const (
	ProposalWaiting      Event = "proposal.waiting"
	AuthorizationWaiting Event = "authorization.waiting"
	ControlLoosening     Event = "control.loosening"
)

// Events lists them. Without a choice of their own, people get mail about all of them that
// they can decide.
func Events() []Event { return []Event{ProposalWaiting, AuthorizationWaiting, ControlLoosening} }

// Event is what mail about the item is called; empty: there is none.
func (i Item) Event() Event {
	return map[Kind]Event{Approval: ProposalWaiting, Authorization: AuthorizationWaiting, Loosening: ControlLoosening}[i.Kind]
}

// Choice is which mail a user gets. The zero value is all of it.
type Choice struct {
	Muted  bool
	Events []Event // empty: all
}

// Wants reports whether mail about an event is sent.
func (c Choice) Wants(e Event) bool {
	return e != "" && !c.Muted && (len(c.Events) == 0 || slices.Contains(c.Events, e))
}

// Chosen are the events that mail is sent about.
func (c Choice) Chosen() []Event {
	return slices.DeleteFunc(Events(), func(e Event) bool { return !c.Wants(e) })
}

// Recipient is a user with what decides about mail to them.
type Recipient struct {
	access.Approver
	Email    string
	Choice   Choice
	NextAt   time.Time // no mail before
	Failures int       // attempts in a row that failed
	Told     []string  // ids of the items that they had mail about
}

// Letter is an invitation that is to be sent. Sealed is its token, by the key file.
type Letter struct {
	ID, UserID, CompanyID string
	Company, Name, Email  string
	Sealed                []byte
	Failures              int
}

// ChoiceStore keeps what mail people want.
type ChoiceStore interface {
	// MailChoice returns a user's choice; the zero value if there is none.
	MailChoice(ctx context.Context, companyID, userID string) (Choice, error)
	// SetMailChoice keeps it; fault.NotFound without such a user.
	SetMailChoice(ctx context.Context, companyID, userID string, c Choice) error
}

// MailStore keeps what is sent to whom.
type MailStore interface {
	Store
	ChoiceStore
	// MailCompanies are the companies in which a decision waits, by id and after one, at
	// most limit, with the rule of approvals.
	MailCompanies(ctx context.Context, after string, limit int) ([]Query, error)
	// MailControls are a company's name and controls.
	MailControls(ctx context.Context, companyID string) (string, access.Controls, error)
	// Recipients are the users of a company.
	Recipients(ctx context.Context, companyID string) ([]Recipient, error)
	// MailSent notes that a user had mail about items, and gets no other before next.
	MailSent(ctx context.Context, companyID, userID string, items []string, next time.Time) error
	// MailFailed notes an attempt that failed; the next is at a time.
	MailFailed(ctx context.Context, companyID, userID string, next time.Time) error
	// Letters are the invitations that are due, at most limit.
	Letters(ctx context.Context, limit int) ([]Letter, error)
	// LetterDone removes one: it was sent, or never can be.
	LetterDone(ctx context.Context, id string) error
	// LetterFailed notes an attempt that failed; the next is at a time.
	LetterFailed(ctx context.Context, id string, next time.Time) error
}
