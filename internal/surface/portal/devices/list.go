package devices

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// The filters of the list beside those of the public list.
const (
	quietDay  = "quiet-day"
	quietWeek = "quiet-week"
	heardHour = "heard-hour"
	heardDay  = "heard-day"

	placeDay  = "day"
	placeWeek = "week"
	placeNone = "none"

	enrolled = "ENROLLED" // every status of a managed device
	inLost   = "LOST"     // a managed device in lost mode, whatever its status
)

func spec() frame.ListSpec {
	return frame.ListSpec{
		Path:    frame.DevicesPath,
		Filters: []string{"q", "status", "policy", "tag", "management", "seen", "place"},
		Kept:    []string{"cols", "density"},
		Sorts:   []string{string(asset.BySyncedAt), string(asset.ByIdentification), string(asset.ByStatus), string(asset.ByCreatedAt)},
		Default: string(asset.BySyncedAt) + ",desc",
	}
}

// table is what the list shows.
type table struct {
	frame.List
	Rows     []asset.Asset
	Total    int64  // asset.Uncounted: too many to count
	Next     string // where a search goes on; empty: the pager counts pages
	Searched bool
	Policies []policy.Policy
	Views    []asset.SavedView
	Columns  []column
}

// seenWords are the choices of last contact.
func seenWords() [][2]string {
	return [][2]string{{heardHour, "Heard of this hour"}, {heardDay, "Heard of in 24 h"}, {quietDay, "Silent for 24 h"}, {quietWeek, "Silent for 7 days"}}
}

// placeWords are the choices of how old the last place is.
func placeWords() [][2]string {
	return [][2]string{{placeDay, "Located in 24 h"}, {placeWeek, "Located in 7 days"}, {placeNone, "No place known"}}
}

func statusWords() [][2]string {
	all := [][2]string{{enrolled, "Enrolled"}, {inLost, "In lost mode"}}
	for _, s := range []asset.Status{asset.Active, asset.Inactive, asset.Synchronizing, asset.Pending, asset.Deleted} {
		_, word := statusOf(s)
		all = append(all, [2]string{string(s), word})
	}
	return all
}

func managementWords() [][2]string {
	return [][2]string{{string(asset.Platform), management(asset.Platform)}, {string(asset.Agent), management(asset.Agent)}}
}

// wordOf is a choice's word; what is not a choice is shown as it is.
func wordOf(choices [][2]string, value string) string {
	for _, c := range choices {
		if c[0] == value {
			return c[1]
		}
	}
	return value
}

// query is the list's state as a search of the person's own company, and
// within the policies that they may see.
func query(v *frame.Visit, l frame.List) asset.Search {
	q := asset.Search{
		Filter: asset.Filter{CompanyID: v.Company.ID, Policies: v.Principal.Policies, Status: asset.Status(known(statusWords(), l.Get("status")))},
		Text:   l.Get("q"), Tag: l.Get("tag"), Management: asset.Management(known(managementWords(), l.Get("management"))),
		Order: asset.Order(l.Sort), Descending: l.Descending, Size: l.Size, After: v.Query().Get("after"),
	}
	switch q.Status {
	case enrolled:
		q.Status, q.Enrolled = "", true
	case inLost:
		q.Status, q.Lost = "", true
	}
	if id := l.Get("policy"); resource.IsID(id) {
		q.PolicyID = id
	}
	switch l.Get("seen") {
	case quietDay:
		q.QuietSince = v.Now.Add(-24 * time.Hour)
	case quietWeek:
		q.QuietSince = v.Now.Add(-7 * 24 * time.Hour)
	case heardHour:
		q.HeardSince = v.Now.Add(-time.Hour)
	case heardDay:
		q.HeardSince = v.Now.Add(-24 * time.Hour)
	}
	switch l.Get("place") {
	case placeDay:
		q.LocatedSince = v.Now.Add(-24 * time.Hour)
	case placeWeek:
		q.LocatedSince = v.Now.Add(-7 * 24 * time.Hour)
	case placeNone:
		q.Unlocated = true
	}
	return q
}

func known(choices [][2]string, value string) string {
	if slices.ContainsFunc(choices, func(c [2]string) bool { return c[0] == value }) {
		return value
	}
	return ""
}

