package web

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
)

// SignIn serves the pages on which people sign in, sign out and accept an invitation.
type SignIn struct {
	SignIn   account.SignIn
	Sessions Sessions
	// Passkeys are the second factor, Federation the companies' own providers.
	Passkeys      account.Passkeys
	Federation    account.Federation
	Users         account.Users
	Invitations   account.Invitations
	ClientAddress func(*http.Request) string
	Log           *slog.Logger
	// Once takes the code of a link that signs in once, and says whom; ok is false for
	// another code, or one that was used. Nil: there are no such links.
	Once func(code string) (email string, ok bool)
}

const maxSignInForm = 8 << 10 // bytes

// Mount adds /signin and /signout.
func (s SignIn) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET "+SignInPath, s.show)
	mux.HandleFunc("POST "+SignInPath, s.submit)
	mux.HandleFunc("POST /signout", s.signOut)
	if s.Once != nil {
		mux.HandleFunc("GET "+OncePath, s.once)
	}
	mux.HandleFunc("POST "+secondPath, s.second)
	mux.HandleFunc("POST "+passkeyPath, s.passkey)
	mux.HandleFunc("POST "+companyPath, s.company)
	mux.HandleFunc("GET "+CallbackPath, s.callback)
	mux.HandleFunc("POST "+linkPath, s.link)
	mux.HandleFunc("GET "+InvitationPath, s.invitation)
	mux.HandleFunc("POST "+InvitationPath, s.accept)
}

func (s SignIn) show(w http.ResponseWriter, r *http.Request) {
	next := LocalPath(r.URL.Query().Get("next"))
	if _, ok, err := s.Sessions.Person(r); err == nil && ok {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	s.render(w, r, http.StatusOK, signInForm{Next: next})
}

func (s SignIn) submit(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignInForm)
	form := signInForm{Next: LocalPath(r.PostFormValue("next")), Email: r.PostFormValue("email")}
	user, err := s.SignIn.Check(r.Context(), form.Email, r.PostFormValue("password"), s.from(r))
	if err == nil {
		s.afterPassword(w, r, user, form)
		return
	}
	s.refuse(w, r, form, err)
}

// OncePath is where a link that signs in once leads; ?code= is its code.
const OncePath = SignInPath + "/once"

// once signs in the person of the link.
func (s SignIn) once(w http.ResponseWriter, r *http.Request) {
	form := signInForm{Next: "/"}
	email, ok := s.Once(r.URL.Query().Get("code"))
	if !ok {
		s.again(w, r, http.StatusUnauthorized, form, "This link was used already, or its time is over. Sign in with the password.")
		return
	}
	user, err := s.Users.Store.UserByEmail(r.Context(), email)
	if err != nil {
		s.refuse(w, r, form, err)
		return
	}
	s.enter(w, r, user, "link", form)
}

// from is where a request comes from.
func (s SignIn) from(r *http.Request) account.Client { return s.Sessions.Client(r, s.ClientAddress(r)) }

// refuse shows the sign-in page with the reason why a person was not signed in.
func (s SignIn) refuse(w http.ResponseWriter, r *http.Request, form signInForm, err error) {
	status, wrong := s.reason(w, r, err)
	s.again(w, r, status, form, wrong)
}

// reason returns the status and the sentence for a person who was not signed in because of err. It logs a failed attempt
// and an unexpected error, and tells clients when to try again.
func (s SignIn) reason(w http.ResponseWriter, r *http.Request, err error) (status int, wrong string) {
	status = http.StatusUnauthorized
	switch fault.CodeOf(err) {
	case fault.Unauthorized:
		s.refused(r, "wrong credentials")
	case fault.RateLimited:
		s.refused(r, "too many attempts")
		w.Header().Set("Retry-After", strconv.Itoa(operation.Seconds(fault.From(err).RetryAfter)))
		status = http.StatusTooManyRequests
	case fault.Forbidden:
		status = http.StatusForbidden
	case fault.Refused, fault.Unsupported:
	default:
		s.Log.ErrorContext(r.Context(), "sign-in failed", "error", err)
		return http.StatusInternalServerError, "The service failed, and its log says why. Try again."
	}
	return status, phrase.Sentence(fault.From(err).Detail)
}

// refused logs an attempt to sign in that failed, so that a tool such as fail2ban
// can block the address. What was typed is not logged: it may be a password.
func (s SignIn) refused(r *http.Request, reason string) {
	s.Log.WarnContext(r.Context(), "sign-in refused", "client", s.ClientAddress(r), "reason", reason)
}

func (s SignIn) signOut(w http.ResponseWriter, r *http.Request) {
	v, ok, err := s.Sessions.Person(r)
	if ok {
		err = s.Sessions.Store.EndSession(r.Context(), v.User.ID, v.Session.ID)
	}
	s.Sessions.Clear(w)
	if err != nil {
		s.Log.ErrorContext(r.Context(), "sign-out failed", "error", err)
		s.again(w, r, http.StatusInternalServerError, signInForm{Next: "/"}, "This browser is signed out, but the service could not "+
			"end the session. Sign in again, and end it on the page of your account.")
		return
	}
	http.Redirect(w, r, SignInPath, http.StatusSeeOther)
}

// again shows the form again with what is wrong.
func (s SignIn) again(w http.ResponseWriter, r *http.Request, status int, form signInForm, wrong string) {
	form.Wrong = wrong
	s.render(w, r, status, form)
}

func (s SignIn) render(w http.ResponseWriter, r *http.Request, status int, form signInForm) {
	if s.Passkeys.Available() {
		challenge, err := s.Passkeys.BeginSignIn()
		if err != nil {
			s.Log.WarnContext(r.Context(), "cannot offer passkeys", "error", err)
		}
		form.Challenge = challenge
	}
	company, err := s.Federation.Providers.HasProviders(r.Context())
	if err != nil { // the button answers what is wrong
		s.Log.WarnContext(r.Context(), "cannot tell whether companies have a sign-in of their own", "error", err)
	}
	form.Company = company || err != nil
	s.answer(w, r, status, signInPage(form))
}

func (s SignIn) answer(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	Answer(w, r, s.Log, status, page)
}

// invitation asks a person who was invited for a password. The code is behind
// the # of the address, which browsers do not send.
func (s SignIn) invitation(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, http.StatusOK, invitationPage("", ""))
}

// accept sets the invited person's first password and signs them in.
func (s SignIn) accept(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignInForm)
	code, password := r.PostFormValue("code"), r.PostFormValue("password")
	wrong := func(status int, text string) { s.answer(w, r, status, invitationPage(code, text)) }
	if password != r.PostFormValue("again") {
		wrong(http.StatusUnprocessableEntity, "The two passwords differ. Enter the same one twice.")
		return
	}
	if err := account.CheckPassword(password); err != nil {
		wrong(http.StatusUnprocessableEntity, phrase.Sentence(fault.From(err).Detail))
		return
	}
	user, by, err := s.Invitations.Accept(r.Context(), code, password)
	switch fault.CodeOf(err) {
	case "":
		ctx := access.WithActor(r.Context(), access.Actor{Kind: access.User, ID: user.ID, UserID: user.ID, Name: user.Name}, "")
		s.enter(w, r.WithContext(ctx), user, "invitation by "+by, signInForm{Next: "/", Email: user.Email})
	case fault.NotFound:
		s.refused(r, "wrong invitation")
		wrong(http.StatusNotFound, "This invitation is over or was used already. Ask for a new one.")
	default:
		wrong(s.reason(w, r, err))
	}
}
