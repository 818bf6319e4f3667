package approvals

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// decide takes a signed decision, or what the person typed, which is compared and becomes
// part of what they sign then. want is the decision, where the address says it.
func (s *Section) decide(find finder, want signature.Decision) frame.Handler {
	return func(v *frame.Visit) error {
		m, err := find(v)
		if err != nil {
			return s.elsewhere(v, m, err)
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
		if err != nil {
			return v.Refused(m.path, err, refusals()...)
		}
		if err = s.Store.Decide(v.Context(), approval.Decision{CompanyID: v.Company.ID, Kind: m.Kind, ID: m.ID, UserID: v.User.ID,
			PasskeyID: key.ID, Signed: signed, Verifier: s.Verifier}); err != nil {
			return s.refused(v, find, m.path, err)
		}
		taken := frame.Either(head.Decision == signature.Decline, m.decline, m.approve)
		return v.Redirect(m.path, frame.Done(taken.done))
	}
}

// refused says why a decision was not taken: that another one was faster, if it was.
func (s *Section) refused(v *frame.Visit, find finder, path string, err error) error {
	if !slices.Contains(refusals(), fault.CodeOf(err)) {
		return err
	}
	now, gone := find(v)
	if fault.CodeOf(gone) == fault.NotFound {
		now.closed = v.Ended(v.PathValue("id"), frame.Sentence(fault.From(gone).Detail))
	}
	if now.closed == "" {
		return v.Redirect(path, v.Failed(err))
	}
	return v.Redirect(path, frame.Flash{Tone: frame.Warn, Text: "Your decision came too late and does not count. " + now.closed})
}

func refusals() []fault.Code {
	return []fault.Code{fault.Refused, fault.NotPending, fault.ConfirmationRequired, fault.Unauthorized, fault.Unsupported,
		fault.InvalidArguments, fault.NotFound}
}

// begin compares what the person typed, and asks for a signature of it.
func (s *Section) begin(v *frame.Visit, m matter, want signature.Decision) error {
	want = cmp.Or(want, signature.Decision(v.Form.Get("decision")))
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
	edge.JSON(v.Writer(), status, edge.NoStore, answer)
	return nil
}

// admit finds out whether the person may decide, and if not why, until when, and who may.
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
	m.barred = frame.Sentence(fault.From(refused).Detail)
	if missing := m.Matter.Needs &^ who.Permissions; missing != 0 {
		m.barred = "You may not decide this: it takes the permission to " + account.RightsFor(missing).Words() +
			" (" + missing.String() + ")."
	}
	if len(who.Passkeys) == 0 {
		with := who
		with.Passkeys = []time.Time{{}}
		m.noPasskey = with.May(m.Matter, controls, v.Now) == nil
	}
	if from := who.OldEnoughAt(m.Matter, controls); from.After(v.Now) && who.May(m.Matter, controls, from) == nil {
		m.from = from
	}
	return s.findOthers(v, m)
}

// findOthers names who may decide now, at most three.
func (s *Section) findOthers(v *frame.Visit, m *matter) error {
	all, err := s.Store.Approvers(v.Context(), v.Company.ID)
	all = slices.DeleteFunc(all, func(other access.Approver) bool {
		return other.May(m.Matter, v.Company.Settings.Controls, v.Now) != nil
	})
	m.alone = len(all) == 0
	m.others = frame.AnyOf(all, func(other access.Approver) string { return other.Name })
	return err
}
