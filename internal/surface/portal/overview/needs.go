package overview

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval/attention"
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
	people, err := s.Deciders.Approvers(v.Context(), v.Company.ID)
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

func needsAddress(short bool) string {
	if short {
		return frame.AttentionPath
	}
	return frame.AttentionPath + "?all=1"
}
