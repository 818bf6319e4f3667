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

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Section serves policies and proposals.
type Section struct {
	Editor   policy.Editor
	Reviewer proposal.Reviewer
	Assets   asset.Store
	// Push sends a policy to the platform again.
	Push func(ctx context.Context, companyID, policyID string) error
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	see, edit := account.ViewPolicies, account.ViewPolicies|account.EditPolicies
	return []frame.Route{
		{Pattern: "GET /policies", Needs: see, Serve: s.list},
		{Pattern: "POST /policies", Needs: edit, Serve: s.create},
		{Pattern: "GET /policies/{id}", Needs: see, Serve: s.of(s.settings)},
		{Pattern: "GET /policies/{id}/revisions", Needs: see, Serve: s.of(s.revisions)},
		{Pattern: "GET /policies/{id}/devices", Needs: see | account.ViewDevices, Serve: s.of(s.devices)},
		{Pattern: "GET /policies/{id}/json", Needs: see, Serve: s.of(s.document)},
		{Pattern: "POST /policies/{id}/review", Needs: edit, Serve: s.review},
		{Pattern: "POST /policies/{id}/save", Needs: edit, Serve: s.save},
		{Pattern: "POST /policies/{id}/details", Needs: edit, Serve: s.of(s.details)},
		{Pattern: "POST /policies/{id}/copy", Needs: edit, Serve: s.copy},
		{Pattern: "POST /policies/{id}/restore", Needs: edit, Serve: s.of(s.restore)},
		{Pattern: "POST /policies/{id}/push", Needs: edit, Serve: s.of(s.push)},
		{Pattern: "POST /policies/{id}/delete", Needs: edit, Serve: s.of(s.delete)},
		{Pattern: "GET /proposals", Needs: edit, Serve: s.proposals},
		{Pattern: "GET /proposals/{id}", Needs: edit, Serve: s.proposal},
		{Pattern: "GET /proposals/{id}/state", Needs: edit, Serve: s.state},
		{Pattern: "POST /proposals/{id}/apply", Needs: edit, Serve: s.apply},
		{Pattern: "POST /proposals/{id}/again", Needs: edit, Serve: s.again},
	}
}

// mayEdit reports whether the person may change policies at all.
func mayEdit(v *frame.Visit) bool { return v.May(account.ViewPolicies | account.EditPolicies) }

// why says what is missing to edit policies, for a control that is disabled.
func why(v *frame.Visit) string {
	return "It takes the permission to " + frame.Describe(account.EditPolicies) + ": " + v.Granters() + " can grant it."
}
