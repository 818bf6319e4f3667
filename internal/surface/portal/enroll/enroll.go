// Package enroll is the page that brings devices in: a QR code for new or reset
// devices (contract 4.4), and what has just joined.
package enroll

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Section serves the page.
type Section struct {
	Policies policy.Lister
	Assets   asset.Overview
	Codes    provisioning.Codes
	Steps    account.PendingStore
	App      func() provisioning.AppState // what codes of own-agent policies install
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	needs := account.ProvisionDevices | account.ViewPolicies
	return []frame.Route{
		{Pattern: "GET /enrol", Needs: needs, Serve: s.ask},
		{Pattern: "POST /enrol", Needs: needs, Serve: s.create},
		{Pattern: "GET /enrol/joined", Needs: needs, Query: map[string][]string{"since": nil}, Serve: s.joinedPart},
		{Pattern: "GET " + codesPath, Needs: needs, Serve: s.codes},
		{Pattern: "POST " + codesPath + "/{id}/revoke", Needs: needs, Serve: s.revoke},
	}
}

// sheet is the form, with what was entered and what is wrong with it.
type sheet struct {
	Policies []policy.Policy
	More     bool          // there are more policies than the choice offers
	Policy   policy.Policy // the chosen one; without a choice, the first that codes are for; else the first
	Values   url.Values
	Wrong    map[string]string
	Problem  string
	// Own: there are policies for devices with our own agent.
	Own bool
	App provisioning.AppState
}

// maxPolicies is how many policies the choice offers, beside the one of the address.
const maxPolicies = 1000

func (s *Section) sheet(v *frame.Visit, values url.Values) (sheet, error) {
	all, total, err := s.Policies.Policies(v.Context(), policy.Query{CompanyID: v.Company.ID, IDs: v.Principal.Policies,
		Order: policy.ByName, Limit: maxPolicies})
	id := values.Get("policy")
	isChosen := func(p policy.Policy) bool { return p.ID == id }
	if err == nil && id != "" && v.Principal.MaySee(id) && !slices.ContainsFunc(all, isChosen) { // there are more
		var chosen []policy.Policy
		chosen, _, err = s.Policies.Policies(v.Context(), policy.Query{CompanyID: v.Company.ID, IDs: []string{id}, Limit: 1})
		all = append(all, chosen...)
	}
	f := sheet{Policies: all, More: total > maxPolicies, Values: values, Wrong: map[string]string{}, App: s.App()}
	for i, p := range all {
		f.Own = f.Own || p.Type == policy.Agent
		if i == 0 || isChosen(p) || id == "" && f.Policy.VROnly && !p.VROnly {
			f.Policy = p
		}
	}
	if err == nil && f.Policy.ID != "" && values.Get("personalUsage") == "" {
		var use provisioning.PersonalUsage
		use, err = s.usual(v, f.Policy)
		values.Set("personalUsage", string(use))
	}
	return f, err
}

// sampled is how many devices of a policy tell what the next one is for.
const sampled = 100

// usual is the use that the form begins with: that of the policy's devices. A policy whose
// devices all have a work profile, or are people's own, gets another work profile.
func (s *Section) usual(v *frame.Visit, p policy.Policy) (provisioning.PersonalUsage, error) {
	found, _, err := s.Assets.Assets(v.Context(), asset.Query{
		Filter: asset.Filter{CompanyID: v.Company.ID, Policies: v.Principal.Policies, PolicyID: p.ID, Enrolled: true},
		Order:  asset.BySyncedAt, Descending: true, Page: operation.PageRequest{Size: sampled},
	})
	if err != nil || len(found) == 0 {
		return provisioning.Disallowed, err
	}
	for _, a := range found {
		if a.Device != nil && a.Device.Ownership != asset.PersonallyOwned && a.Device.Mode != asset.WorkProfile {
			return provisioning.Disallowed, nil
		}
	}
	return provisioning.Allowed, nil
}

// ask shows the form; ?policy=<id> chooses.
func (s *Section) ask(v *frame.Visit) error {
	f, err := s.sheet(v, v.Query())
	return v.ShowUnless(err, "Enroll", frame.EnrollPath, formPage(v, f))
}

// create makes a code and shows it, once: it may hold the Wi-Fi password.
func (s *Section) create(v *frame.Visit) error {
	if answered, err := v.SentBefore(s.Steps, account.EnrollForm, codesPath,
		"look for the code in the list. Its picture is not shown again."); answered || err != nil {
		return err
	}
	made, err := v.Run("create_enrollment_code", arguments(v.Form), "")
	if err != nil {
		return s.again(v, v.Form, err)
	}
	result := made.(provisioning.Result)
	c := code{Result: result, Since: v.Now, PolicyID: v.Form.Get("policy"), App: s.App()}
	of, _, err := s.Policies.Policies(v.Context(), policy.Query{CompanyID: v.Company.ID, IDs: []string{c.PolicyID},
		Order: policy.ByName, Limit: 1})
	if err != nil {
		return err
	}
	c.Own = len(of) == 1 && of[0].Type == policy.Agent
	return v.Show("Enroll", frame.EnrollPath, codePage(v, c))
}

