package overview

import (
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

const dismissPath = "/overview/notice/dismiss"

// news is what an upgrade brought, for a company that is older. nil: nothing to say.
type news struct {
	Controls []control
	// Endless are the names of keys that work and never expire.
	Endless []string
	More    int // such keys that are not named
}

// control is a control with its value.
type control struct {
	Name, Value, Text string
	Tone              frame.Tone
}

// maxEndless is how many keys the notice names.
const maxEndless = 10

// news returns what to say to an administrator of a company that was upgraded.
func (s *Section) news(v *frame.Visit) *news {
	if !v.Company.UpgradeNotice || !v.May(account.ManageCompany) {
		return nil
	}
	n := &news{Controls: controlsOf(v.Company.Settings.Controls)}
	keys, err := s.Keys.Keys(v.Context(), v.Company.ID)
	if err != nil {
		v.Note("keys of the upgrade's notice", err)
	}
	for _, k := range keys {
		switch {
		case !k.Usable(v.Now) || !k.ExpiresAt.IsZero():
		case len(n.Endless) < maxEndless:
			n.Endless = append(n.Endless, frame.Plain(k.Name))
		default:
			n.More++
		}
	}
	return n
}

// controlsOf are the controls that the upgrade brought, as they are now.
func controlsOf(c access.Controls) []control {
	limit := control{"Limit of destructive commands", "Off", "All callers together can wipe, release and unlock any number of devices.",
		frame.Warn}
	if l := c.DestructiveLimit; !l.Off() {
		limit.Value, limit.Tone = "On", frame.OK
		limit.Text = "All callers together can wipe, release and unlock at most " + frame.Count(l.Devices, "device", "devices") + " in " +
			strconv.Itoa(int(l.Window.Minutes())) + " minutes. People with a passkey have five more."
	}
	approval := control{"Approval of policy changes", "Off", "API keys and AI clients apply their own changes of policies.", frame.Idle}
	if c.ApplyApproval != "" && c.ApplyApproval != access.ApproveNone {
		approval.Value, approval.Tone, approval.Text = "On", frame.OK, "A person approves changes of policies by API keys and AI clients."
	}
	authorization := control{"Authorization of destructive commands", "Off",
		"API keys and AI clients that may send destructive commands do so without a person.", frame.Idle}
	if c.DestructiveApproval {
		authorization.Value, authorization.Tone, authorization.Text = "On", frame.OK,
			"A person authorizes each destructive command of an API key or AI client."
	}
	return []control{limit, approval, authorization}
}

// endless names the keys.
func (n news) endless() string {
	text := strings.Join(n.Endless, ", ")
	if n.More > 0 {
		text += " and " + frame.Count(n.More, "other", "others")
	}
	return text
}

func (s *Section) dismiss(v *frame.Visit) error {
	_, err := s.Companies.UpdateCompany(v.Context(), v.Company.ID, func(c *company.Company) error {
		c.UpgradeNotice = false
		return nil
	})
	if err != nil {
		return err
	}
	return v.Redirect(frame.OverviewPath)
}
