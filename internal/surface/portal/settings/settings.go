// Package settings is the portal's company settings: the general ones, the
// company's own identity provider, its connection to the device-management
// platform, and the checklist of an empty company.
package settings

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Platform connects companies to the device-management platform. Each method fails as the database
// does, and with the faults that it names. fault.Provider means that the vendor refused, or that its
// answer is not known.
type Platform interface {
	// StartSignup returns the page on which an administrator signs the company
	// up. session is the id of the session that begins. It fails with fault.Refused if the
	// company is connected, or the service has no public address; fault.Provider;
	// fault.NotFound without the company.
	StartSignup(ctx context.Context, companyID, session string) (address string, err error)
	// OpenSignup returns the one that was left half-way; fault.NotFound if none.
	OpenSignup(ctx context.Context, companyID string) (company.Signup, error)
	// Signup returns the one with a state; fault.NotFound if there is none.
	Signup(ctx context.Context, state string) (company.Signup, error)
	// KeepSignupToken keeps what the vendor's page brought back; fault.NotFound if no
	// unfinished sign-up has the state.
	KeepSignupToken(ctx context.Context, state, token string) error
	// FinishSignup binds the company with it; pushed is how many policies the
	// vendor took. It fails with fault.NotFound if no sign-up has the state, fault.Refused
	// if the company or the enterprise is connected elsewhere, fault.Provider, and
	// fault.Unavailable while another call finishes it.
	FinishSignup(ctx context.Context, state, token string) (bound company.Company, pushed int, err error)
	// ResumeSignup binds the company with what was kept, and fails as FinishSignup does, or
	// with fault.Refused if nothing was kept.
	ResumeSignup(ctx context.Context, companyID string) (bound company.Company, pushed int, err error)
}

// Section serves the settings.
type Section struct {
	Controls   frame.ControlStore
	Federation account.Federation
	Platform   Platform
	Assets     asset.Store
	Policies   policy.Lister
	Keys       apikey.Store
	Users      account.UserStore
	Updates    Updates
	// System reads the state of the service.
	System func(ctx context.Context, companyID string) (System, error)
	// Throttle counts the visits of CallbackPath by ClientAddress.
	Throttle      access.Throttle
	ClientAddress func(*http.Request) string
	Now           func() time.Time
	Log           *slog.Logger
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	return []frame.Route{
		{Pattern: "GET " + frame.SettingsPath, Serve: s.general},
		{Pattern: "POST " + frame.SettingsPath, Needs: account.ManageCompany,
			Proof: frame.Proof{Next: frame.SettingsPath, Then: "save the settings", If: shortens}, Serve: s.saveGeneral},
		{Pattern: "GET " + frame.CompanySignInPath, Needs: account.ManageCompany, Serve: frame.On(s.provider, s.signIn)},
		{Pattern: "POST " + frame.CompanySignInPath, Needs: account.ManageCompany,
			Proof: frame.Proof{Next: frame.CompanySignInPath, Then: "save company sign-in"}, Serve: frame.On(s.provider, s.saveSignIn)},
		{Pattern: "GET " + frame.PlatformPath, Needs: account.ManageCompany, Serve: frame.On(s.open, s.platform)},
		{Pattern: "POST " + frame.PlatformPath, Needs: account.ManageCompany, Serve: s.connect},
		{Pattern: "GET " + frame.PlatformPath + "/signup", Needs: account.ManageCompany, Serve: frame.On(s.open, s.signup)},
		{Pattern: "POST " + frame.PlatformPath + "/finish", Needs: account.ManageCompany, Serve: s.finish},
		{Pattern: "GET " + frame.UpdatesPath, Needs: frame.ManageAll, Serve: s.updates},
		{Pattern: "POST " + frame.UpdatesPath, Needs: frame.ManageAll, Serve: s.pauseUpdates},
		{Pattern: "GET " + frame.SystemPath, Needs: account.ManageCompany, Serve: s.system},
		{Pattern: "GET " + CallbackPath, Serve: s.callback, Guest: s.guestCallback},
		{Pattern: "GET " + frame.SetupPath, Serve: s.setup},
	}
}

const day = 24 * time.Hour

// generalForm is what the general settings' form shows.
type generalForm struct {
	Name, Inactive, Keep string
	Lost                 company.LostContact
	Wrong                map[string]string
	May                  bool
}

func (s *Section) general(v *frame.Visit) error {
	c := v.Company
	f := generalForm{Name: c.Name, Inactive: days(c.InactiveAfter), Keep: days(c.Settings.KeepActivity), Lost: c.Lost,
		May: v.May(account.ManageCompany)}
	return v.Show("Settings", frame.SettingsPath, generalPage(v, frame.TroubleOf(v), f))
}

func days(d time.Duration) string { return strconv.FormatFloat(d.Hours()/24, 'f', -1, 64) }

// shortens reports whether the form shortens a retention.
func shortens(v *frame.Visit) (bool, error) {
	return !v.Kept("keepActivity") && parseDays(v.Form.Get("keepActivity")) < v.Company.Settings.KeepActivity, nil
}

// saveGeneral saves the settings. A shorter retention waits, as it loosens a control.
func (s *Section) saveGeneral(v *frame.Visit) error {
	f := generalForm{Name: v.Form.Get("name"), Inactive: v.Form.Get("inactiveAfter"), Keep: v.Form.Get("keepActivity"), May: true,
		Lost: company.LostContact{Message: trimmed(v, "lostMessage"), PhoneNumber: trimmed(v, "lostPhone"),
			Organization: trimmed(v, "lostOrganization")}}
	did, answered, err := v.ChangeControls(s.Controls, frame.SettingsPath, func(c *company.Company) { f.apply(v, c) })
	if answered {
		return err
	}
	if fault.CodeOf(err) == fault.InvalidArguments {
		f.Wrong = frame.Fields(err)
		return v.ShowStatus(http.StatusUnprocessableEntity, "Settings", frame.SettingsPath,
			generalPage(v, frame.TroubleOf(v), f))
	}
	if err != nil {
		return err
	}
	if len(did.Waiting) > 0 {
		flash := v.Waits("The shorter time for activity", did)
		flash.Text += " All else is saved."
		flash.Link, flash.LinkText = frame.ControlsPath, "Waiting changes"
		return v.Redirect(frame.SettingsPath, flash)
	}
	return v.Redirect(frame.SettingsPath, frame.Done("The settings are saved."+did.Canceled))
}

// apply changes the company. What the form was shown with and still has is left as it is by now.
func (f generalForm) apply(v *frame.Visit, c *company.Company) {
	frame.Set(v, "name", &c.Name, strings.TrimSpace(f.Name))
	frame.Set(v, "inactiveAfter", &c.InactiveAfter, parseDays(f.Inactive))
	frame.Set(v, "keepActivity", &c.Settings.KeepActivity, parseDays(f.Keep))
	frame.Set(v, "lostMessage", &c.Lost.Message, f.Lost.Message)
	frame.Set(v, "lostPhone", &c.Lost.PhoneNumber, f.Lost.PhoneNumber)
	frame.Set(v, "lostOrganization", &c.Lost.Organization, f.Lost.Organization)
}

func trimmed(v *frame.Visit, field string) string { return strings.TrimSpace(v.Form.Get(field)) }

// parseDays reads a number of days; what cannot be read is 0, which Check refuses.
func parseDays(text string) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || n < 0 || n > 4000 {
		return 0
	}
	return time.Duration(n * float64(day)).Truncate(time.Millisecond)
}
