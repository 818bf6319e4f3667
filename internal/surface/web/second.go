package web

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// Where sign-in goes on.
const (
	secondPath     = SignInPath + "/second"
	companyPath    = SignInPath + "/company"
	CallbackPath   = SignInPath + "/callback" // providers send people back here
	InvitationPath = "/invitation"
)

// secondForm asks for the second factor.
type secondForm struct {
	Next, Wrong string
	Challenge   access.Challenge
	Passkey     bool
	Token       string // of the recovery code's form
}

// afterPassword asks for the second factor of who has one, and lets the others in.
func (s SignIn) afterPassword(w http.ResponseWriter, r *http.Request, user access.UserAccount, form signInForm) {
	if s.Passkeys.Store == nil { // a service without second factors
		s.enter(w, r, user, "password", form)
		return
	}
	known, err := s.Passkeys.Store.Passkeys(r.Context(), user.ID)
	if err != nil {
		s.broken(w, r, form, err)
		return
	}
	if len(known) == 0 {
		s.enter(w, r, user, "password", form)
		return
	}
	page := secondForm{Next: form.Next, Passkey: s.Passkeys.Available()}
	if page.Passkey {
		page.Challenge, err = s.Passkeys.BeginProof(r.Context(), user, access.SecondFactor)
	}
	if err == nil {
		page.Token, err = access.Begin(r.Context(), s.Passkeys.Steps, access.Step{Kind: access.SecondFactor, CompanyID: user.CompanyID,
			UserID: user.ID, Data: json.RawMessage("{}"), ExpiresAt: s.SignIn.Now().Add(access.StepLife)})
	}
	if err != nil {
		s.broken(w, r, form, err)
		return
	}
	s.answer(w, r, http.StatusOK, secondPage(page))
}

// enter opens the session.
func (s SignIn) enter(w http.ResponseWriter, r *http.Request, user access.UserAccount, method string, form signInForm) {
	token, _, err := s.SignIn.OpenBy(r.Context(), user, method, s.ClientAddress(r), r.UserAgent())
	if err != nil {
		s.broken(w, r, form, err)
		return
	}
	s.Sessions.Set(w, token)
	http.Redirect(w, r, form.Next, http.StatusSeeOther)
}

// second checks the second factor. Each token is good for one attempt; then it
// begins with the password again, whose attempts are counted.
func (s SignIn) second(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	form := signInForm{Next: LocalPath(r.PostFormValue("next"))}
	token := r.PostFormValue("token")
	step, err := s.Passkeys.Steps.Step(r.Context(), access.HashSecret(token), access.SecondFactor)
	if fault.CodeOf(err) == fault.NotFound {
		form.Wrong = "This took too long. Begin again."
		s.render(w, r, http.StatusUnauthorized, form)
		return
	}
	var user access.UserAccount
	if err == nil {
		user, err = s.SignIn.Users.UserByID(r.Context(), step.CompanyID, step.UserID)
	}
	if err != nil {
		s.broken(w, r, form, err)
		return
	}
	form.Email = user.Email
	method := "password and passkey"
	if code := r.PostFormValue("code"); code != "" {
		method = "password and recovery code"
		if _, err = s.Passkeys.Steps.TakeStep(r.Context(), access.HashSecret(token), access.SecondFactor); err == nil {
			err = s.Passkeys.UseCode(r.Context(), user, code)
		}
	} else {
		err = s.Passkeys.FinishProof(r.Context(), user, access.SecondFactor, token, json.RawMessage(r.PostFormValue("answer")))
	}
	switch fault.CodeOf(err) {
	case "":
		if user.Disabled {
			form.Wrong = "The account is disabled."
			s.render(w, r, http.StatusUnauthorized, form)
			return
		}
		s.enter(w, r, user, method, form)
	case fault.Unauthorized, fault.Refused, fault.NotFound:
		if s.SignIn.Log != nil {
			if err := s.SignIn.Log.SignInFailed(r.Context(), user, "wrong second factor"); err != nil {
				s.broken(w, r, form, err)
				return
			}
		}
		form.Wrong = "The second factor was not right. Begin again."
		s.render(w, r, http.StatusUnauthorized, form)
	default:
		s.broken(w, r, form, err)
	}
}

