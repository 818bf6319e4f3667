package people

import (
	"encoding/json"
	"net/http"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// proofView offers the ways to prove one's identity. A passkey, if there is
// one, is the only way beside the company's provider: a password alone is no
// longer enough for who has chosen a second factor.
type proofView struct {
	Next      string
	Challenge account.Challenge
	Passkey   bool
	Password  bool
	Company   string // the provider's name; empty: none
	Wrong     string
}

func (s *Account) askProof(v *frame.Visit) error {
	return s.showProof(v, http.StatusOK, web.LocalPath(v.Query().Get("next")), "")
}

func (s *Account) showProof(v *frame.Visit, status int, next, wrong string) error {
	page := proofView{Next: next, Wrong: wrong}
	known, err := s.Passkeys.Store.Passkeys(v.Context(), v.User.ID)
	if err != nil {
		return err
	}
	if len(known) > 0 && s.Passkeys.Available() {
		if page.Challenge, err = s.Passkeys.BeginProof(v.Context(), v.User, account.ProvePasskey); err != nil {
			return err
		}
		page.Passkey = true
	}
	page.Password = len(known) == 0 && v.User.PasswordHash != ""
	p, err := s.Federation.Providers.Provider(v.Context(), v.Company.ID)
	if err == nil && p.Enabled {
		page.Company = p.Name
	} else if err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return v.ShowStatus(status, "Confirm it's you", "", proof(v, page))
}

func (s *Account) proveByPassword(v *frame.Visit) error {
	next := web.LocalPath(v.Form.Get("next"))
	known, err := s.Passkeys.Store.Passkeys(v.Context(), v.User.ID)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		return s.showProof(v, http.StatusForbidden, next, "Use your passkey.")
	}
	err = s.SignIn.CheckAgain(v.Context(), v.Session, v.User, v.Form.Get("password"))
	return s.settle(v, next, err)
}

func (s *Account) proveByPasskey(v *frame.Visit) error {
	err := s.Passkeys.FinishProof(v.Context(), v.User, account.ProvePasskey, v.Form.Get("token"), json.RawMessage(v.Form.Get("answer")))
	return s.settle(v, web.LocalPath(v.Form.Get("next")), err)
}

func (s *Account) settle(v *frame.Visit, next string, err error) error {
	switch fault.CodeOf(err) {
	case "":
	case fault.Unauthorized:
		return s.showProof(v, http.StatusUnauthorized, next, "That did not prove it. Try again.")
	case fault.RateLimited:
		return s.showProof(v, http.StatusTooManyRequests, next, "Too many attempts. Wait a minute, then try again.")
	case fault.Refused:
		return s.showProof(v, http.StatusConflict, next, frame.Sentence(fault.From(err).Detail))
	default:
		return err
	}
	if err := s.SignIn.Sessions.ProveSession(v.Context(), v.Session.ID, v.Now); err != nil {
		return err
	}
	return v.Redirect(next, frame.Done("Thank you. For five minutes you are not asked again."))
}

// proveAtProvider shows the way to the provider. It is a link, as the page's
// policy lets no form lead elsewhere.
func (s *Account) proveAtProvider(v *frame.Visit) error {
	address, journey, err := s.Federation.StartProof(v.Context(), v.User, web.LocalPath(v.Form.Get("next")))
	if err != nil {
		return err
	}
	s.Sessions.SetJourney(v.Writer(), journey)
	return v.Show("Confirm it's you", "", away(address))
}
