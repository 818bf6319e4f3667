package policies

import (
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

func spec() frame.ListSpec {
	return frame.ListSpec{Path: frame.PoliciesPath,
		Sorts: []string{string(policy.ByName), string(policy.ByUpdatedAt), string(policy.ByVersion)}, Default: string(policy.ByName) + ",asc"}
}

// table is the list of policies.
type table struct {
	frame.List
	Rows  []policy.Policy
	Total int64
	New   newForm
}

// newForm is the dialog for a new policy, with what is wrong in it.
type newForm struct {
	Name, Type string
	Wrong      map[string]string
	Open       bool
}

func (s *Section) read(v *frame.Visit) (table, error) {
	t := table{List: frame.ParseList(spec(), v.Query()), New: newForm{Type: string(policy.Platform)}}
	var err error
	t.Rows, t.Total, err = s.Editor.List(v.Context(), v.Principal, policy.Query{
		Order: policy.Order(t.Sort), Descending: t.Descending, Offset: t.Page * t.Size, Limit: t.Size})
	return t, err
}

func (s *Section) list(v *frame.Visit) error {
	t, err := s.read(v)
	if err != nil {
		return err
	}
	if v.Partial() {
		return v.Fragment(rows(v, t))
	}
	return v.Show("Policies", frame.PoliciesPath, listPage(v, t))
}

// create saves a new, empty policy and opens it.
func (s *Section) create(v *frame.Visit) error {
	wanted := policy.New{Name: v.Form.Get("name"), Type: policy.Type(v.Form.Get("type"))}
	if wanted.Type == "VR" {
		wanted.Type, wanted.VROnly = policy.Agent, true
	}
	made, err := s.Editor.Create(v.Context(), v.Principal, wanted)
	switch fault.CodeOf(err) {
	case "":
		return v.Redirect(frame.PolicyPath(made.ID), frame.Done("Created the policy "+made.Name+"."))
	case fault.InvalidArguments, fault.Refused:
		t, readErr := s.read(v)
		if readErr != nil {
			return readErr
		}
		t.New = newForm{Name: v.Form.Get("name"), Type: v.Form.Get("type"), Wrong: wrong(err, "displayName"), Open: true}
		return v.ShowStatus(http.StatusUnprocessableEntity, "Policies", frame.PoliciesPath, listPage(v, t))
	default:
		return err
	}
}

// wrong is what is wrong in a form, by field; what concerns no field is said at
// the one named.
func wrong(err error, at string) map[string]string {
	fields := frame.Fields(err)
	if len(fields) == 0 && err != nil {
		fields[at] = strings.TrimSpace(fault.From(err).Detail)
	}
	return fields
}
