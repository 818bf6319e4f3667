package people

import (
	"encoding/json"
	"net/http"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// proofView offers the way to prove one's identity: the passkey; without one the password;
// without either the company's provider. A complete sign-in always proves it.
type proofView struct {
	Next      string
	Challenge account.Challenge
	Passkey   bool // the person has one
	Password  bool
	Company   string // the provider's name; empty: not the way
	Wrong     string
}

// provedPath ends a proof that was given in another window: its page tells the one that
// waits for it.
const provedPath = web.ProvePath + "/done"

func (s *Account) proved(v *frame.Visit) error {
	return v.Show("Confirmed", "", provedPage())
}

// askProof asks a person for the proof. A page that asks in a dialog, and needs none, is
// told so.
func (s *Account) askProof(v *frame.Visit) error {
	if v.Partial() && v.Session.Fresh(v.Now) {
		v.Writer().WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.showProof(v, http.StatusOK, web.LocalPath(v.Query().Get("next")), "")
}

func (s *Account) showProof(v *frame.Visit, status int, next, wrong string) error {
	page := proofView{Next: next, Wrong: wrong}
	known, err := s.Passkeys.Store.Passkeys(v.Context(), v.User.ID)
	if err != nil {
		return err
	}
	page.Passkey, page.Password = len(known) > 0, len(known) == 0 && v.User.PasswordHash != ""
	if page.Passkey && s.Passkeys.Available() {
		page.Challenge, err = s.Passkeys.BeginProof(v.Context(), v.User, account.ProvePasskey)
	}
	if !page.Passkey && !page.Password {
		page.Company, err = s.provider(v)
	}
	switch {
	case err != nil:
		return err
	case v.Partial():
		v.Writer().Header().Set(frame.ProofHeader, "wanted") // 401 without it is a session that has ended
		return v.FragmentStatus(status, proof(v, page))
	}
	return v.ShowStatus(status, "Confirm it's you", "", proofPage(v, page))
}

// provider is the name of the company's provider; empty: none signs in its users.
func (s *Account) provider(v *frame.Visit) (string, error) {
	p, err := s.Federation.Providers.Provider(v.Context(), v.Company.ID)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !p.Enabled {
		return "", nil
	}
	return p.Name, err
}

// mayProveBy returns fault.Refused, saying how, for a person who has a better way than
// the one they took.
func (s *Account) mayProveBy(v *frame.Visit, company bool) error {
	known, err := s.Passkeys.Store.Passkeys(v.Context(), v.User.ID)
	switch {
	case err != nil:
		return err
	case len(known) > 0:
		return fault.New(fault.Forbidden, "use your passkey")
	case company && v.User.PasswordHash != "":
		return fault.New(fault.Forbidden, "use your password")
	}
	return nil
}

func (s *Account) proveByPassword(v *frame.Visit) error {
	next := web.LocalPath(v.Form.Get("next"))
	if err := s.mayProveBy(v, false); err != nil {
		return s.settle(v, next, err)
	}
	err := s.SignIn.CheckAgain(v.Context(), v.Session, v.User, v.Form.Get("password"))
	return s.settle(v, next, err)
}

func (s *Account) proveByPasskey(v *frame.Visit) error {
	err := s.Passkeys.FinishProof(v.Context(), v.User, account.ProvePasskey, v.Form.Get("token"), json.RawMessage(v.Form.Get("answer")))
	return s.settle(v, web.LocalPath(v.Form.Get("next")), err)
}

func (s *Account) settle(v *frame.Visit, next string, err error) error {
	switch fault.CodeOf(err) {
	case "":
	case fault.Forbidden:
		return s.showProof(v, http.StatusForbidden, next, frame.Sentence(fault.From(err).Detail))
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
	if v.Partial() {
		v.Writer().WriteHeader(http.StatusNoContent)
		return nil
	}
	return v.Redirect(next, frame.Done("Thank you. For five minutes you are not asked again."))
}

// proveAtProvider shows the way to the provider. It is a link, as the page's
// policy lets no form lead elsewhere.
func (s *Account) proveAtProvider(v *frame.Visit) error {
	next := web.LocalPath(v.Form.Get("next"))
	if err := s.mayProveBy(v, true); err != nil {
		return s.settle(v, next, err)
	}
	address, signIn, err := s.Federation.StartProof(v.Context(), v.User, next)
	if err != nil {
		return err
	}
	s.Sessions.SetProviderSignIn(v.Writer(), signIn)
	return v.Show("Confirm it's you", "", away(address))
}
