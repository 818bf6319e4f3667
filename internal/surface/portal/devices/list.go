package devices

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

func spec() frame.ListSpec {
	return frame.ListSpec{
		Path:    frame.DevicesPath,
		Filters: append(filterNames(), ownFilters()...),
		Kept:    []string{"cols", "density"},
		Sorts: []string{string(asset.BySyncedAt), string(asset.ByIdentification), string(asset.ByStatus), string(asset.ByCreatedAt),
			string(asset.ByLastSeenAt)},
		Default: string(asset.BySyncedAt) + ",desc",
	}
}

// table is what the list shows.
type table struct {
	frame.List
	Rows     []asset.Asset
	Total    int64
	Policies []policy.Policy
	More     bool // there are more than these policies
	Views    []asset.SavedView
	Columns  []column
	Problem  string // with a filter of the address, for which no device is shown
}

// oldPatch is the age from which a security patch level is old.
const oldPatch = "90d"

// shortcuts are the filters that one click sets: a filter, its value, and the words.
func shortcuts() [][3]string {
	return [][3]string{{"policyBehind", "true", "Behind on policy"}, {"patchBefore", oldPatch, "Patch older than 90 days"},
		{"compliant", "false", "Not compliant"}, {"lost", "true", "In lost mode"}, {"status", string(asset.Inactive), "Silent"},
		{"seenBefore", "24h", "Silent for 24 h"}, {"batteryBelow", "20", "Battery below 20 %"},
		{"receivesMessages", "true", "Can receive a message"}}
}

// placeWords are the choices of how old the last place is.
func placeWords() [][2]string {
	return [][2]string{{placeDay, "Located in 24 h"}, {placeWeek, "Located in 7 days"}, {placeNone, "No place known"}}
}

func statusWords() [][2]string {
	all := [][2]string{{enrolled, "Enrolled"}}
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
	return cmp.Or(slice.First(choices, func(c [2]string) bool { return c[0] == value })[1], value)
}

// read fills a table, with the last page where there is no such page any more.
func (s *Section) read(v *frame.Visit, l frame.List) (table, error) {
	t := table{List: l, Columns: chosen(l)}
	q, findable, err := s.query(v, l)
	if err != nil || !findable {
		return t, err
	}
	t.Rows, t.Total, err = frame.Paged(&t.List, func(page operation.PageRequest) ([]asset.Asset, int64, error) {
		q.Page = page
		return s.Assets.Assets(v.Context(), q)
	})
	return t, err
}

// list serves the list, whole or its live part.
func (s *Section) list(v *frame.Visit) error {
	t, err := s.read(v, frame.ParseList(spec(), older(v.Query())))
	code := fault.CodeOf(err)
	if code == fault.InvalidArguments {
		t.Problem, err = filterProblem(err), nil
	}
	if err != nil {
		return err
	}
	if v.May(account.ViewPolicies) {
		if t.Policies, t.More, err = s.policies(v, ""); err != nil {
			return err
		}
	}
	if v.Partial() {
		return v.Fragment(rows(v, t))
	}
	if t.Views, err = s.Views.SavedViews(v.Context(), v.Company.ID, v.User.ID); err != nil {
		return err
	}
	return v.ShowStatus(frame.Either(t.Problem != "", edge.Status(code), http.StatusOK), "Devices", frame.DevicesPath, listPage(v, t))
}

// tabs are the list without filters, and the saved views.
func (t table) tabs() []frame.Tab {
	now := t.At(0).URL()
	tabs := []frame.Tab{{Path: frame.DevicesPath, Name: "All devices", Current: t.Filtered() == 0}}
	for _, view := range t.Views {
		values, _ := url.ParseQuery(view.Query) // what is malformed is left out
		saved := frame.ParseList(spec(), older(values)).URL()
		tabs = append(tabs, frame.Tab{Path: saved, Name: frame.Plain(view.Name), Current: now == saved && t.Filtered() > 0})
	}
	return tabs
}

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
	if t.Get("status") != string(asset.Inactive) {
		add("status", "Status: "+wordOf(statusWords(), t.Get("status")))
	}
	add("policy", "Policy: "+cmp.Or(t.wanted().Name, t.Get("policy")))
	for _, tag := range t.Values["tag"] {
		all = append(all, chip{"Tag: " + tag, t.Without("tag", tag).URL()})
	}
	add("management", wordOf(managementWords(), t.Get("management")))
	if t.Get("app") != "" {
		all = append(all, chip{"App: " + t.Get("app") + t.below(), t.With("app", "").With("appBelow", "").URL()})
	}
	add("patch", "Patch level: "+cmp.Or(t.Get("patch"), "not reported"))
	add("archived", "Archived")
	for _, other := range otherFilters() {
		if value := t.Get(other[0]); value != "" && !offered(other[0], value) {
			add(other[0], other[1]+" "+value)
		}
	}
	add("place", wordOf(placeWords(), t.Get("place")))
	return all
}

// otherFilters are filters with the words before their values.
func otherFilters() [][2]string {
	return [][2]string{{"seenBefore", "Silent since"}, {"seenAfter", "Heard of since"}, {"patchBefore", "Patch before"},
		{"batteryBelow", "Battery below"}, {"compliant", "Compliant:"}, {"policyBehind", "Behind on policy:"}, {"lost", "In lost mode:"},
		{"receivesMessages", "Can receive a message:"}}
}

// filterProblem says what is wrong with the filters of an address.
func filterProblem(err error) string {
	words := append(otherFilters(), [][2]string{{"appBelow", "The version code of an app"}, {"q", "The search"}, {"place", "The place"},
		{"management", "The kind"}}...)
	for field, wrong := range frame.Fields(err) {
		name, _, _ := strings.Cut(field, "[")
		return frame.Sentence(strings.TrimSuffix(wordOf(words, name), ":") + " " + wrong)
	}
	return frame.Sentence(fault.From(err).Detail)
}

// policy is one of the policies on offer; zero: it is not known.
func (t table) policy(id string) policy.Policy {
	return slice.First(t.Policies, func(p policy.Policy) bool { return p.ID == id })
}

// wanted is the policy of the filter, which has its id or its path name; zero: it is not on offer.
func (t table) wanted() policy.Policy {
	asked := t.Get("policy")
	return slice.First(t.Policies, func(p policy.Policy) bool { return asked == p.ID || asked == p.PathName() })
}

// below is the version below which an app is looked for, in words.
func (t table) below() string {
	if v := t.Get("appBelow"); v != "" {
		return " below version code " + v
	}
	return ""
}

// offered reports whether a filter's value is one that a button sets.
func offered(name, value string) bool {
	return slices.ContainsFunc(shortcuts(), func(c [3]string) bool { return c[0] == name && c[1] == value })
}

// totalText says how many devices match.
func (t table) totalText() string { return frame.Count(t.Total, "device", "devices") }

// curl is the list in the API.
func (t table) curl(v *frame.Visit) string {
	q := apiFilters(t.List, v.Now)
	if words := t.Get("q"); words != "" {
		q.Set("search", words)
	}
	if p := t.wanted(); p.ID != "" {
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
	open, err := s.Open.UnfinishedList(v.Context(), v.Company.ID, v.Principal.Policies, v.Now.Add(-frame.LateFor),
		v.Now.Add(-frame.OverdueAfter), maxLate)
	if err != nil {
		return err
	}
	return v.ShowLive("Open commands", frame.DevicesPath, latePage(v, open), lateRows(v, open))
}
