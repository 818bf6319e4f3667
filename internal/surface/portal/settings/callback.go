package settings

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// CallbackPath is where the vendor's sign-up page sends the browser back to.
// The state in its query is a secret, but it stands in addresses, so it is not
// enough: a sign-up that was begun in the portal is finished by the session
// that began it. Another session of an administrator finishes it with the
// button of the platform page. A sign-up that was begun on the command line has
// no session.
const CallbackPath = "/connect/callback"

// callbacksPerMinute is how often one network may visit CallbackPath.
const callbacksPerMinute = 30

// returned finds the sign-up that a browser comes back from.
func (s *Section) returned(r *http.Request) (signup company.Signup, token string, err error) {
	now := s.Now()
	_, spent, closes, err := s.Throttle.Spend(r.Context(), "connect:"+account.Network(s.ClientAddress(r)),
		callbacksPerMinute, time.Minute, now)
	if err != nil {
		return company.Signup{}, "", err
	}
	if !spent {
		return company.Signup{}, "", fault.Limited(closes.Sub(now), "too many requests from this address: try again later")
	}
	signup, err = s.Platform.Signup(r.Context(), r.URL.Query().Get("state"))
	return signup, r.URL.Query().Get("enterpriseToken"), err
}

// callback answers a browser whose person is signed in. The session that began the sign-up
// finishes it. Another session of an administrator is led to the button that does. A sign-up
// of the command line is finished here too, also by who may not manage its company.
func (s *Section) callback(v *frame.Visit) error {
	signup, token, err := s.returned(v.Request())
	if err == nil {
		err = v.Running() // it is a GET, because the vendor's page leads here
	}
	if err != nil {
		return err
	}
	if signup.Session == "" && (signup.CompanyID != v.Company.ID || !v.May(account.ManageCompany)) {
		s.finishCommandLine(v.Writer(), v.Request(), signup.State, token)
		return nil
	}
	if signup.CompanyID != v.Company.ID {
		return fault.New(fault.NotFound, "this sign-up is unknown: start again on the platform page")
	}
	if err := v.Require(account.ManageCompany); err != nil {
		return err
	}
	if signup.Session != "" && signup.Session != v.Session.ID {
		if err := s.Platform.KeepSignupToken(v.Context(), signup.State, token); err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		return v.Redirect(frame.PlatformPath, frame.Flash{Tone: frame.Warn,
			Text: "Another session started this sign-up. Check that the company is yours, then finish it here."})
	}
	_, pushed, err := s.Platform.FinishSignup(v.Context(), signup.State, token)
	return s.finished(v, pushed, err)
}

// finished leads to the platform page, which shows what became of a sign-up.
func (s *Section) finished(v *frame.Visit, pushed int, err error) error {
	return v.Finish(frame.PlatformPath, err, connected(pushed), fault.Refused, fault.Provider, fault.NotFound)
}

func connected(pushed int) string {
	return frame.Either(pushed == 0, "Connected.", "Connected. "+frame.Count(pushed, "policy", "policies")+" sent to Google.")
}

// guestCallback answers a browser without a session.
func (s *Section) guestCallback(w http.ResponseWriter, r *http.Request) {
	signup, token, err := s.returned(r)
	switch {
	case err != nil:
		s.refuseGuest(w, r, err)
	case signup.Session == "":
		s.finishCommandLine(w, r, signup.State, token)
	default:
		next := web.SignInAddress(r.URL.RequestURI())
		web.Answer(w, r, s.Log, http.StatusUnauthorized, callbackPage("Sign in to finish",
			"Your session has ended. Sign in again, and Muster finishes the connection to Google. Nothing is lost.", next))
	}
}

// finishCommandLine finishes a sign-up that was begun on the command line.
func (s *Section) finishCommandLine(w http.ResponseWriter, r *http.Request, state, token string) {
	bound, pushed, err := s.Platform.FinishSignup(r.Context(), state, token)
	if err != nil {
		s.refuseGuest(w, r, err)
		return
	}
	web.Answer(w, r, s.Log, http.StatusOK, callbackPage("Connected",
		"Company: "+frame.Plain(bound.Name)+". "+connected(pushed)+" You may close this page.", ""))
}

// refuseGuest says on a page of its own why a sign-up is not finished.
func (s *Section) refuseGuest(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.From(err)
	switch f.Code {
	case fault.NotFound:
		web.Answer(w, r, s.Log, http.StatusNotFound, callbackPage("Not found", "This sign-up is unknown here. Start again.", ""))
	case fault.RateLimited:
		w.Header().Set("Retry-After", strconv.Itoa(operation.Seconds(f.RetryAfter)))
		web.Answer(w, r, s.Log, http.StatusTooManyRequests, callbackPage("Too many requests", frame.Sentence(f.Detail), ""))
	case fault.Refused, fault.Provider:
		s.Log.WarnContext(r.Context(), "cannot finish a sign-up", slog.Any("error", err))
		web.Answer(w, r, s.Log, http.StatusBadGateway, callbackPage("Not connected",
			frame.Sentence(f.Detail)+" You need not sign up again: sign in to Muster and finish there.", frame.PlatformPath))
	default:
		s.Log.ErrorContext(r.Context(), "cannot finish a sign-up", slog.Any("error", err))
		web.Answer(w, r, s.Log, http.StatusInternalServerError,
			callbackPage("Not connected", "Muster failed. Load this page again in a moment.", ""))
	}
}
