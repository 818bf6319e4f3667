package people

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// Account serves the pages of the signed-in user's own account: password, passkeys, sessions and mail.
type Account struct {
	SignIn     account.SignIn
	Service    account.Users
	Passkeys   account.Passkeys
	Federation account.Federation
	Sessions   web.Sessions
	Mail       attention.ChoiceStore // which mail each user wants
	MailSent   bool                  // the service can send mail
	// ClientAddress returns the client's address of a request, for the limits of sign-in attempts.
	ClientAddress func(*http.Request) string
}

// Routes are the section's addresses.
func (s *Account) Routes() []frame.Route {
	adding := frame.Proof{Next: frame.AccountPath + "/passkeys/new?next={next}", Then: "add a passkey"}
	then := func(what string) frame.Proof { return frame.Proof{Next: frame.AccountPath, Then: what} }
	return []frame.Route{
		{Pattern: "GET " + frame.AccountPath, Serve: frame.On(s.view, s.show)},
		{Pattern: "POST " + frame.AccountPath + "/password", Proof: then("set the password"), Serve: s.password},
		{Pattern: "POST " + frame.AccountPath + "/sessions/{session}/end", DuringStop: true, Serve: s.endSession},
		{Pattern: "GET " + frame.AccountPath + "/passkeys/new", Proof: adding, Serve: s.newPasskey},
		{Pattern: "POST " + frame.AccountPath + "/passkeys", Proof: adding, Serve: s.addPasskey},
		{Pattern: "POST " + frame.AccountPath + "/passkeys/{passkey}/remove", Proof: then("remove the passkey"), Serve: s.removePasskey},
		{Pattern: "POST " + frame.AccountPath + "/recovery", Proof: then("make new recovery codes"), Serve: s.renewCodes},
		{Pattern: "POST " + frame.AccountPath + "/mail", Serve: s.chooseMail},
		{Pattern: "GET " + web.ProvePath, Serve: s.askProof},
		{Pattern: "GET " + web.SignedInPath, Serve: s.proved},
		{Pattern: "GET " + provedPath, Proof: frame.Proof{Next: provedPath, Then: "go back to the other window"}, Serve: s.proved},
		{Pattern: "POST " + web.ProvePath, DuringStop: true, Serve: s.proveByPassword},
		{Pattern: "POST " + web.ProvePath + "/passkey", DuringStop: true, Serve: s.proveByPasskey},
		{Pattern: "POST " + web.ProvePath + "/company", DuringStop: true, Serve: s.proveAtProvider},
	}
}

// accountView is what the account page shows.
type accountView struct {
	Passkeys  []account.Passkey
	Codes     int // recovery codes that are left
	Sessions  []account.Session
	Available bool // passkeys work at this service's address
	MailSent  bool
	Mail      []event.Type
	Wrong     map[string]string
	Problem   string
}

func (s *Account) view(v *frame.Visit) (page accountView, err error) {
	page.Available, page.MailSent = s.Passkeys.Available(), s.MailSent
	choice, err := s.Mail.MailChoice(v.Context(), v.Company.ID, v.User.ID)
	if err != nil {
		return page, err
	}
	page.Mail = choice.Chosen(v.May(account.ManageCompany))
	if page.Passkeys, err = s.Passkeys.Store.Passkeys(v.Context(), v.User.ID); err != nil {
		return page, err
	}
	if page.Codes, err = s.Passkeys.Store.RecoveryCodes(v.Context(), v.User.ID); err != nil {
		return page, err
	}
	all, err := s.SignIn.Sessions.Sessions(v.Context(), v.User.ID)
	page.Sessions = slices.DeleteFunc(all, func(session account.Session) bool { return !session.Live(v.Now) })
	return page, err
}

func (s *Account) show(v *frame.Visit, page accountView) error {
	return v.Show("Your account", "", accountPage(v, page))
}

// password replaces the user's password. If there is one, the form must have it. All sessions end. This browser gets a new
// one with the old one's time of proof, so that the change does not count as a new proof of identity.
func (s *Account) password(v *frame.Visit) error {
	user, err := v.User, s.checkPasswords(v, v.Form.Get("current"), v.Form.Get("password"))
	if err == nil {
		user, err = s.Service.SetPassword(v.Context(), v.Company.ID, v.User.ID, v.Form.Get("password"))
	}
	if fault.CodeOf(err) == fault.InvalidArguments {
		page, failed := s.view(v)
		if failed != nil {
			return failed
		}
		page.Wrong, page.Problem = frame.Fields(err), frame.Sentence(fault.From(err).Detail)
		return v.ShowStatus(http.StatusUnprocessableEntity, "Your account", "", accountPage(v, page))
	}
	if err != nil {
		return err
	}
	from := s.Sessions.Client(v.Request(), s.ClientAddress(v.Request()))
	token, err := s.SignIn.OpenProved(v.Context(), user, "password", from, v.Session.ProvedAt)
	if err != nil {
		return err
	}
	s.Sessions.Enter(v.Writer(), token, from, v.User.Email)
	return v.Redirect(frame.AccountPath, frame.Done("The password is changed. Your other sessions have ended."))
}

