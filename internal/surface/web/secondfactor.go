package web

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
)

// Where sign-in goes on.
const (
	secondPath     = SignInPath + "/second"
	passkeyPath    = SignInPath + "/passkey"
	linkPath       = SignInPath + "/link"
	companyPath    = SignInPath + "/company"
	CallbackPath   = SignInPath + "/callback" // providers send people back here
	InvitationPath = "/invitation"
)

const maxPasskeyForm = 64 << 10 // bytes

// secondForm asks for the second factor.
type secondForm struct {
	Next      string
	Challenge account.Challenge
	Passkey   bool
	Token     string // of the recovery code's form; the passkey's form has Challenge.Token
}

// afterPassword asks for the second factor of who has one, and lets the others in.
func (s SignIn) afterPassword(w http.ResponseWriter, r *http.Request, user account.User, form signInForm) {
	known, err := s.Passkeys.Store.Passkeys(r.Context(), user.ID)
	if err == nil && len(known) == 0 {
		s.enter(w, r, user, "password", form)
		return
	}
	page := secondForm{Next: form.Next, Passkey: s.Passkeys.Available()}
	if err == nil && page.Passkey {
		page.Challenge, err = s.Passkeys.BeginProof(r.Context(), user, account.SecondFactor)
	}
	if err == nil {
		page.Token, err = account.Begin(r.Context(), s.Passkeys.Steps,
			account.PendingSignIn{Kind: account.SecondFactor, CompanyID: user.CompanyID,
				UserID: user.ID, Data: json.RawMessage("{}"), ExpiresAt: s.SignIn.Now().Add(account.PendingLife),
				PasswordHash: user.PasswordHash})
	}
	if err != nil {
		s.refuse(w, r, form, err)
		return
	}
	s.answer(w, r, http.StatusOK, secondPage(page))
}

// enter opens the session of a person who proved their identity just now.
func (s SignIn) enter(w http.ResponseWriter, r *http.Request, user account.User, method string, form signInForm) {
	s.enterProved(w, r, user, method, form, s.SignIn.Now())
}

func (s SignIn) enterProved(w http.ResponseWriter, r *http.Request, user account.User, method string, form signInForm, proved time.Time) {
	from := s.from(r)
	token, err := s.SignIn.OpenProved(r.Context(), user, method, from, proved)
	if err != nil {
		s.refuse(w, r, form, err)
		return
	}
	s.Sessions.Enter(w, token, from, user.Email)
	http.Redirect(w, r, form.Next, http.StatusSeeOther)
}

// passkey signs in with a passkey alone, which verified the user.
func (s SignIn) passkey(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPasskeyForm)
	form := signInForm{Next: LocalPath(r.PostFormValue("next"))}
	user, err := s.Passkeys.FinishSignIn(r.Context(), r.PostFormValue("token"), json.RawMessage(r.PostFormValue("answer")))
	if err != nil {
		s.Log.InfoContext(r.Context(), "passkey sign-in refused", "error", err)
		s.refuse(w, r, form, err)
		return
	}
	s.enter(w, r, user, account.ByPasskey, form)
}

// second checks the second factor. Each token is good for one attempt; then it
// begins with the password again, whose attempts are counted.
func (s SignIn) second(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPasskeyForm)
	form := signInForm{Next: LocalPath(r.PostFormValue("next"))}
	token := r.PostFormValue("token")
	step, err := s.Passkeys.Steps.Step(r.Context(), access.HashSecret(token), account.SecondFactor)
	if fault.CodeOf(err) == fault.NotFound {
		s.again(w, r, http.StatusUnauthorized, form, "This took too long. Begin again.")
		return
	}
	var user account.User
	if err == nil {
		user, err = s.SignIn.Users.UserByID(r.Context(), step.CompanyID, step.UserID)
	}
	if err != nil {
		s.refuse(w, r, form, err)
		return
	}
	form.Email = user.Email
	method := "password and passkey"
	if code := r.PostFormValue("code"); code != "" {
		method = "password and recovery code"
		if _, err = s.Passkeys.Steps.TakeStep(r.Context(), access.HashSecret(token), account.SecondFactor); err == nil {
			err = s.Passkeys.UseCode(r.Context(), user, code)
		}
	} else {
		err = s.Passkeys.FinishProof(r.Context(), user, account.SecondFactor, token, json.RawMessage(r.PostFormValue("answer")))
	}
	switch fault.CodeOf(err) {
	case "":
		if user.Disabled {
			s.again(w, r, http.StatusUnauthorized, form, "The account is disabled.")
			return
		}
		s.enter(w, r, user, method, form)
	case fault.Unauthorized, fault.Refused, fault.NotFound:
		if err := s.SignIn.SecondFailed(r.Context(), user, s.from(r)); err != nil {
			s.refuse(w, r, form, err)
			return
		}
		s.refused(r, "wrong second factor")
		s.again(w, r, http.StatusUnauthorized, form, "The second factor was not right. Begin again.")
	default:
		s.refuse(w, r, form, err)
	}
}
