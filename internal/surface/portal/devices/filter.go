package devices

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// The values of filters that are the portal's own.
const (
	placeDay  = "day"
	placeWeek = "week"
	placeNone = "none"

	enrolled = "ENROLLED" // every status of a managed device
)

// filterNames are the filters of the API, as an address of the list bears them too.
func filterNames() []string {
	return []string{"status", "policy", "tag", "seenBefore", "seenAfter", "policyBehind", "patchBefore", "batteryBelow", "compliant",
		"lost", "receivesMessages", "app", "appBelow", "archived"}
}

// ownFilters are those that the API does not have.
func ownFilters() []string { return []string{"q", "management", "place", "patch"} }

// older are the addresses of views that were saved before the list had the API's filters.
func older(values url.Values) url.Values {
	seen := map[string][2]string{"quiet-day": {"seenBefore", "24h"}, "quiet-week": {"seenBefore", "7d"}, "heard-hour": {"seenAfter", "1h"},
		"heard-day": {"seenAfter", "24h"}}
	if now, ok := seen[values.Get("seen")]; ok {
		values.Set(now[0], now[1])
		values.Del("seen")
	}
	if values.Get("status") == "LOST" {
		values.Del("status")
		values.Set("lost", "true")
	}
	return values
}

// apiFilters are those of the list that the API has, as it takes them.
func apiFilters(l frame.List, now time.Time) url.Values {
	values := url.Values{}
	for _, name := range filterNames() {
		if given := l.Values[name]; len(given) > 0 {
			values[name] = given
		}
	}
	if values.Get("status") == enrolled {
		values.Del("status")
	}
	return asset.Absolute(values, now)
}

// query is the list's state as a query within the person's own company, and the policies
// that they may see; false if nothing can match. The id or the path name of an asset, as
// words, finds that asset whatever else is asked for.
func (s *Section) query(v *frame.Visit, l frame.List) (asset.Query, bool, error) {
	q := asset.Query{Order: asset.Order(l.Sort), Descending: l.Descending, Page: operation.PageRequest{Page: l.Page, Size: l.Size}}
	if err := wrongFilter(l); err != nil {
		return q, false, err
	}
	args, err := asset.ReadFilter(apiFilters(l, v.Now), v.Now)
	if err != nil {
		return q, false, err
	}
	f, findable := args.Filter(v.Principal, s.Companions)
	if a, err := asset.Find(v.Context(), s.Assets, v.Principal, strings.TrimSpace(l.Get("q"))); err == nil {
		q.Filter = asset.Filter{CompanyID: f.CompanyID, Policies: f.Policies, ID: a.ID, Archived: a.Archived}
		return q, true, nil
	}
	f.Text, f.Enrolled, f.PatchMonth = l.Get("q"), l.Get("status") == enrolled, l.Get("patch")
	f.Management = asset.Management(l.Get("management"))
	switch l.Get("place") {
	case placeDay:
		f.LocatedSince = v.Now.Add(-24 * time.Hour)
	case placeWeek:
		f.LocatedSince = v.Now.Add(-7 * 24 * time.Hour)
	case placeNone:
		f.Unlocated = true
	}
	q.Filter = f
	return q, findable, nil
}

// wrongFilter fails with fault.InvalidArguments for a filter that there is not, and for a wrong
// value of the portal's own filters. Without them the list would find more devices than are meant.
func wrongFilter(l frame.List) error {
	if unknown := l.Unknown(); len(unknown) > 0 {
		return fault.Invalid("“" + frame.Plain(unknown[0]) + "” is not a filter of this list: without it, it would hold other devices")
	}
	for _, name := range ownFilters() {
		if len(l.Values[name]) > 1 {
			return fault.InvalidField(name, "stands twice")
		}
	}
	for name, choices := range map[string][][2]string{"management": managementWords(), "place": placeWords()} {
		if value := l.Get(name); value != "" && !slices.ContainsFunc(choices, func(c [2]string) bool { return c[0] == value }) {
			return fault.InvalidField(name, "is none of the choices")
		}
	}
	if utf8.RuneCountInString(l.Get("q")) > maxWords {
		return fault.InvalidField("q", fmt.Sprintf("must have at most %d characters", maxWords))
	}
	return nil
}

