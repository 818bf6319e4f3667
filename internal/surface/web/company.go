package web

import (
	"encoding/json"
	"net/http"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/phrase"
)

// company sends a person to their company's provider. It is a page with a link
// that follows itself, as our policy lets no form lead elsewhere.
func (s SignIn) company(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignInForm)
	form := signInForm{Next: LocalPath(r.PostFormValue("next")), Email: r.PostFormValue("email")}
	err := s.SignIn.AllowProviderSignIn(r.Context(), s.from(r))
	var address, signIn string
	if code := r.PostFormValue("code"); err == nil && code != "" {
		address, signIn, err = s.Federation.StartInvited(r.Context(), code)
	} else if err == nil {
		address, signIn, err = s.Federation.StartByEmail(r.Context(), form.Email, form.Next)
	}
	switch fault.CodeOf(err) {
	case "":
		s.Sessions.SetProviderSignIn(w, signIn)
		s.answer(w, r, http.StatusOK, awayPage(address))
	case fault.NotFound:
		s.again(w, r, http.StatusNotFound, form, "No company sign-in is set up for this address. Use your password.")
	case fault.InvalidArguments:
		s.again(w, r, http.StatusUnprocessableEntity, form, "Enter your e-mail address first.")
	case fault.Provider:
		s.Log.WarnContext(r.Context(), "identity provider does not answer", "error", err)
		s.again(w, r, http.StatusBadGateway, form, "Your company's sign-in does not answer. Try again in a moment.")
	default:
		s.refuse(w, r, form, err)
	}
}

// callback is where providers send people back to.
func (s SignIn) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	form := signInForm{Next: "/"}
	signIn := s.Sessions.TakeProviderSignIn(w, r)
	if signIn == "" {
		s.again(w, r, http.StatusBadRequest, form, "This sign-in was not begun in this browser. Start again.")
		return
	}
	if q.Get("code") == "" {
		s.again(w, r, http.StatusUnauthorized, form, "Your company's sign-in did not sign you in. Start again.")
		return
	}
	back := account.Return{State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss")}
	var result account.ProviderResult
	err := s.SignIn.AllowProviderReturn(r.Context(), s.from(r), back.State)
	if err == nil {
		result, err = s.Federation.Finish(r.Context(), signIn, back)
	}
	form.Next = LocalPath(result.SignIn.Next)
	switch code := fault.CodeOf(err); {
	case code == fault.Refused && result.SignIn.State == "": // no sign-in of this browser
		s.again(w, r, http.StatusBadRequest, form, phrase.Sentence(fault.From(err).Detail))
	case code == fault.Refused || code == fault.Provider || code == fault.NotFound || code == fault.Forbidden:
		s.Log.InfoContext(r.Context(), "company sign-in refused", "error", err)
		s.again(w, r, http.StatusUnauthorized, form, phrase.Sentence(fault.From(err).Detail))
	case err != nil:
		s.refuse(w, r, form, err)
	case result.Confirm != "":
		s.askLink(w, r, http.StatusOK, result.Confirm, "")
	case result.SignIn.Proves != "":
		s.proved(w, r, result, form)
	case result.InvitedBy != "":
		s.enterProved(w, r, result.User, "company sign-in, invitation by "+result.InvitedBy, form, result.ProvedAt)
	default:
		s.enterProved(w, r, result.User, "company sign-in", form, result.ProvedAt)
	}
}

// proved notes that the person of the session signed in at the provider again.
func (s SignIn) proved(w http.ResponseWriter, r *http.Request, result account.ProviderResult, form signInForm) {
	v, ok, err := s.Sessions.Person(r)
	if err == nil && ok && v.User.ID == result.User.ID {
		err = s.Sessions.Store.ProveSession(r.Context(), v.Session.ID, result.ProvedAt)
	}
	if err != nil {
		s.refuse(w, r, form, err)
		return
	}
	http.Redirect(w, r, form.Next, http.StatusSeeOther)
}

// linkForm asks a person who comes from the provider for the first time to
// prove that the account here is theirs.
type linkForm struct {
	Token, Email, Provider, Wrong string
	Password                      bool
	Challenge                     account.Challenge
}

func (s SignIn) askLink(w http.ResponseWriter, r *http.Request, status int, token, wrong string) {
	l, user, err := s.Federation.Linking(r.Context(), token)
	if err != nil {
		s.refuse(w, r, signInForm{Next: "/"}, err)
		return
	}
	form := linkForm{Token: token, Email: user.Email, Provider: l.Provider, Wrong: wrong}
	known, err := s.Passkeys.Store.Passkeys(r.Context(), user.ID)
	if err == nil && len(known) > 0 && s.Passkeys.Available() {
		form.Challenge, err = s.Passkeys.BeginProof(r.Context(), user, account.ProvePasskey)
	}
	if err != nil {
		s.refuse(w, r, signInForm{Next: "/"}, err)
		return
	}
	form.Password = len(known) == 0
	s.answer(w, r, status, linkPage(form))
}

// link checks the proof, links the account, and signs the person in. For a
// person who has a passkey, the password alone is not enough.
func (s SignIn) link(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPasskeyForm)
	ctx, token := r.Context(), r.PostFormValue("link")
	l, user, err := s.Federation.Linking(ctx, token)
	if err != nil {
		s.refuse(w, r, signInForm{Next: "/"}, err)
		return
	}
	known, err := s.Passkeys.Store.Passkeys(ctx, user.ID)
	switch answer := r.PostFormValue("answer"); {
	case err != nil:
	case answer != "":
		err = s.Passkeys.FinishProof(ctx, user, account.ProvePasskey, r.PostFormValue("token"), json.RawMessage(answer))
	case len(known) > 0:
		err = fault.New(fault.Unauthorized, "use your passkey")
	default:
		_, err = s.SignIn.Check(ctx, user.Email, r.PostFormValue("password"), s.from(r))
	}
	if err != nil {
		status, wrong := s.reason(w, r, err)
		s.askLink(w, r, status, token, wrong)
		return
	}
	if err := s.Federation.Link(ctx, token, l); err != nil {
		s.refuse(w, r, signInForm{Next: "/"}, err)
		return
	}
	s.enter(w, r, user, "company sign-in, linked", signInForm{Next: LocalPath(l.Next)})
}
