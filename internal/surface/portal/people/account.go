package people

import (
	"encoding/json"
	"net/http"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// Account serves a person's own account.
type Account struct {
	SignIn     account.SignIn
	Service    account.Users
	Passkeys   account.Passkeys
	Federation account.Federation
	Sessions   web.Sessions
	// ClientAddress reports where a request came from, for the throttle.
	ClientAddress func(*http.Request) string
}

// Routes are the section's addresses.
func (s *Account) Routes() []frame.Route {
	adding := frame.Proof{Next: frame.AccountPath + "/passkeys/new", Then: "add a passkey"}
	return []frame.Route{
		{Pattern: "GET " + frame.AccountPath, Serve: s.show},
		{Pattern: "POST " + frame.AccountPath + "/password", Serve: s.password},
		{Pattern: "POST " + frame.AccountPath + "/sessions/{session}/end", DuringStop: true, Serve: s.endSession},
		{Pattern: "GET " + frame.AccountPath + "/passkeys/new", Proof: adding, Serve: s.newPasskey},
		{Pattern: "POST " + frame.AccountPath + "/passkeys", Proof: adding, Serve: s.addPasskey},
		{Pattern: "POST " + frame.AccountPath + "/passkeys/{passkey}/remove",
			Proof: frame.Proof{Next: frame.AccountPath, Then: "remove the passkey"}, Serve: s.removePasskey},
		{Pattern: "POST " + frame.AccountPath + "/recovery", Proof: frame.Proof{Next: frame.AccountPath, Then: "make new recovery codes"}, Serve: s.renewCodes},
		{Pattern: "GET " + web.ProvePath, Serve: s.askProof},
		{Pattern: "POST " + web.ProvePath, DuringStop: true, Serve: s.proveByPassword},
		{Pattern: "POST " + web.ProvePath + "/passkey", DuringStop: true, Serve: s.proveByPasskey},
		{Pattern: "POST " + web.ProvePath + "/company", DuringStop: true, Serve: s.proveAtProvider},
	}
}

// accountView is what the account page shows.
type accountView struct {
	Passkeys  []account.Passkey
	Codes     int
	Sessions  []account.Session
	Available bool
	Wrong     map[string]string
	Problem   string
}

func (s *Account) view(v *frame.Visit) (page accountView, err error) {
	page.Available = s.Passkeys.Available()
	if page.Passkeys, err = s.Passkeys.Store.Passkeys(v.Context(), v.User.ID); err != nil {
		return page, err
	}
	if page.Codes, err = s.Passkeys.Store.RecoveryCodes(v.Context(), v.User.ID); err != nil {
		return page, err
	}
	all, err := s.SignIn.Sessions.Sessions(v.Context(), v.User.ID)
	for _, session := range all {
		if session.Live(v.Now) {
			page.Sessions = append(page.Sessions, session)
		}
	}
	return page, err
}

func (s *Account) show(v *frame.Visit) error {
	page, err := s.view(v)
	if err != nil {
		return err
	}
	return v.Show("Your account", "", accountPage(v, page))
}

// password sets another password. It takes the present one; every session
// ends, and a new one begins here.
func (s *Account) password(v *frame.Visit) error {
	if v.User.PasswordHash == "" && !v.Proved() {
		return v.Redirect(web.ProveAddress(frame.AccountPath), frame.Flash{Tone: frame.Warn, Text: "Confirm it's you, then set a password."})
	}
	var err error
	if v.User.PasswordHash != "" {
		if err = s.SignIn.CheckAgain(v.Context(), v.Session, v.User, v.Form.Get("current")); fault.CodeOf(err) == fault.Unauthorized {
			err = fault.Invalid("the current password is wrong", fault.Field{Field: "current", Message: "is wrong"})
		}
	}
	if err == nil && v.Form.Get("password") != v.Form.Get("again") {
		err = fault.Invalid("the two new passwords differ", fault.Field{Field: "again", Message: "differs from the one above"})
	}
	if err == nil {
		_, err = s.Service.SetPassword(v.Context(), v.Company.ID, v.User.ID, v.Form.Get("password"))
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
	token, err := s.SignIn.Open(v.Context(), v.User, "password", from)
	if err != nil {
		return err
	}
	s.Sessions.Enter(v.Writer(), token, from, v.User.Email)
	return v.Redirect(frame.AccountPath, frame.Done("The password is changed. Your other sessions have ended."))
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
	if err != nil {
		return err
	}
	return v.Show("Add a passkey", "", passkeyPage(v, challenge))
}

func (s *Account) addPasskey(v *frame.Visit) error {
	codes, err := s.Passkeys.FinishAdd(v.Context(), v.User, v.Form.Get("token"), v.Form.Get("name"), json.RawMessage(v.Form.Get("answer")))
	if err != nil {
		return v.Refused(frame.AccountPath, err, fault.Refused, fault.Unauthorized)
	}
	if len(codes) == 0 {
		return v.Redirect(frame.AccountPath, frame.Done("The passkey is added."))
	}
	return v.Show("Recovery codes", "", codesPage(codes))
}

func (s *Account) removePasskey(v *frame.Visit) error {
	if err := s.Passkeys.Store.RemovePasskey(v.Context(), v.User.ID, v.PathValue("passkey")); err != nil {
		return err
	}
	return v.Redirect(frame.AccountPath, frame.Done("The passkey is removed: it can no longer be used to sign in."))
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
	if err != nil {
		return err
	}
	return v.Show("Recovery codes", "", codesPage(codes))
}
