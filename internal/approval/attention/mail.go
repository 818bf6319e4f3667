package attention

import (
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/event"
)

// AuthorizationWaiting is what mail calls commands that wait for a person. Webhooks and the
// feed do not have it: their readers are the callers that wait.
const AuthorizationWaiting event.Type = "authorization.waiting"

// EnrollmentWaiting, JobPaused and WebhookDisabled are what mail calls a device that asks to be enrolled
// again, and what the service has stopped and a person goes on with. Webhooks and the feed do not have
// them: a person alone can answer the device, jobs are not part of the API, and a webhook cannot tell that
// it is disabled.
const (
	EnrollmentWaiting event.Type = "enrollment.waiting"
	JobPaused         event.Type = "job.paused"
	WebhookDisabled   event.Type = "webhook.disabled"
)

// Decisions are the events that wait for a person. Mail about them comes from what waits now
// and not from the history: who can decide, and whether anything is left to decide, changes.
func Decisions() []event.Type {
	return []event.Type{event.ProposalWaiting, AuthorizationWaiting, event.ControlLoosening}
}

// Events lists what people can have mail about, decisions first.
func Events() []event.Type {
	all := Decisions()
	for _, t := range append(event.Types(), EnrollmentWaiting, JobPaused, WebhookDisabled) {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// MailedFor is how old what happened, or waits, may be to be mailed.
const MailedFor = 7 * 24 * time.Hour

// Event is what mail about the item is called; empty: there is none.
func (i Item) Event() event.Type {
	return map[Kind]event.Type{Approval: event.ProposalWaiting, Authorization: AuthorizationWaiting,
		Loosening: event.ControlLoosening, Enrollment: EnrollmentWaiting, PausedJob: JobPaused, StoppedWebhook: WebhookDisabled}[i.Kind]
}

// Choice is which mail a user gets. The zero value: decisions, and all the rest if the user
// manages the company.
type Choice struct {
	Muted  bool
	Events []event.Type // empty: as the zero value
}

// Wants reports whether mail about an event is sent.
func (c Choice) Wants(e event.Type, manages bool) bool {
	switch {
	case e == "" || c.Muted:
		return false
	case len(c.Events) > 0:
		return slices.Contains(c.Events, e)
	}
	return manages || slices.Contains(Decisions(), e)
}

// Chosen are the events that mail is sent about.
func (c Choice) Chosen(manages bool) []event.Type {
	return slices.DeleteFunc(Events(), func(e event.Type) bool { return !c.Wants(e, manages) })
}

// Recipient is a user with what decides about mail to them. Who has not accepted the
// invitation yet counts as disabled: the address may be wrong.
type Recipient struct {
	access.Approver
	Email    string
	Choice   Choice
	NextAt   time.Time // no mail before
	Failures int       // attempts in a row that failed
	Mailed   []string  // ids of the items that they had mail about
	Position int64     // in the company's history, up to which they had mail
}

// Made reports whether an item is a job of the user's own that the user still sees. Its maker is told
// that it is paused, also where the maker has lost the right to go on.
func (r Recipient) Made(i Item) bool {
	return i.Kind == PausedJob && i.Matter.AskedBy == r.UserID && !r.Disabled && i.Seen(r.Approver)
}

// Sight is what the user may see of the company's history.
func (r Recipient) Sight() event.Sight {
	return event.Sight{Devices: r.Permissions.Has(access.DevicesRead), Policies: r.Permissions.Has(access.PoliciesRead), Only: r.Policies,
		Proposals: true, Company: r.Manages}
}

// Follows are the events of the history that the user gets mail about and may see.
func (r Recipient) Follows() []event.Type {
	if r.Disabled {
		return nil
	}
	return slices.DeleteFunc(r.Choice.Chosen(r.Manages), func(e event.Type) bool {
		return !e.Known() || slices.Contains(Decisions(), e) || !r.Sight().Shows(e)
	})
}

// NewsQuery asks what happened in a company after a position and up to another, and not
// before an instant.
type NewsQuery struct {
	CompanyID   string
	After, Upto int64
	Since       time.Time
	Types       []event.Type
	See         event.Sight
}

// News is what happened of one type.
type News struct {
	Type     event.Type
	Count    int64
	First    time.Time // when the first happened
	Examples []Example // at most Examples, the first
}

// Examples is how many events of a type mail names at most.
const Examples = 3

// Example is an event that mail names.
type Example struct {
	event.Event
	Name string // of the device or policy; not trusted; empty: there is none to be told
}

// Letter is an invitation that is to be sent. Sealed is its token, by the key file.
type Letter struct {
	ID, UserID, CompanyID string
	Company, Name, Email  string
	Sealed                []byte
	Failures              int
}

// ChoiceStore keeps what mail people want. Each method fails as the database does, and with the faults
// that it names.
type ChoiceStore interface {
	// MailChoice returns a user's choice; the zero value if there is none.
	MailChoice(ctx context.Context, companyID, userID string) (Choice, error)
	// SetMailChoice keeps it; fault.NotFound without such a user.
	SetMailChoice(ctx context.Context, companyID, userID string, c Choice) error
}

// MailStore keeps what is sent to whom. Each method fails as the database does, and with the faults
// that it names.
type MailStore interface {
	// Attention returns at most Limit items of each kind, the oldest first.
	Attention(ctx context.Context, q Query) ([]Item, error)
	// MailCompanies are the companies in which a decision waits, the service has stopped a job or
	// webhook, or something happened that not every user was told or passed, by id and after one, at most limit, with the rule of
	// approvals.
	MailCompanies(ctx context.Context, after string, limit int) ([]Query, error)
	// MailControls are a company's name and controls, or fault.NotFound.
	MailControls(ctx context.Context, companyID string) (string, access.Controls, error)
	// Recipients are the users of a company.
	Recipients(ctx context.Context, companyID string) ([]Recipient, error)
	// EventHead is where the company's history ends.
	EventHead(ctx context.Context, companyID string) (event.Head, error)
	// News counts what happened, in the order of types.
	News(ctx context.Context, q NewsQuery) ([]News, error)
	// MailPassed notes that users need no mail about what happened up to a position.
	MailPassed(ctx context.Context, companyID string, users []string, position int64) error
	// MailSent notes that a user had mail about items and what happened up to a position, and
	// gets no other before next; fault.NotFound without such a user.
	MailSent(ctx context.Context, companyID, userID string, items []string, position int64, next time.Time) error
	// MailFailed notes an attempt that failed; the next is at a time. fault.NotFound without such a
	// user.
	MailFailed(ctx context.Context, companyID, userID string, next time.Time) error
	// Letters are the invitations that are due, at most limit: of users who have no way to sign in, with a link that has not ended.
	Letters(ctx context.Context, limit int) ([]Letter, error)
	// LetterDone removes one that was sent, or that the server refused for good, which is recorded
	// in the activity log.
	LetterDone(ctx context.Context, l Letter, refused bool) error
	// LetterFailed notes an attempt that failed; the next is at a time.
	LetterFailed(ctx context.Context, id string, next time.Time) error
}
