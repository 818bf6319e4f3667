package platform_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/platform"
)

// signup begins a sign-up, confirms it on the vendor's page and returns what the
// callback gets.
func (b *bench) signup() (state, token string) {
	b.Helper()
	address, err := b.platform.StartSignup(b.Context(), b.company.ID, "session")
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

// finalName is the display name that an enterprise was given after it was made.
func (b *bench) finalName() string {
	b.Helper()
	var sent struct{ EnterpriseDisplayName string }
	for _, c := range b.emulator.Calls(0, "patch") {
		if c.Status == http.StatusOK {
			b.ok(json.Unmarshal(c.Body, &sent))
		}
	}
	return sent.EnterpriseDisplayName
}

func TestConnect_Emulator(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.equal("pushed", b.saved(b.policy.ID).Push.Version, 1)
		var sent struct {
			EnterpriseDisplayName, PubsubTopic string
			EnabledNotificationTypes           []string
		}
		b.ok(json.Unmarshal(b.emulator.Calls(0, "create")[0].Body, &sent))
		b.says("name while it is made", sent.EnterpriseDisplayName, "Acme (sign-up ")
		b.equal("final name", b.finalName(), "Acme")
		b.equal("topic", sent.PubsubTopic, topic)
		b.equal("notifications", fmt.Sprint(sent.EnabledNotificationTypes), "[ENROLLMENT STATUS_REPORT COMMAND USAGE_LOGS]")

		again, _, err := b.platform.Connect(b.Context(), b.company.ID)
		b.ok(err)
		b.equal("again", again.Enterprise, b.company.Enterprise)
		b.equal("enterprises", b.enterprises(), 1)
		_, err = b.platform.StartSignup(b.Context(), b.company.ID, "session")
		b.equal("a sign-up of a connected company", fault.CodeOf(err), fault.Refused)
		_, _, err = b.platform.Connect(b.Context(), "nope")
		b.equal("no such company", fault.CodeOf(err), fault.NotFound)
	})
}

func TestSignup_CallbackTwice(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		first, _, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		again, _, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		b.equal("enterprise", again.Enterprise, first.Enterprise)
		b.equal("enterprises", b.enterprises(), 1)
		_, _, err = b.platform.FinishSignup(b.Context(), "guessed", token)
		b.equal("a state that is not ours", fault.CodeOf(err), fault.NotFound)
	})
}

// The enterprise was made, and the answer lost: the next visit finds it.
func TestSignup_ContinuesAfterALostAnswer(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		b.fault(emulator.Fault{Method: "create", DropConnection: true, AfterEffect: true})
		b.fault(emulator.Fault{Method: "list", Status: 503})
		_, _, err := b.platform.FinishSignup(b.Context(), state, token)
		b.equal("first", fault.CodeOf(err), fault.Provider)
		done, _, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		b.equal("connected", done.Connected(), true)
		b.company = done
		b.run()
		b.equal("notified", string(b.device().Status), "ACTIVE")
	})
}

// The administrator returned while the vendor did not answer: no second
// sign-up is needed.
func TestSignup_FinishedLater(t *testing.T) {
	on(t, func(b *bench) {
		_, err := b.platform.OpenSignup(b.Context(), b.company.ID)
		b.equal("before", fault.CodeOf(err), fault.NotFound)
		_, _, err = b.platform.ResumeSignup(b.Context(), b.company.ID)
		b.equal("nothing to finish", fault.CodeOf(err), fault.NotFound)
		state, token := b.signup()
		open, err := b.platform.OpenSignup(b.Context(), b.company.ID)
		b.ok(err)
		b.equal("returned", open.Returned(), false)
		_, _, err = b.platform.ResumeSignup(b.Context(), b.company.ID)
		b.equal("not returned", fault.CodeOf(err), fault.Refused)
		b.fault(emulator.Fault{Method: "create", Status: 503})
		_, _, err = b.platform.FinishSignup(b.Context(), state, token)
		b.equal("first", fault.CodeOf(err), fault.Provider)
		bound, _, err := b.platform.ResumeSignup(b.Context(), b.company.ID)
		b.ok(err)
		b.equal("connected", bound.Connected(), true)
		_, err = b.platform.OpenSignup(b.Context(), b.company.ID)
		b.equal("after", fault.CodeOf(err), fault.NotFound)
	})
}

