package devices

import (
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

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
		Shared: v.Form.Get("shared") != "", CreatedAt: v.Now}
	if _, query, ok := strings.Cut(l.URL(), "?"); ok {
		view.Query = query
	}
	if !resource.IsLabel(view.Name, asset.MaxViewName) {
		return v.Redirect(l.URL(), frame.Flash{Tone: frame.Bad, Text: "Not saved: a view's name has 1 to 50 characters."})
	}
	there, err := s.Views.SavedViews(v.Context(), v.Company.ID, v.User.ID)
	if err == nil && len(there) >= asset.MaxViews {
		return v.Redirect(l.URL(), frame.Flash{Tone: frame.Bad, Text: "Not saved: there are 500 views. Remove one first."})
	}
	if err == nil {
		err = s.Views.SaveView(v.Context(), view)
	}
	if err != nil {
		return err
	}
	return v.Redirect(l.URL(), frame.Done("Saved as “"+view.Name+"”."))
}

// dropView removes a view of the person's own.
func (s *Section) dropView(v *frame.Visit) error {
	return v.Finish(frame.DevicesPath, s.Views.DropView(v.Context(), v.Company.ID, v.User.ID, v.PathValue("id")), "The view is removed.")
}

// hit is one thing that the palette shows.
type hit struct{ ID, Icon, Text, More, Link string }

const hits = 6

// hits are the assets that words find, or the one whose id or path name they are.
func (s *Section) hits(v *frame.Visit, text string) ([]asset.Asset, error) {
	if a, err := asset.Find(v.Context(), s.Assets, v.Principal, text); err == nil {
		return []asset.Asset{a}, nil
	}
	found, _, err := s.Assets.Assets(v.Context(), asset.Query{
		Filter: asset.Filter{CompanyID: v.Company.ID, Policies: v.Principal.Policies, Text: text},
		Order:  asset.BySyncedAt, Descending: true,
		Page: operation.PageRequest{Size: hits}, Uncounted: true})
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
		policies, err := s.policies(v)
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