// searches reports whether the public list's filters do not suffice.
func searches(q asset.Search) bool {
	return q.Text != "" || q.Tag != "" || q.Management != "" || !q.QuietSince.IsZero() || !q.HeardSince.IsZero() || !q.LocatedSince.IsZero() || q.Unlocated || q.Lost
}

// read fills a table: by pages while the kept counts know how many there are,
// else along the search.
func (s *Section) read(v *frame.Visit, l frame.List) (table, error) {
	t := table{List: l, Columns: chosen(l)}
	q := query(v, l)
	if t.Searched = searches(q); !t.Searched {
		var err error
		t.Rows, t.Total, err = s.Assets.Assets(v.Context(), asset.Query{Filter: q.Filter, Order: q.Order, Descending: q.Descending,
			Page: operation.PageRequest{Page: l.Page, Size: l.Size}})
		return t, err
	}
	found, err := s.Assets.SearchAssets(v.Context(), q)
	if fault.CodeOf(err) == fault.InvalidArguments { // an old cursor: from the start
		q.After = ""
		found, err = s.Assets.SearchAssets(v.Context(), q)
	}
	t.Rows, t.Total, t.Next = found.Assets, found.Total, found.Next
	return t, err
}

// list serves the list, whole or its live part.
func (s *Section) list(v *frame.Visit) error {
	t, err := s.read(v, frame.ParseList(spec(), v.Query()))
	if err != nil {
		return err
	}
	if v.May(account.ViewPolicies) {
		if t.Policies, err = s.policies(v); err != nil {
			return err
		}
	}
	if v.Partial() {
		return v.Fragment(rows(v, t))
	}
	if t.Views, err = s.Views.SavedViews(v.Context(), v.Company.ID, v.User.ID); err != nil {
		return err
	}
	return v.Show("Devices", frame.DevicesPath, listPage(v, t))
}

// nextURL is where a search goes on.
func (t table) nextURL() string { return t.List.And("after", t.Next) }

// chip is a filter that is on.
type chip struct{ Label, Off string }

func (t table) chips() []chip {
	var all []chip
	add := func(filter, label string) {
		if t.Get(filter) != "" {
			all = append(all, chip{label, t.With(filter, "").URL()})
		}
	}
	add("q", "“"+t.Get("q")+"”")
	add("status", "Status: "+wordOf(statusWords(), t.Get("status")))
	add("policy", "Policy: "+t.policyName(t.Get("policy")))
	add("tag", "Tag: "+t.Get("tag"))
	add("management", wordOf(managementWords(), t.Get("management")))
	add("seen", wordOf(seenWords(), t.Get("seen")))
	add("place", wordOf(placeWords(), t.Get("place")))
	return all
}

func (t table) policyName(id string) string {
	return cmp.Or(t.policy(id).Name, id)
}

// policy is one of the policies on offer; zero: it is not known.
func (t table) policy(id string) policy.Policy {
	for _, p := range t.Policies {
		if p.ID == id {
			return p
		}
	}
	return policy.Policy{}
}

// totalText says how many devices match.
func (t table) totalText() string {
	if t.Total == asset.Uncounted {
		return "many devices"
	}
	return frame.Count(t.Total, "device", "devices")
}

// curl is the list in the API: what that can filter and order by.
func (t table) curl() string {
	q := url.Values{}
	if s := asset.Status(known(statusWords(), t.Get("status"))); s != "" && s != enrolled && s != inLost {
		q.Set("status", string(s))
	}
	if p := t.policy(t.Get("policy")); p.ID != "" {
		q.Set("policy", p.PathName())
	}
	if by, usual, _ := strings.Cut(t.Spec.Default, ","); t.Sort != by || t.Descending != (usual == "desc") {
		q.Set("sort", t.SortText())
	}
	if len(q) == 0 {
		return "/assets"
	}
	return "/assets?" + q.Encode()
}

// maxLate is how many commands the page of those still open lists.
const maxLate = 200

// late lists the commands that were sent long enough ago to be wondered about,
// the newest first.
func (s *Section) late(v *frame.Visit) error {
	open, err := s.Open.UnfinishedList(v.Context(), v.Company.ID, v.Principal.Policies, v.Now.Add(-frame.LateFor), v.Now.Add(-frame.OverdueAfter), maxLate)
	if err != nil {
		return err
	}
	if v.Partial() {
		return v.Fragment(lateRows(v, open))
	}
	return v.Show("Open commands", frame.DevicesPath, latePage(v, open))
}
