// Package approvals is the portal's section in which a person decides with a passkey: about
// a change of a policy that an API key or AI client proposed, one command that it wants to
// send, or the loosening of a control that another administrator asked for. They differ in
// what is shown (change.go, call.go, loosening.go), and in nothing else.
package approvals

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Store keeps decisions, and finds what they are about. Find methods return fault.NotFound.
type Store interface {
	approval.Store
	// SeenAuthorization returns an authorization with what people see of it now.
	SeenAuthorization(ctx context.Context, companyID, id string) (approval.Authorization, approval.Seen, error)
	// Authorizations lists those that were asked for last; policies, if not nil: for devices with these.
	Authorizations(ctx context.Context, companyID string, policies []string, limit int) ([]approval.Authorization, error)
	// PresentAuthorization returns an authorization with its approval only if that counts.
	PresentAuthorization(ctx context.Context, a approval.Authorization, v approval.Verifier) (approval.Authorization, error)
	// LooseningSubject returns what waits, and what a second administrator decides.
	LooseningSubject(ctx context.Context, companyID, id string) (access.Loosening, approval.Subject, error)
	// Command returns a command by its id, of any company.
	Command(ctx context.Context, id string) (command.Command, error)
	// PolicyProgress counts the devices with a policy, and those of them that have applied
	// a version of it, or a later one.
	PolicyProgress(ctx context.Context, companyID, policyID string, version int) (applied, devices int, err error)
}

// Section serves the pages.
type Section struct {
	Reviewer proposal.Reviewer
	Store    Store
	Assets   asset.Finder
	Passkeys account.Passkeys
	Verifier approval.Verifier
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	const edit, view, manage = account.ViewPolicies | account.EditPolicies, account.ViewDevices, account.ManageCompany
	const change, call, loosening = frame.ApprovalsPath + "/{id}", approval.Path + "/{id}", frame.ControlsPath + "/{id}/confirm"
	return []frame.Route{
		{Pattern: "GET " + change, Needs: edit, Serve: s.show(s.change)},
		{Pattern: "POST " + change + "/approve", Needs: edit, Serve: s.decide(s.change, signature.Approve)},
		{Pattern: "POST " + change + "/decline", Needs: edit, Serve: s.decide(s.change, signature.Decline)},
		{Pattern: "GET " + approval.Path, Needs: view, Serve: s.list},
		{Pattern: "GET " + call, Needs: view, Serve: s.show(s.call)},
		{Pattern: "POST " + call, Needs: view, Serve: s.decide(s.call, "")},
		{Pattern: "GET " + loosening, Needs: manage, Serve: s.show(s.loosening)},
		{Pattern: "POST " + loosening, Needs: manage, DuringStop: true, Serve: s.decide(s.loosening, "")},
	}
}

// matter is what a person decides about, as the page shows it: the same parts in the same
// order for each kind.
type matter struct {
	approval.Subject
	title   string // of the page
	section string // the navigation's entry
	here    string // address of the page
	path    string // where a decision leads: the page, or where its outcome is seen
	back    string // where the person came from, called backTo
	backTo  string
	topics  string // of changes that the page shows by itself

	tone     frame.Tone      // how it stands,
	standing string          // in a word
	until    time.Time       // when that ends, if it does
	answers  []answer        // what a person asks first
	body     templ.Component // what is signed beside the answers; nil: nothing
	note     access.Note     // the caller's words
	steps    []step          // what has happened, the earliest first

	approve action
	decline action // zero: there is nothing to decline
	cancel  string // where a form cancels it instead; empty: it cannot be
	promise string // what an approval allows, in a sentence

	// closed says why there is nothing to decide; barred why this person may not.
	closed, barred string
	others         string // who may, by name
	alone          bool   // no other person may either
	noPasskey      bool   // the person has none, and could decide with one
	from           time.Time
}

// answer is one of the facts at the top of the page.
type answer struct {
	question, text string
	more           string // in a line of its own
	link           string // of the text; empty: none
	grave          bool
}

