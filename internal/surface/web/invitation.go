package web

import (
	"net/http"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/text"
)

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
		wrong(http.StatusUnprocessableEntity, text.Sentence(fault.From(err).Detail))
		return
	}
	user, by, err := s.Invitations.Accept(r.Context(), code, password)
	switch fault.CodeOf(err) {
	case "":
		ctx := access.WithActor(r.Context(), access.Actor{Kind: access.User, ID: user.ID, UserID: user.ID, Name: user.Name}, "")
		s.enter(w, r.WithContext(ctx), user, "invitation by "+by, signInForm{Next: "/", Email: user.Email})
	case fault.NotFound:
		wrong(http.StatusNotFound, "This invitation is over or was used already. Ask for a new one.")
	case fault.RateLimited:
		wrong(http.StatusTooManyRequests, text.Sentence(fault.From(err).Detail))
	default:
		s.broken(w, r, signInForm{Next: "/"}, err)
	}
}
