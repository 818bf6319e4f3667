// Package policies is the list of policies, the page of one with its settings,
// revisions, devices and document, and the review of proposals.
//
// Changes of a PLATFORM policy's settings become a proposal of the person's own,
// reviewed and applied on the proposal's page, like those of other callers. Policies
// that Muster's own agents carry out cannot be proposed about (contract 4.3):
// their changes are reviewed on a page of their own and saved.
package policies

import (
	"context"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Section serves policies and proposals.
type Section struct {
	Policies policy.Service
	Reviewer proposal.Reviewer
	Assets   asset.Store
	// Progress counts the devices with a policy, and those that have applied a version of it.
	Progress func(ctx context.Context, companyID, policyID string, version int) (applied, devices int, err error)
	// Push sends a policy to the platform again.
	Push func(ctx context.Context, companyID, policyID string) error
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	see, edit := account.ViewPolicies, account.ViewPolicies|account.EditPolicies
	return []frame.Route{
		{Pattern: "GET /policies", Needs: see, Serve: frame.On(s.read, s.list)},
		{Pattern: "POST /policies", Needs: create, Serve: s.create},
		{Pattern: "GET /policies/{id}", Needs: see, Serve: frame.On(s.open, s.settings)},
		{Pattern: "GET /policies/{id}/revisions", Needs: see, Query: map[string][]string{"from": nil, "to": nil},
			Serve: frame.On(s.open, s.revisions)},
		{Pattern: "GET /policies/{id}/devices", Needs: see | account.ViewDevices, Serve: frame.On(s.open, s.devices)},
		{Pattern: "GET /policies/{id}/json", Needs: see, Serve: frame.On(s.open, s.document)},
		{Pattern: "POST /policies/{id}/review", Needs: edit, Serve: s.review},
		{Pattern: "POST /policies/{id}/save", Needs: edit, Serve: s.save},
		{Pattern: "POST /policies/{id}/details", Needs: edit, Serve: frame.On(s.open, s.details)},
		{Pattern: "POST /policies/{id}/system-update", Needs: edit, Serve: frame.On(s.open, s.systemUpdate)},
		{Pattern: "POST /policies/{id}/copy", Needs: create, Serve: frame.On(s.open, s.copy)},
		{Pattern: "POST /policies/{id}/restore", Needs: edit, Serve: frame.On(s.open, s.restore)},
		{Pattern: "POST /policies/{id}/push", Needs: edit, Serve: frame.On(s.open, s.push)},
		{Pattern: "POST /policies/{id}/delete", Needs: edit, Serve: frame.On(s.open, s.delete)},
		{Pattern: "GET /proposals", Needs: edit, Query: map[string][]string{"waiting": {"1"}, "before": nil}, Serve: s.proposals},
		{Pattern: "GET /proposals/{id}", Needs: edit, Serve: frame.On(s.proposalDetails, s.proposal)},
		{Pattern: "GET /proposals/{id}/state", Needs: edit, Serve: frame.On(s.look, s.state)},
		{Pattern: "POST /proposals/{id}/apply", Needs: edit, Serve: s.apply},
		{Pattern: "POST /proposals/{id}/again", Needs: edit, Serve: s.again},
	}
}

// create are the rights to make a policy, which a person who is limited to others would not see.
const create = account.ViewPolicies | account.EditPolicies | account.AllPolicies

// mayEdit reports whether the person may change policies at all.
func mayEdit(v *frame.Visit) bool { return v.May(account.ViewPolicies | account.EditPolicies) }

func spec() frame.ListSpec {
	return frame.ListSpec{Path: frame.PoliciesPath,
		Sorts:   []string{string(policy.ByName), string(policy.ByUpdatedAt), string(policy.ByVersion), string(policy.ByDevices)},
		Default: string(policy.ByName) + ",asc"}
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

func (s *Section) read(v *frame.Visit) (t table, err error) {
	t = table{List: frame.ParseList(spec(), v.Query()), New: newForm{Type: string(policy.Platform)}}
	t.Rows, t.Total, err = frame.Paged(&t.List, func(page operation.PageRequest) ([]policy.Policy, int64, error) {
		return s.Policies.List(v.Context(), v.Principal, policy.Query{
			Order: policy.Order(t.Sort), Descending: t.Descending, Offset: page.Page * page.Size, Limit: page.Size})
	})
	return t, err
}

func (s *Section) list(v *frame.Visit, t table) error {
	return v.ShowLive("Policies", frame.PoliciesPath, listPage(v, t), rows(v, t))
}

// create saves a new, empty policy and opens it.
func (s *Section) create(v *frame.Visit) error {
	wanted := policy.New{Name: v.Form.Get("name"), Type: policy.Type(v.Form.Get("type"))}
	if wanted.Type == "VR" {
		wanted.Type, wanted.VROnly = policy.Agent, true
	}
	made, err := s.Policies.CreateBy(v.Context(), v.Principal, wanted)
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