// step is an entry of the page's timeline.
type step struct {
	at         time.Time // zero: now
	text, more string    // more is a foreign text
	link       string
	tone       frame.Tone
}

// action is one of the two decisions.
type action struct {
	decision             signature.Decision
	path, label, variant string
	done                 string // what the page says afterwards
}

// finder finds what a visit is about, with what a person may read of it.
type finder func(v *frame.Visit) (matter, error)

func (s *Section) show(find finder) frame.Handler {
	return func(v *frame.Visit) error {
		m, err := find(v)
		if err == nil && m.closed == "" {
			err = s.admit(v, &m)
		}
		if v.Partial() && m.path != "" && fault.CodeOf(err) == fault.NotFound { // it ended while the page was open
			m.closed = v.Ended(v.PathValue("id"), frame.Sentence(fault.From(err).Detail))
			m.tone, m.standing, err = frame.Idle, "Over", nil
		}
		if err != nil {
			return s.elsewhere(v, m, err)
		}
		if v.Partial() {
			return part(v, m)
		}
		var ready challenges
		if m.open() {
			if ready, err = s.ready(v, m); err != nil {
				return err
			}
		}
		return v.Show(m.title, m.section, page(v, m, ready))
	}
}

// part answers a page that is open. Its forms stay as they are while they can be used: a
// passkey may be asked just now for what they hold.
func part(v *frame.Visit, m matter) error {
	switch {
	case v.Query().Get("part") == "standing":
		return v.Fragment(standing(v, m))
	case m.open():
		v.Writer().WriteHeader(http.StatusNoContent)
		return nil
	}
	return v.Fragment(decision(v, m, nil))
}

// elsewhere goes where the person came from, with a word about how it ended, if what they
// look for is gone.
func (s *Section) elsewhere(v *frame.Visit, m matter, err error) error {
	if m.path == "" || fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return v.Redirect(m.path, frame.Flash{Tone: frame.Warn,
		Text: v.Ended(v.PathValue("id"), frame.Sentence(fault.From(err).Detail))})
}

// open reports whether this person can decide now.
func (m matter) open() bool { return m.closed == "" && m.barred == "" }

// no names the way to say no.
func (m matter) no() string {
	return frame.Either(m.decline.decision == "", "Cancel the change", "Decline")
}

// toType is the name that a person types before they approve; empty: none, or it was typed.
func (m matter) toType(ready challenges) string {
	if _, typed := ready[signature.Approve]; typed {
		return ""
	}
	return m.Name
}

// elsewhere are the warnings that belong to none of the changes that are shown.
func elsewhere(all []signature.Moved, warnings []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(text string) bool {
		return slices.ContainsFunc(all, func(m signature.Moved) bool { return policy.WarningOf(m.Setting, m.To) == text })
	})
}

// challenges are what the passkey is asked to sign, by decision. An approval for which a
// name must be typed has none before it is.
type challenges map[signature.Decision]account.Challenge

// ready asks for signatures of what is shown, where the person has nothing to type.
func (s *Section) ready(v *frame.Visit, m matter) (challenges, error) {
	all := challenges{}
	for _, a := range []action{m.approve, m.decline} {
		if a.decision == "" || a.decision == signature.Approve && m.Name != "" {
			continue
		}
		c, err := s.challenge(v, m, signature.Head{Decision: a.decision})
		if err != nil {
			return nil, err
		}
		all[a.decision] = c
	}
	return all, nil
}

// challenge asks for a signature of a decision about what is shown.
func (s *Section) challenge(v *frame.Visit, m matter, h signature.Head) (account.Challenge, error) {
	h.Approver, h.At = signature.Person{ID: v.User.ID, Name: v.User.Name}, signature.Time(v.Now)
	document, err := m.Canonical(h, nil)
	if err != nil {
		return account.Challenge{}, err
	}
	return s.Passkeys.BeginSigning(v.Context(), v.User, document)
}