// company sends somebody to their company's provider. It is a page with a link
// that follows itself, as our policy lets no form lead elsewhere.
func (s SignIn) company(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignInForm)
	form := signInForm{Next: LocalPath(r.PostFormValue("next")), Email: r.PostFormValue("email")}
	address, state, err := s.Federation.StartByEmail(r.Context(), form.Email, form.Next)
	switch fault.CodeOf(err) {
	case "":
		s.Sessions.SetState(w, state)
		s.answer(w, r, http.StatusOK, awayPage(address))
	case fault.NotFound:
		form.Wrong = "No company sign-in is set up for this address. Use your password."
		s.render(w, r, http.StatusNotFound, form)
	case fault.InvalidArguments:
		form.Wrong = "Give your e-mail address first."
		s.render(w, r, http.StatusUnprocessableEntity, form)
	case fault.Provider:
		form.Wrong = "Your company's sign-in does not answer. Try again in a moment."
		s.Log.WarnContext(r.Context(), "an identity provider does not answer", "error", err)
		s.render(w, r, http.StatusBadGateway, form)
	default:
		s.broken(w, r, form, err)
	}
}

// callback is where providers send people back to.
func (s SignIn) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	form := signInForm{Next: "/"}
	if !s.Sessions.TakeState(w, r, q.Get("state")) {
		form.Wrong = "This sign-in was not begun in this browser. Begin again."
		s.render(w, r, http.StatusBadRequest, form)
		return
	}
	if q.Get("code") == "" {
		form.Wrong = "Your company's sign-in let nobody in. Begin again."
		s.render(w, r, http.StatusUnauthorized, form)
		return
	}
	user, journey, err := s.Federation.Finish(r.Context(), q.Get("state"), q.Get("code"))
	form.Next = LocalPath(journey.Next)
	switch fault.CodeOf(err) {
	case "":
	case fault.Refused, fault.Provider, fault.NotFound:
		s.Log.InfoContext(r.Context(), "a provider's sign-in was refused", "error", err)
		form.Wrong = fault.From(err).Detail
		s.render(w, r, http.StatusUnauthorized, form)
		return
	default:
		s.broken(w, r, form, err)
		return
	}
	if journey.Proves == "" {
		s.enter(w, r, user, "company sign-in", form)
		return
	}
	v, ok, err := s.Sessions.Visitor(r)
	if err == nil && ok && v.User.ID == user.ID {
		err = s.Sessions.Store.ProveSession(r.Context(), v.Session.ID, s.SignIn.Now())
	}
	if err != nil {
		s.broken(w, r, form, err)
		return
	}
	http.Redirect(w, r, form.Next, http.StatusSeeOther)
}

// invitation asks somebody who was invited for a password. The code is behind
// the # of the address, which browsers do not send.
func (s SignIn) invitation(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, http.StatusOK, invitationPage("", ""))
}

func (s SignIn) accept(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignInForm)
	code, password := r.PostFormValue("code"), r.PostFormValue("password")
	ctx := r.Context()
	wrong := func(status int, text string) { s.answer(w, r, status, invitationPage(code, text)) }
	if err := access.CheckPassword(password); err != nil || password != r.PostFormValue("again") {
		wrong(http.StatusUnprocessableEntity, "The password must have at least 8 characters, twice the same.")
		return
	}
	step, err := s.Passkeys.Steps.TakeStep(ctx, access.HashSecret(code), access.Invitation)
	if fault.CodeOf(err) == fault.NotFound {
		wrong(http.StatusNotFound, "This invitation is over, or was used. Ask for a new one.")
		return
	}
	var user access.UserAccount
	if err == nil {
		user, err = s.Users.Store.UserByID(ctx, step.CompanyID, step.UserID)
	}
	if err == nil && (user.Disabled || user.PasswordHash != "") {
		wrong(http.StatusNotFound, "This invitation is over, or was used. Ask for a new one.")
		return
	}
	if err == nil {
		ctx = access.WithActor(ctx, access.Actor{Kind: access.User, ID: user.ID, UserID: user.ID, Name: user.Name}, "")
		user, err = s.Users.SetPassword(ctx, user.CompanyID, user.ID, password)
	}
	if err != nil {
		s.broken(w, r, signInForm{Next: "/"}, err)
		return
	}
	s.enter(w, r.WithContext(ctx), user, "invitation", signInForm{Next: "/", Email: url.QueryEscape(user.Email)})
}