// maxViewQuery is how many bytes a saved view has at most: each page of the list has all views.
const maxViewQuery = 2000

// maxWords is how many characters are searched for at most, as in the API.
const maxWords = 200

// saveView keeps the list as it is under a name.
func (s *Section) saveView(v *frame.Visit) error {
	values, err := url.ParseQuery(v.Form.Get("query"))
	if err != nil {
		return fault.Invalid("the view's filter cannot be read", fault.Field{Field: "query", Message: "must be a query string"}).
			Because(err)
	}
	l := frame.ParseList(spec(), older(values)).At(0)
	if err := wrongFilter(l); err != nil {
		return v.Redirect(l.URL(), frame.Flash{Tone: frame.Bad, Text: "Not saved: correct the filter first."})
	}
	view := asset.SavedView{ID: resource.NewID(), CompanyID: v.Company.ID, UserID: v.User.ID, Name: strings.TrimSpace(v.Form.Get("name")),
		Shared: v.Form.Get("shared") != "", CreatedAt: v.Now, Query: l.QueryText()}
	if len(view.Query) > maxViewQuery {
		return v.Redirect(frame.DevicesPath, frame.Flash{Tone: frame.Bad, Text: "Not saved: the filter is too long. Remove a part of it."})
	}
	if !resource.IsLabel(view.Name, asset.MaxViewName) {
		return v.Redirect(l.URL(), frame.Flash{Tone: frame.Bad, Text: "Not saved: a view's name has 1 to 50 characters."})
	}
	return v.Finish(l.URL(), s.Views.SaveView(v.Context(), view), "Saved as “"+view.Name+"”.", fault.Refused)
}

// dropView removes a view of the person's own, or any shared one for who manages the company.
func (s *Section) dropView(v *frame.Visit) error {
	err := s.Views.DropView(v.Context(), v.Company.ID, v.User.ID, v.PathValue("id"), v.May(account.ManageCompany))
	return v.Finish(frame.DevicesPath, err, "The view is removed.")
}

// hit is one thing that the palette shows.
type hit struct{ ID, Icon, Text, More, Link string }

const hits = 6

// hits are the assets that words find, or the one whose id or path name they are.
func (s *Section) hits(v *frame.Visit, text string) ([]asset.Asset, error) {
	if a, err := asset.Find(v.Context(), s.Assets, v.Principal, text); err == nil {
		return []asset.Asset{a}, nil
	}
	return s.newest(v, asset.Filter{Text: text}, hits)
}

// newest are those of a filter's assets that the person may see, the last synchronized first, at most limit.
func (s *Section) newest(v *frame.Visit, f asset.Filter, limit int) ([]asset.Asset, error) {
	f.CompanyID, f.Policies = v.Company.ID, v.Principal.Policies
	found, _, err := s.Assets.Assets(v.Context(), asset.Query{Filter: f, Order: asset.BySyncedAt, Descending: true,
		Page: operation.PageRequest{Size: limit}, Uncounted: true})
	return found, err
}

// search answers the command palette.
func (s *Section) search(v *frame.Visit) error {
	text := strings.TrimSpace(v.Query().Get("q"))
	var all []hit
	if v.May(account.ViewDevices) && text != "" {
		found, err := s.hits(v, text)
		if err != nil {
			return err
		}
		for _, a := range found {
			_, more := statusOf(a.Status)
			if serial := a.Specifications["serialNumber"]; serial != "" {
				more = frame.Plain(serial) + " · " + more
			}
			all = append(all, hit{"found-" + a.ID, "smartphone", a.Identification, more, frame.DevicePath(a.ID)})
		}
	}
	if v.May(account.ViewPolicies) && text != "" {
		policies, _, err := s.policies(v, "")
		if err != nil {
			return err
		}
		for _, p := range policies {
			if len(all) < 2*hits && strings.Contains(policy.NameKey(p.Name), policy.NameKey(text)) {
				all = append(all, hit{"found-" + p.ID, "shield-check", p.Name, frame.Count(p.DeviceCount, "device", "devices"),
					frame.PolicyPath(p.ID)})
			}
		}
	}
	return v.Fragment(hitList(all))
}
