package portal_test

import (
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/servertest"
)

var update = flag.Bool("update", false, "write testdata/sentences.txt again")

// day is what controls are kept in.
const day = 24 * time.Hour

// settingChange is a change of a company, made as the portal or the command line makes it.
type settingChange struct {
	name   string
	change func(c *company.Company)
}

// settingChanges moves each control in each direction, in this order.
func settingChanges() []settingChange {
	limit := func(devices, minutes int) func(c *company.Company) {
		return func(c *company.Company) {
			c.Settings.Controls.DestructiveLimit = access.DestructiveLimit{Devices: devices, Window: time.Duration(minutes) * time.Minute}
		}
	}
	approve := func(r access.ApprovalRule) func(c *company.Company) {
		return func(c *company.Company) { c.Settings.Controls.ApplyApproval = r }
	}
	reason := func(r access.ReasonRule) func(c *company.Company) {
		return func(c *company.Company) { c.Settings.Controls.RequireReason = r }
	}
	return []settingChange{
		{"approval OFF→RISKY", approve(access.ApproveRisky)}, {"approval RISKY→ALL", approve(access.ApproveAll)},
		{"approval ALL→RISKY", approve(access.ApproveRisky)}, {"approval RISKY→OFF", approve(access.ApproveNone)},
		{"approval OFF→ALL", approve(access.ApproveAll)}, {"approval ALL→OFF", approve(access.ApproveNone)},
		{"second person on", func(c *company.Company) { c.Settings.Controls.SecondPerson = true }},
		{"second person off", func(c *company.Company) { c.Settings.Controls.SecondPerson = false }},
		{"authorization on", func(c *company.Company) { c.Settings.Controls.DestructiveApproval = true }},
		{"authorization off", func(c *company.Company) { c.Settings.Controls.DestructiveApproval = false }},
		{"limit higher", limit(100, 60)}, {"limit lower", limit(5, 60)}, {"limit shorter", limit(5, 30)},
		{"limit off", func(c *company.Company) { c.Settings.Controls.DestructiveLimit = access.DestructiveLimit{} }},
		{"limit on", limit(1, 60)},
		{"age lower", func(c *company.Company) { c.Settings.Controls.ApproverAge = 2 * time.Hour }},
		{"age none", func(c *company.Company) { c.Settings.Controls.ApproverAge = 0 }},
		{"age higher", func(c *company.Company) { c.Settings.Controls.ApproverAge = 7 * day }},
		{"reason OFF→DESTRUCTIVE", reason(access.ReasonDestructive)}, {"reason DESTRUCTIVE→ALL", reason(access.ReasonAll)},
		{"reason ALL→DESTRUCTIVE", reason(access.ReasonDestructive)}, {"reason DESTRUCTIVE→OFF", reason(access.ReasonNone)},
		{"activity longer", func(c *company.Company) { c.Settings.KeepActivity = 800 * day }},
		{"activity shorter", func(c *company.Company) { c.Settings.KeepActivity = 90 * day }},
		{"commands shorter", func(c *company.Company) { c.KeepCommands = 60 * day }},
		{"places longer", func(c *company.Company) { c.KeepPlaces = 60 * day }},
		{"events longer", func(c *company.Company) { c.KeepEvents = 60 * day }},
		{"events shorter", func(c *company.Company) { c.KeepEvents = 7 * day }},
		{"lost mode", func(c *company.Company) {
			c.Lost = company.LostContact{Message: "Please call", PhoneNumber: "+34 900 100 100", Organization: "Acme"}
		}},
		{"inactive later", func(c *company.Company) { c.InactiveAfter = 60 * day }},
		{"device commands off", func(c *company.Company) { c.Settings.DeviceCommands, c.Settings.DestructiveCommands = false, false }},
		{"device commands on", func(c *company.Company) { c.Settings.DeviceCommands = true }},
		{"destructive commands on", func(c *company.Company) { c.Settings.DestructiveCommands = true }},
		{"destructive commands off", func(c *company.Company) { c.Settings.DestructiveCommands = false }},
		{"policy changes flip", func(c *company.Company) { c.Settings.PolicyChanges = !c.Settings.PolicyChanges }},
		{"policy changes flip back", func(c *company.Company) { c.Settings.PolicyChanges = !c.Settings.PolicyChanges }},
		{"provisioning flip", func(c *company.Company) { c.Settings.Provisioning = !c.Settings.Provisioning }},
		{"provisioning flip back", func(c *company.Company) { c.Settings.Provisioning = !c.Settings.Provisioning }},
		{"oauth flip", func(c *company.Company) { c.Settings.OAuthConnections = !c.Settings.OAuthConnections }},
		{"oauth flip back", func(c *company.Company) { c.Settings.OAuthConnections = !c.Settings.OAuthConnections }},
		{"name", func(c *company.Company) { c.Name = "Acme العربية" }},
		{"two at once", func(c *company.Company) {
			c.Settings.Controls.SecondPerson, c.Settings.Controls.ApplyApproval = true, access.ApproveAll
		}},
		{"stop", func(c *company.Company) {
			c.Settings.Stop = access.Stop{At: c.CreatedAt.Add(time.Hour), Reason: "a leak"}
		}},
		{"resume", func(c *company.Company) { c.Settings.Stop = access.Stop{} }},
	}
}

// anID is what a sentence never has.
var anID = regexp.MustCompile(`\b[0-9a-z]{26}\b`)