func arguments(form url.Values) map[string]any {
	args := map[string]any{"policyId": form.Get("policy"), "personalUsage": form.Get("personalUsage")}
	if n, err := strconv.Atoi(form.Get("maxDevices")); err == nil {
		args["maxDevices"] = n
	} else if form.Get("maxDevices") != "" {
		args["maxDevices"] = form.Get("maxDevices")
	}
	if tags := frame.Parted(form.Get("tags")); len(tags) > 0 {
		args["tags"] = tags
	}
	if form.Get("wifiHidden") != "" {
		args["wifiHidden"] = true
	}
	for _, name := range []string{"wifiSsid", "wifiPassword", "wifiSecurity"} {
		if value := form.Get(name); value != "" {
			args[name] = value
		}
	}
	return args
}

// again shows the form with what is wrong; the password must be typed again.
func (s *Section) again(v *frame.Visit, form url.Values, cause error) error {
	f, err := s.sheet(v, form)
	if err != nil {
		return err
	}
	f.Values.Del("wifiPassword")
	f.Wrong, f.Problem = frame.Fields(cause), v.Failed(cause).Text
	if len(f.Wrong) > 0 {
		f.Problem = ""
	}
	words := strings.NewReplacer("wifiSsid", "a network name", "wifiPassword", "password")
	for field, text := range f.Wrong {
		f.Wrong[field] = words.Replace(text)
	}
	code := edge.Status(fault.From(cause).Code)
	if code == http.StatusInternalServerError {
		return cause
	}
	return v.ShowStatus(code, "Enroll", frame.EnrollPath, formPage(v, f))
}

// code is a code that was made.
type code struct {
	provisioning.Result
	PolicyID string
	Since    time.Time
	Own      bool // the policy is for devices with our own agent
	App      provisioning.AppState
}

func (c code) picture() string { return frame.Picture(c.Image.Data) }

func (c code) joinedPath() string {
	return "/enrol/joined?" + url.Values{"policy": {c.PolicyID}, "since": {strconv.FormatInt(c.Since.UnixMilli(), 10)}}.Encode()
}

// shown is how many of the devices that joined are listed.
const shown = 20

// joinedPart is the live list of what has joined under the policy since the
// code was made.
func (s *Section) joinedPart(v *frame.Visit) error {
	joined, total, err := s.Assets.Assets(v.Context(), asset.Query{
		Filter: asset.Filter{CompanyID: v.Company.ID, Policies: v.Principal.Policies, PolicyID: v.Query().Get("policy"),
			EnrolledSince: time.UnixMilli(v.Numbers["since"])},
		Order: asset.BySyncedAt, Descending: true, Page: operation.PageRequest{Size: shown},
	})
	if err != nil {
		return err
	}
	return v.Fragment(joinedList(v, v.Request().URL.RequestURI(), joined, total))
}

// usage is one of the ways to use a device.
type usage struct {
	Value       provisioning.PersonalUsage
	Title, Text string
}

func usages() []usage {
	return []usage{
		{provisioning.Disallowed, "Company device", "Fully managed: the company owns it, and it is for work alone."},
		{provisioning.Allowed, "Work profile", "Work apps and data in a profile of their own, beside a person's."},
		{provisioning.Userless, "Dedicated device", "A scanner, kiosk or display without a user account."},
		{provisioning.Unspecified, "As the policy says", "The device and the policy decide between them."},
	}
}

// title is the use of a code in words.
func title(use provisioning.PersonalUsage) string {
	return slice.First(usages(), func(u usage) bool { return u.Value == use }).Title
}

// steps are what to do with the code on a new or reset device.
func steps() []string {
	return []string{"Switch on a new or factory-reset device.", "Tap the welcome screen six times, anywhere.",
		"Join Wi-Fi if it asks, and hold the code before its camera.", "Wait: it sets itself up and appears here."}
}

// missing says why a code installs no app, and what to do; empty: it installs it.
func missing(app provisioning.AppState) string {
	switch app {
	case provisioning.AppMissing:
		return "This service has no Android app, so its codes install nothing. Set MUSTER_AGENT_APK on the server. Devices with the " +
			"agent in their system image enroll without it."
	case provisioning.AppUnreachable:
		return "Android does not trust this service’s certificate, so its codes install nothing. Set MUSTER_AGENT_APK_URL on the server " +
			"to an address where devices can download the app."
	default:
		return ""
	}
}