// Each sign-up finds the enterprise that it made, also where both of them have
// the company's name.
func TestSignup_FindsItsOwnEnterprise(t *testing.T) {
	on(t, func(b *bench) {
		state, token := "", ""
		for range 2 {
			state, token = b.signup()
			b.fault(emulator.Fault{Method: "create", DropConnection: true, AfterEffect: true})
			b.fault(emulator.Fault{Method: "list", Status: 503})
			_, _, err := b.platform.FinishSignup(b.Context(), state, token)
			b.equal("lost", fault.CodeOf(err), fault.Provider)
		}
		done, _, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		b.equal("connected", done.Connected(), true)
		b.equal("final name", b.finalName(), "Acme")
	})
}

// The vendor made no enterprise for certain, so none is looked for, not even one
// that has the company's name and no owner here.
func TestSignup_RefusedTokenBindsNothing(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		b.fault(emulator.Fault{Method: "create", DropConnection: true, AfterEffect: true})
		b.fault(emulator.Fault{Method: "list", Status: 503})
		_, _, err := b.platform.FinishSignup(b.Context(), state, token)
		b.equal("lost", fault.CodeOf(err), fault.Provider)
		lists := len(b.emulator.Calls(0, "list"))
		other, _ := b.signup()
		for range 2 {
			_, _, err = b.platform.FinishSignup(b.Context(), other, "forged")
			b.equal("a forged token", fault.CodeOf(err), fault.Provider)
		}
		b.equal("lists", len(b.emulator.Calls(0, "list")), lists)
	})
}

// A display name that could not be restored is restored later.
func TestSignup_RenamesTheEnterpriseLater(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		b.fault(emulator.Fault{Method: "patch", Status: 503})
		done, pushed, err := b.platform.FinishSignup(b.Context(), state, token)
		b.ok(err)
		b.equal("connected", done.Connected(), true)
		b.equal("pushed", pushed, 1)
		b.equal("name at first", b.finalName(), "")
		b.company = done
		b.run()
		b.pass(time.Second) // devices are listed when the loops begin
		b.equal("name at last", b.finalName(), "Acme")
	})
}

// Nor one of another name.
func TestSignup_RefusesEnterpriseOfAnotherName(t *testing.T) {
	on(t, func(b *bench) {
		state, token := b.signup()
		b.fault(emulator.Fault{Method: "create", DropConnection: true, AfterEffect: true})
		b.fault(emulator.Fault{Method: "list", Status: 503})
		_, _, err := b.platform.FinishSignup(b.Context(), state, token)
		b.equal("lost", fault.CodeOf(err), fault.Provider)
		b.company, err = company.New("other", "Other", access.Settings{}, time.Now())
		b.ok(err)
		b.ok(b.db.CreateCompany(b.Context(), b.company))
		state, _ = b.signup()
		_, _, err = b.platform.FinishSignup(b.Context(), state, "forged")
		b.equal("another's", fault.CodeOf(err), fault.Provider)
	})
}

// An enterprise of another company is never taken.
func TestSignup_RefusesUnknownEnterprise(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		other, err := company.New("other", "Acme", access.Settings{}, time.Now()) // of the same name
		b.ok(err)
		b.ok(b.db.CreateCompany(b.Context(), other))
		b.company = other
		state, _ := b.signup()
		_, _, err = b.platform.FinishSignup(b.Context(), state, "forged")
		b.equal("a forged token", fault.CodeOf(err), fault.Provider)
		read, err := b.db.CompanyByID(b.Context(), other.ID)
		b.ok(err)
		b.equal("connected", read.Connected(), false)
	})
}

func TestSignup_BindingFails(t *testing.T) {
	on(t, func(b *bench) {
		for _, c := range []struct {
			status    int
			retryable bool
		}{{400, false}, {403, false}, {429, true}, {503, true}} {
			b.fault(emulator.Fault{Method: "signupUrls.create", Status: c.status})
			_, _, err := b.platform.Connect(b.Context(), b.company.ID)
			b.equal("code", fault.CodeOf(err), fault.Provider)
			b.equal(fmt.Sprint(c.status, " retryable"), fault.From(err).Retryable, c.retryable)
		}
		b.start(func(c *platform.Config) { c.CallbackURL = "/connect/callback" })
		_, err := b.platform.StartSignup(b.Context(), b.company.ID, "session")
		b.equal("no public address", fault.CodeOf(err), fault.Refused)
	})
}
