package proposal

import (
	"fmt"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// View is the proposal object (contract 2.6).
type View struct {
	ProposalID           string               `json:"proposalId" doc:"Id for reading or applying the proposal."`
	Capability           Capability           `json:"capability" enum:"update_policy_settings|create_policy|rollback_policy" doc:"What the proposal does."`
	Title                string               `json:"title" doc:"Short title of the change." example:"Change settings of Warehouse"`
	Status               Status               `json:"status" enum:"PENDING|EXECUTING|SUCCEEDED|FAILED|UNCONFIRMED|EXPIRED" doc:"PENDING can be applied; EXECUTING: read again until it ends; UNCONFIRMED: read the policy's settings before proposing again; FAILED, EXPIRED: propose again."`
	Impact               Impact               `json:"impact" enum:"NORMAL|HIGH" doc:"HIGH needs the policy's name typed by the person who approves."`
	RequiresConfirmation bool                 `json:"requiresConfirmation" doc:"True for HIGH impact."`
	Summary              string               `json:"summary" doc:"One sentence: the change, and how many devices use the policy." example:"In the policy \"Warehouse\", which 60 devices use, changes Camera from ALLOW to BLOCK."`
	Target               Target               `json:"target" doc:"The policy that the proposal changes; for a copy its source, under the new name."`
	Fields               []Field              `json:"fields" doc:"The exact change list that a person must review."`
	ExpiresAt            *operation.Timestamp `json:"expiresAt" doc:"After it the proposal cannot be applied."`
	Approval             *ApprovalView        `json:"approval,omitempty" doc:"While a person must approve the change in the portal before it can be applied, and after it has ended if a person decided."`
	Result               *Result              `json:"result,omitempty" doc:"The policy as it now is; only when it was applied just now."`
}

// Target is the policy that a proposal is about.
type Target struct {
	Kind string `json:"kind" enum:"POLICY" doc:"POLICY."`
	ID   string `json:"id" doc:"Path name of the policy." example:"enterprises/acme/policies/5h9j3f7p1s6z4g8a2e0k7m9q3v"`
	Name string `json:"name" doc:"Its name; to be typed as confirmation of a HIGH impact." example:"Warehouse"`
}

// Result is the policy after applying (contract 2.6).
type Result struct {
	PolicyID    string `json:"policyId" doc:"Path name of the policy."`
	DisplayName string `json:"displayName" doc:"Its name." example:"Warehouse"`
	Version     int    `json:"version" doc:"Its version."`
	Message     string `json:"message" doc:"What was done, for people." example:"The policy \"Warehouse\" was changed and saved as version 2. Its devices receive it automatically."`
	PortalURL   string `json:"portalUrl" doc:"The policy in the portal."`
}

// ApprovalView is the state of the approval that a proposal needs.
type ApprovalView struct {
	Required bool                 `json:"required" doc:"True." example:"true"`
	State    ApprovalState        `json:"state" enum:"WAITING|APPROVED|DECLINED" doc:"WAITING: ask a user who may edit the policy to open url; APPROVED: apply it; DECLINED: it has ended FAILED."`
	URL      string               `json:"url" doc:"Where a person approves or declines it, with a passkey." example:"https://muster.example/approvals/prp_7q2m9x4c6v1b8n3z5k0w4t6r2y"`
	By       *string              `json:"by" doc:"Who decided; null until then." example:"Ada"`
	At       *operation.Timestamp `json:"at" doc:"When; null until then."`
	Reason   *string              `json:"reason,omitempty" doc:"Why it was declined, in that person's words; only where they gave a reason." example:"Not before the holidays."`
}

// viewWithApproval is View with the approval that the proposal needs, or the decision of one that has ended.
func (s *Service) viewWithApproval(p Proposal) View {
	v := p.View()
	if !p.NeedsApproval() || p.Status != Pending && p.Approval.State == "" {
		return v
	}
	v.Approval = &ApprovalView{Required: true, State: Waiting, URL: s.approvalURL(p)}
	if p.Approval.State != "" {
		v.Approval.State, v.Approval.By, v.Approval.At = p.Approval.State, &p.Approval.By, operation.TimestampOf(p.Approval.At)
	}
	if p.Approval.Reason != "" {
		v.Approval.Reason = &p.Approval.Reason
	}
	return v
}

// View returns the proposal as every surface shows it.
func (p Proposal) View() View {
	fields := p.Fields
	if fields == nil {
		fields = []Field{}
	}
	return View{
		ProposalID: p.ID, Capability: p.Capability, Title: p.Title, Status: p.Status, Impact: p.Impact,
		RequiresConfirmation: p.NeedsConfirmation(), Summary: p.Summary, Fields: fields,
		Target:    Target{Kind: "POLICY", ID: resource.Of(p.CompanySlug, resource.Policies, p.PolicyID), Name: p.TargetName},
		ExpiresAt: operation.TimestampOf(p.ExpiresAt),
	}
}

// applied is the view with the policy as it now is.
func (s *Service) applied(p Proposal) View {
	v := s.viewWithApproval(p)
	v.Result = &Result{
		PolicyID:    resource.Of(p.CompanySlug, resource.Policies, p.Next.PolicyID),
		DisplayName: p.Next.Name, Version: p.Version, Message: message(p),
		PortalURL: s.PublicURL + "/policies/" + p.Next.PolicyID,
	}
	return v
}

func message(p Proposal) string {
	switch p.Capability {
	case CreatePolicy:
		return fmt.Sprintf("The policy %q was created. No device uses it until devices are moved to it.", p.Next.Name)
	case RollBack:
		return fmt.Sprintf("The policy %q was returned to revision %d and saved as version %d. Its devices receive it automatically.",
			p.Next.Name, p.Request.Revision, p.Version)
	default:
		return fmt.Sprintf("The policy %q was changed and saved as version %d. Its devices receive it automatically.",
			p.Next.Name, p.Version)
	}
}
