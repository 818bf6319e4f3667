// Package approvals is the portal's section in which a person decides with a passkey: about
// a change of a policy that an API key or AI client proposed, one command that it wants to
// send, or the loosening of a control that another administrator asked for. They differ in
// what is shown (change.go, call.go, loosening.go), and in nothing else.
package approvals

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Store keeps decisions, and finds what they are about. Find methods return fault.NotFound.
type Store interface {
	approval.Store
	// SeenAuthorization returns an authorization with what people see of it now.
	SeenAuthorization(ctx context.Context, companyID, id string) (approval.Authorization, approval.Seen, error)
	// Authorizations lists those that were asked for last.
	Authorizations(ctx context.Context, companyID string, limit int) ([]approval.Authorization, error)
	// PresentAuthorization returns an authorization with its approval only if that counts.
	PresentAuthorization(ctx context.Context, a approval.Authorization, v approval.Verifier) (approval.Authorization, error)
	// LooseningSubject returns what waits, and what a second administrator decides.
	LooseningSubject(ctx context.Context, companyID, id string) (access.Loosening, approval.Subject, error)
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

// matter is what a person decides about, as the page shows it.
type matter struct {
	approval.Subject
	title, summary string // of the page
	section        string // the navigation's entry
	path           string // of the page
	back           string // where the person came from, called backTo
	backTo         string
	approve        action
	decline        action // zero: there is nothing to decline
	promise        string // what an approval allows, in a sentence
	body           templ.Component
	note           access.Note // the caller's words

	// closed says why there is nothing to decide; barred why this person may not.
	closed, barred string
	alone          bool // no other person may either
	noPasskey      bool // the person has none, and can add one
	from           time.Time
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
		if err != nil {
			return m.elsewhere(v, err)
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

// elsewhere goes where the person came from, with a word, if what they look for is gone.
func (m matter) elsewhere(v *frame.Visit, err error) error {
	if m.path == "" || fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return v.Redirect(m.path, frame.Flash{Tone: frame.Warn, Text: frame.Sentence(fault.From(err).Detail)})
}

// open reports whether this person can decide now.
func (m matter) open() bool { return m.closed == "" && m.barred == "" }

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

// admit finds out whether the person may decide, and if not why, and until when.
func (s *Section) admit(v *frame.Visit, m *matter) error {
	if !s.Passkeys.Available() {
		m.barred = "Passkeys do not work at this address of Muster, which has no host name. The operator has to give it one."
		return nil
	}
	who, err := s.Store.Decider(v.Context(), v.Company.ID, v.User.ID)
	if err != nil {
		return err
	}
	controls := v.Company.Settings.Controls
	refused := who.May(m.Matter, controls, v.Now)
	if refused == nil {
		return nil
	}
	if fault.CodeOf(refused) != fault.Refused {
		return refused
	}
	m.barred, m.noPasskey = frame.Sentence(fault.From(refused).Detail), len(who.Passkeys) == 0
	if from := who.OldEnoughAt(m.Matter, controls); from.After(v.Now) && who.May(m.Matter, controls, from) == nil {
		m.from = from
	}
	all, err := s.Store.Approvers(v.Context(), v.Company.ID)
	m.alone = !slices.ContainsFunc(all, func(other access.Approver) bool { return other.May(m.Matter, controls, v.Now) == nil })
	return err
}

// decide takes a signed decision, or what the person typed, which is compared and becomes
// part of what they sign then. want is the decision, where the address says it.
func (s *Section) decide(find finder, want signature.Decision) frame.Handler {
	return func(v *frame.Visit) error {
		m, err := find(v)
		if err != nil {
			return m.elsewhere(v, err)
		}
		if v.Form.Get("answer") == "" {
			return s.begin(v, m, want)
		}
		signed, key, err := v.Signed(s.Passkeys)
		var head signature.Head
		if err == nil {
			head, err = signed.Head()
		}
		if err == nil && want != "" && head.Decision != want {
			err = fault.New(fault.Refused, "another decision was signed than was sent: open the page again")
		}
		if err == nil {
			err = s.Store.Decide(v.Context(), approval.Decision{CompanyID: v.Company.ID, Kind: m.Kind, ID: m.ID, UserID: v.User.ID,
				PasskeyID: key.ID, Signed: signed, Verifier: s.Verifier})
		}
		if err != nil {
			return v.Refused(m.path, err, refusals()...)
		}
		if head.Decision == signature.Decline {
			return v.Redirect(m.path, frame.Done(m.decline.done))
		}
		return v.Redirect(m.path, frame.Done(m.approve.done))
	}
}

func refusals() []fault.Code {
	return []fault.Code{fault.Refused, fault.NotPending, fault.ConfirmationRequired, fault.Unauthorized, fault.Unsupported, fault.InvalidArguments, fault.NotFound}
}

// begin compares what the person typed, and asks for a signature of it.
func (s *Section) begin(v *frame.Visit, m matter, want signature.Decision) error {
	if want == "" {
		want = signature.Decision(v.Form.Get("decision"))
	}
	if m.closed == "" {
		if err := s.admit(v, &m); err != nil {
			return err
		}
	}
	c, err := s.typed(v, m, want)
	if v.Request().Header.Get("Accept") == "application/json" {
		return reply(v, c, err)
	}
	if err != nil {
		return v.Refused(m.path, err, refusals()...)
	}
	if want == signature.Approve {
		m.decline = action{}
	} else {
		m.approve = action{}
	}
	return v.Show(m.title, m.section, page(v, m, challenges{want: c}))
}

// typed is the challenge of a decision with what the person typed.
func (s *Section) typed(v *frame.Visit, m matter, want signature.Decision) (account.Challenge, error) {
	head := signature.Head{Decision: want}
	switch {
	case !m.open():
		return account.Challenge{}, fault.New(fault.Refused, "%s", m.closed+m.barred)
	case want == m.approve.decision && want != "":
		if m.Name != "" {
			head.Confirmation = strings.TrimSpace(v.Form.Get("confirmation"))
		}
	case want == m.decline.decision && want != "":
		head.Reason = frame.Plain(strings.TrimSpace(v.Form.Get("reason")))
	default:
		return account.Challenge{}, fault.Invalid("the decision must be APPROVE or DECLINE")
	}
	if utf8.RuneCountInString(head.Reason) > approval.MaxReason {
		return account.Challenge{}, fault.Invalid("the reason must have at most 200 characters")
	}
	if err := m.Confirms(head); err != nil {
		return account.Challenge{}, err
	}
	return s.challenge(v, m, head)
}

// reply answers the page's script.
func reply(v *frame.Visit, c account.Challenge, err error) error {
	answer, status := map[string]any{"token": c.Token, "options": c.Options}, http.StatusOK
	if err != nil {
		if !slices.Contains(refusals(), fault.CodeOf(err)) {
			return err
		}
		answer, status = map[string]any{"problem": frame.Sentence(fault.From(err).Detail)}, http.StatusUnprocessableEntity
	}
	w := v.Writer()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(answer)
}
