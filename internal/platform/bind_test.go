package platform_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/platform/emulator"
)

// signup begins a sign-up, confirms it on the vendor's page and returns what the
// callback gets.
func (b *bench) signup() (state, token string) {
	b.Helper()
	address, err := b.platform.StartSignup(b.Context(), b.company.ID)
	b.ok(err)
	_, callback, err := b.emulator.CompleteSignup(address[strings.LastIndex(address, "/")+1:])
	b.ok(err)
	back, err := url.Parse(callback)
	b.ok(err)
	return back.Query().Get("state"), back.Query().Get("enterpriseToken")
}

func (b *bench) enterprises() int {
	answer, n := b.emulator.Calls(0, "create"), 0
	for _, c := range answer {
		if c.Status == http.StatusOK {
			n++
		}
	}
	return n
}

func TestConnectAtAnEmulator(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.equal("pushed", b.saved(b.policy.ID).Push.Version, 1)
		var sent struct {
			EnterpriseDisplayName, PubsubTopic string
			EnabledNotificationTypes           []string
		}
		b.ok(json.Unmarshal(b.emulator.Calls(0, "create")[0].Body, &sent))
		b.equal("name", sent.EnterpriseDisplayName, "Acme")
		b.equal("topic", sent.PubsubTopic, topic)
		b.equal("notifications", fmt.Sprint(sent.EnabledNotificationTypes), "[ENROLLMENT STATUS_REPORT COMMAND USAGE_LOGS]")

		again, err := b.platform.Connect(b.Context(), b.company.ID)
		b.ok(err)
		b.equal("again", again.Company.Enterprise, b.company.Enterprise)
		b.equal("enterprises", b.enterprises(), 1)
		_, err = b.platform.StartSignup(b.Context(), b.company.ID)
		b.equal("a sign-up of a connected company", fault.CodeOf(err), fault.Refused)
		_, err = b.platform.Connect(b.Context(), "nope")
		b.equal("no such company", fault.CodeOf(err), fault.NotFound)
	})
}

func TestACallbackMayComeTwice(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		first, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		again, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		b.equal("enterprise", again.Enterprise, first.Enterprise)
		b.equal("enterprises", b.enterprises(), 1)
		_, err = b.platform.FinishSignup(b.Context(), "guessed", token)
		b.equal("a state that is not ours", fault.CodeOf(err), fault.NotFound)
	})
}

// The enterprise was made, and the answer lost: the next visit finds it.
func TestASignupGoesOnAfterALostAnswer(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		b.fault(emulator.Fault{Method: "create", DropConnection: true, AfterEffect: true})
		b.fault(emulator.Fault{Method: "list", Status: 503})
		_, err := b.platform.FinishSignup(b.Context(), state, token)
		b.equal("first", fault.CodeOf(err), fault.Provider)
		done, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		b.equal("connected", done.Connected(), true)
		b.company = done
		b.run()
		b.equal("notified", string(b.device().Status), "ACTIVE")
	})
}

// The administrator came back while the vendor did not answer: nobody has to
// sign up again.
func TestASignupIsFinishedLater(t *testing.T) {
	on(t, func(b *bench) {
		_, err := b.platform.OpenSignup(b.Context(), b.company.ID)
		b.equal("before", fault.CodeOf(err), fault.NotFound)
		_, err = b.platform.ResumeSignup(b.Context(), b.company.ID)
		b.equal("nothing to finish", fault.CodeOf(err), fault.NotFound)
		state, token := b.signup()
		open, err := b.platform.OpenSignup(b.Context(), b.company.ID)
		b.ok(err)
		b.equal("returned", open.Returned(), false)
		_, err = b.platform.ResumeSignup(b.Context(), b.company.ID)
		b.equal("nobody came back", fault.CodeOf(err), fault.Refused)
		b.fault(emulator.Fault{Method: "create", Status: 503})
		_, err = b.platform.FinishSignup(b.Context(), state, token)
		b.equal("first", fault.CodeOf(err), fault.Provider)
		bound, err := b.platform.ResumeSignup(b.Context(), b.company.ID)
		b.ok(err)
		b.equal("connected", bound.Connected(), true)
		_, err = b.platform.OpenSignup(b.Context(), b.company.ID)
		b.equal("after", fault.CodeOf(err), fault.NotFound)
	})
}