// checkPasswords checks the current password, if the user has one, that next differs from it, and that the form repeats next.
func (s *Account) checkPasswords(v *frame.Visit, current, next string) error {
	if v.User.PasswordHash != "" {
		switch err := s.SignIn.CheckAgain(v.Context(), v.Session, v.User, current); {
		case fault.CodeOf(err) == fault.Unauthorized:
			return fault.Invalid("the current password is wrong", fault.Field{Field: "current", Message: "is wrong"})
		case err != nil:
			return err
		case next == current:
			return fault.Invalid("the new password is the current one: choose another",
				fault.Field{Field: "password", Message: "is the current one"})
		}
	}
	if next != v.Form.Get("again") {
		return fault.Invalid("the two new passwords differ", fault.Field{Field: "again", Message: "differs from the one above"})
	}
	return nil
}

func (s *Account) endSession(v *frame.Visit) error {
	if err := s.SignIn.Sessions.EndSession(v.Context(), v.User.ID, v.PathValue("session")); err != nil {
		return err
	}
	if v.PathValue("session") == v.Session.ID {
		s.Sessions.Clear(v.Writer())
	}
	return v.Redirect(frame.AccountPath, frame.Done("The session has ended."))
}

func (s *Account) newPasskey(v *frame.Visit) error {
	challenge, err := s.Passkeys.BeginAdd(v.Context(), v.User)
	return v.ShowUnless(err, "Add a passkey", "", passkeyPage(v, challenge, afterPasskey(v.Query().Get("next"))))
}

// afterPasskey returns the portal's address to which a user goes after adding a passkey: next, if that is an address of the
// portal; the account page if it is empty.
func afterPasskey(next string) string {
	return frame.Either(next == "", frame.AccountPath, web.LocalPath(next))
}

func (s *Account) addPasskey(v *frame.Visit) error {
	codes, err := s.Passkeys.FinishAdd(v.Context(), v.User, v.Form.Get("token"), v.Form.Get("name"), json.RawMessage(v.Form.Get("answer")))
	if err != nil {
		return v.Refused(frame.AccountPath, err, fault.Refused, fault.Unauthorized)
	}
	next := afterPasskey(v.Form.Get("next"))
	if len(codes) == 0 {
		return v.Redirect(next, frame.Done("The passkey is added."))
	}
	return v.Show("Recovery codes", "", codesPage(codes, next))
}

func (s *Account) removePasskey(v *frame.Visit) error {
	err := s.Passkeys.Store.RemovePasskey(v.Context(), v.User.ID, v.PathValue("passkey"))
	return v.Finish(frame.AccountPath, err, "The passkey is removed: it can no longer be used to sign in.")
}

func (s *Account) renewCodes(v *frame.Visit) error {
	known, err := s.Passkeys.Store.Passkeys(v.Context(), v.User.ID)
	if err != nil {
		return err
	}
	if len(known) == 0 {
		return fault.New(fault.Refused, "recovery codes stand in for a passkey, and you have none")
	}
	codes, err := s.Passkeys.RenewCodes(v.Context(), v.User)
	return v.ShowUnless(err, "Recovery codes", "", codesPage(codes, frame.AccountPath))
}

// chooseMail keeps which mail the person gets. With no event ticked there is none; those of
// the role are kept as no choice, so that they follow the role.
func (s *Account) chooseMail(v *frame.Visit) error {
	ticked := slices.DeleteFunc(attention.Events(), func(e event.Type) bool { return !slices.Contains(v.Form["event"], string(e)) })
	choice := attention.Choice{Muted: len(ticked) == 0}
	if !slices.Equal(ticked, choice.Chosen(v.May(account.ManageCompany))) {
		choice.Events = ticked
	}
	return v.Finish(frame.AccountPath, s.Mail.SetMailChoice(v.Context(), v.Company.ID, v.User.ID, choice), "Saved which mail you get.")
}