// Each change of a control, in each direction, has a sentence of its own, and the overview,
// the log and the command line have the same.
func TestSentences_OfEachControl(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "d1", "S1", "Phone", o.Policy) // the overview of a company without one is another page
	admin := o.person(t, account.Admin)
	by := access.WithActor(t.Context(), admin.User.Principal("acme", access.Settings{}).Actor(), "")
	var golden strings.Builder
	for _, step := range settingChanges() {
		o.Advance(time.Minute)
		if _, err := o.DB().UpdateCompany(by, o.Company.ID, company.Change(step.change)); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		golden.WriteString(step.name + ": " + o.newestSentence(t, admin, by) + "\n")
	}
	for _, c := range access.ControlNames() {
		o.Advance(time.Minute)
		if err := o.DB().RecordActivity(by, o.Company.ID, loosening(c)); err != nil {
			t.Fatal(err)
		}
		golden.WriteString("asked " + string(c) + ": " + o.newestSentence(t, admin, by) + "\n")
	}
	want, err := os.ReadFile("testdata/sentences.txt")
	if *update {
		err = os.WriteFile("testdata/sentences.txt", []byte(golden.String()), 0o600)
	} else if err == nil && golden.String() != string(want) {
		t.Errorf("testdata/sentences.txt differs: if this is intended, run with -update\n%s", golden.String())
	}
	if err != nil {
		t.Error(err)
	}
}

// A wipe that a person must authorize is named so on the device's page too, and each gate
// says what the settings mean.
func TestSentences_Authorization(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin := o.device(t, "d1", "S1", "Pixel 8", o.Policy), o.person(t, account.Admin)
	key, text := o.KeyRow(o.Company, access.All)
	if gates := plain(o.get(t, admin, "/access", 200)); !strings.Contains(gates, "and apply them. No person is asked.") {
		t.Error("the gate of policy changes does not say that no person approves")
	}
	o.CLI(new(any), "company", "set", "--company", "acme", "--destructive-approval", "on", "--apply-approval", "all")
	o.replica.As(text).Post("/assets/"+a.ID+"/commands/wipe", nil).Want(t, 403)
	want := key.Name + " " + key.Prefix + " asked a person to authorize a wipe of " + a.Identification
	for _, path := range []string{"/", "/activity", "/devices/" + a.ID + "/activity"} {
		if page := plain(o.get(t, admin, path, 200)); path != "/activity" && !strings.Contains(page, want) ||
			!strings.Contains(page, "asked a person to authorize a wipe of "+a.Identification) {
			t.Errorf("%s does not say %q", path, want)
		}
	}
	gates := plain(o.get(t, admin, "/access", 200))
	for _, text := range []string{"A person must approve each change first.", "A person must authorize each command first."} {
		if !strings.Contains(gates, text) {
			t.Errorf("the gates do not say %q", text)
		}
	}
}

func loosening(c access.ControlName) activity.Event {
	values := map[access.ControlName][2]string{access.ApplyApprovalControl: {"ALL", "OFF"},
		access.ApproverAgeControl:      {"24h0m0s", "1h0m0s"},
		access.DestructiveLimitControl: {"25/60m", "100/60m"}, access.StopControl: {"ALL", "OFF"},
		access.KeepActivityControl: {"9600h0m0s", "2160h0m0s"}}
	v, other := values[c]
	if !other {
		v = [2]string{"ON", "OFF"}
	}
	return activity.Event{Action: activity.LooseningAsked,
		Target:  activity.Target{Kind: activity.Company, ID: "0123456789abcdefghjkmnpqrs"},
		Changes: []activity.Change{{Field: string(c), Before: v[0], After: v[1]}}}
}

var (
	feedEntry = regexp.MustCompile(`(?s)<ol[^>]*>\s*<li[^>]*>(.*?)</li>`)
	logEntry  = regexp.MustCompile(`(?s)<summary class="cursor-pointer">(.*?)</summary>`)
)

// newestSentence is the newest entry's sentence, which is the same on each surface.
func (o *office) newestSentence(t *testing.T, p *servertest.Browser, ctx context.Context) string {
	t.Helper()
	entries, err := o.DB().Activity(ctx, activity.Filter{CompanyID: o.Company.ID}, activity.Cursor{}, 1)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	s := command.Sentence(entries[0])
	shown := s.String()
	if anID.MatchString(shown) || strings.Contains(shown, "changed settings") || strings.Contains(shown, "changed the setting") {
		t.Errorf("sentence %q", shown)
	}
	if s.Loosens {
		shown += " Loosens"
	}
	for path, entry := range map[string]*regexp.Regexp{"/": feedEntry, "/activity": logEntry} {
		found := entry.FindStringSubmatch(o.get(t, p, path, 200))
		if found == nil || !strings.Contains(
			plain(strings.NewReplacer("<bdi class=\"font-medium break-words\">", "", "</bdi>", "").Replace(found[1]))+" ", shown+" ") {
			t.Errorf("%s does not say %q: %q", path, shown, found)
		}
	}
	rows := strings.Split(o.Table("activity", "list", "--company", "acme", "--limit", "1"), "\n")
	if want := strings.Replace(shown, " Loosens", " (LOOSENS)", 1); !strings.Contains(rows[1], want+"  ") {
		t.Errorf("the command line does not say %q: %q", want, rows)
	}
	return shown
}
