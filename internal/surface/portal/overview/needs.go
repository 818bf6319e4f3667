package overview

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// need is one thing that waits, as a row of the list.
type need struct {
	attention.Item
	Mine   bool   // the person has the rights to decide it
	Now    bool   // and can decide it now
	Others string // who can decide it; empty: it is not asked, since the person can
}

// listed is how many rows the overview shows, and namedDeciders how many people a row names.
const (
	listed        = 8
	namedDeciders = 3
)

// needs are the rows, first those that the person can decide. The company's users are read
// only if there is one that they cannot, or that takes a passkey.
func (s *Section) needs(v *frame.Visit) ([]need, error) {
	items, err := v.Attention()
	if err != nil || len(items) == 0 {
		return nil, err
	}
	people, err := s.Approvers(v.Context(), v.Company.ID)
	if err != nil {
		return nil, err
	}
	reader := v.Reader()
	if i := slices.IndexFunc(people, func(p access.Approver) bool { return p.UserID == v.User.ID }); i >= 0 {
		reader = people[i]
	}
	controls := v.Company.Settings.Controls
	var rows []need
	for _, i := range items {
		n := need{Item: i, Mine: i.Concerns(reader, controls), Now: i.May(reader, controls, v.Now)}
		if !n.Now {
			n.Others = deciders(i, people, reader, controls, v)
		}
		rows = append(rows, n)
	}
	slices.SortStableFunc(rows, func(a, b need) int { return rank(a) - rank(b) })
	return rows, nil
}

func rank(n need) int {
	switch {
	case n.Now:
		return 0
	case n.Mine:
		return 1
	}
	return 2
}

// deciders names other people who can decide an item now.
func deciders(i attention.Item, people []access.Approver, reader access.Approver, c access.Controls, v *frame.Visit) string {
	var names []string
	more := 0
	for _, p := range people {
		switch {
		case p.UserID == reader.UserID || !i.May(p, c, v.Now):
		case len(names) < namedDeciders:
			names = append(names, frame.Plain(p.Name))
		default:
			more++
		}
	}
	switch {
	case len(names) == 0:
		return "No user can decide this now."
	case more > 0:
		return strings.Join(names, ", ") + " and " + frame.Count(more, "other", "others") + " can decide this."
	}
	return strings.Join(names, " or ") + " can decide this."
}

// why says why the person cannot decide now what their rights allow.
func (n need) why(age time.Duration) string {
	switch {
	case !n.Mine || n.Now:
		return ""
	case age == 0:
		return "To decide, you need a passkey."
	}
	return "To decide, you need a passkey, and an account, rights and a passkey that are old enough."
}

func (n need) button() string {
	switch {
	case n.Now && (n.Signed() || n.Kind == attention.Enrollment):
		return "Decide"
	case n.Mine:
		return "Look"
	}
	return "Open"
}

// showNeeds is the whole list as a page, or as the live part of the overview.
func (s *Section) showNeeds(v *frame.Visit, rows []need) error {
	return v.ShowLive("Needs you", frame.OverviewPath, needsPage(v, rows), needsPart(v, rows, v.Query().Get("all") == ""))
}

func first(rows []need, short bool) []need {
	if short {
		return rows[:min(len(rows), listed)]
	}
	return rows
}

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