// Of two enterprises that nobody has, none is taken: one may be another's.
func TestASignupDoesNotGuess(t *testing.T) {
	on(t, func(b *bench) {
		state, token := "", ""
		for range 2 {
			state, token = b.signup()
			b.fault(emulator.Fault{Method: "create", DropConnection: true, AfterEffect: true})
			b.fault(emulator.Fault{Method: "list", Status: 503})
			_, err := b.platform.FinishSignup(b.Context(), state, token)
			b.equal("lost", fault.CodeOf(err), fault.Provider)
		}
		_, err := b.platform.FinishSignup(b.Context(), state, token)
		b.equal("one of two", fault.CodeOf(err), fault.Provider)
	})
}

// Nor one of another name.
func TestASignupTakesNoEnterpriseOfAnotherName(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		b.fault(emulator.Fault{Method: "create", DropConnection: true, AfterEffect: true})
		b.fault(emulator.Fault{Method: "list", Status: 503})
		_, err := b.platform.FinishSignup(b.Context(), state, token)
		b.equal("lost", fault.CodeOf(err), fault.Provider)
		b.company, err = company.New("other", "Other", access.Settings{}, time.Now())
		b.ok(err)
		b.ok(b.db.CreateCompany(b.Context(), b.company))
		state, _ = b.signup()
		_, err = b.platform.FinishSignup(b.Context(), state, "forged")
		b.equal("another's", fault.CodeOf(err), fault.Provider)
	})
}

// An enterprise of another company is never taken.
func TestASignupTakesNobodysEnterprise(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		other, err := company.New("other", "Acme", access.Settings{}, time.Now()) // of the same name
		b.ok(err)
		b.ok(b.db.CreateCompany(b.Context(), other))
		b.company = other
		state, _ := b.signup()
		_, err = b.platform.FinishSignup(b.Context(), state, "forged")
		b.equal("a forged token", fault.CodeOf(err), fault.Provider)
		read, err := b.db.CompanyByID(b.Context(), other.ID)
		b.ok(err)
		b.equal("connected", read.Connected(), false)
	})
}

func TestFailuresOfBinding(t *testing.T) {
	on(t, func(b *bench) {
		for _, c := range []struct {
			status    int
			retryable bool
		}{{400, false}, {403, false}, {429, true}, {503, true}} {
			b.fault(emulator.Fault{Method: "signupUrls.create", Status: c.status})
			_, err := b.platform.Connect(b.Context(), b.company.ID)
			b.equal("code", fault.CodeOf(err), fault.Provider)
			b.equal(fmt.Sprint(c.status, " retryable"), fault.From(err).Retryable, c.retryable)
		}
		b.start(func(c *platform.Config) { c.CallbackURL = "/connect/callback" })
		_, err := b.platform.StartSignup(b.Context(), b.company.ID)
		b.equal("no public address", fault.CodeOf(err), fault.Refused)
	})
}

func TestTheCallbackPage(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		visit := func(state, token string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			target := platform.CallbackPath + "?" + url.Values{"state": {state}, "enterpriseToken": {token}}.Encode()
			b.platform.Callback(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, target, nil))
			return w
		}
		b.equal("a stranger", visit("x", "<script>").Code, http.StatusNotFound)
		b.fault(emulator.Fault{Method: "create", Status: 503})
		b.equal("the vendor's trouble", visit(state, token).Code, http.StatusBadGateway)
		w := visit(state, token)
		b.equal("at last", w.Code, http.StatusOK)
		b.says("page", w.Body.String(), "Acme is connected")
		b.equal("referrer", w.Header().Get("Referrer-Policy"), "no-referrer")
		if strings.Contains(b.log.String(), token) {
			b.Error("the token is in the log")
		}
	})
}
