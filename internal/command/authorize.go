package command

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// ask is what a person would have to authorize of a command; nil for one of a person, and
// for one that needs no authorization whatever the company's settings become.
func (s *Service) ask(ctx context.Context, p access.Principal, c Command, d asset.Device, body any) (*approval.Ask, error) {
	if p.Kind != access.APIKey && p.Kind != access.Connection {
		return nil, nil
	}
	ask := &approval.Ask{Difference: approval.NoMove, Call: approval.Call{
		CompanyID: c.CompanyID, AssetID: c.AssetID, Epoch: c.Epoch, Command: string(c.Type), Note: c.Note,
		Caller: approval.Caller{Kind: p.Kind, ID: p.ID, Prefix: p.Prefix, Name: p.Name},
	}}
	if p.Kind == access.Connection {
		ask.Caller.UserID = p.UserID
	}
	switch change, moves := body.(ChangePolicyBody); {
	case moves && p.Settings.Controls.ApplyApproval.On():
		contrast, err := s.contrast(ctx, c.CompanyID, c.AssetID, d.PolicyID, change.Policy)
		if err != nil {
			return nil, err
		}
		ask.Difference, ask.Move, ask.OnTheWay = contrast.Difference, contrast.move, contrast.onTheWay
	case !c.Type.Destructive():
		return nil, nil
	}
	ask.Needed = approval.Needed(p.Kind, p.Settings.Controls, c.Type.Destructive(), ask.Difference)
	ask.Digest, ask.Verifier = s.digest(ask.Call, body), s.Verifier
	return ask, nil
}

// contrasted is what a move changes on a device, with the policies as they were compared.
type contrasted struct {
	approval.Contrast
	move     approval.Move
	onTheWay []approval.Policy
}

// contrast is what a device that has one policy meets with another, or with those to which
// open commands may bring it first.
func (s *Service) contrast(ctx context.Context, companyID, assetID, from string, to policy.Policy) (c contrasted, err error) {
	has, err := s.compared(ctx, companyID, from)
	if err != nil {
		return c, err
	}
	c.move = approval.Move{From: approval.Policy{ID: from, Version: has.Version}, To: approval.Policy{ID: to.ID, Version: to.Version}}
	moving, err := s.Store.OnTheWay(ctx, assetID, to.ID)
	if err != nil {
		return c, err
	}
	var others []policy.Policy
	for _, m := range moving {
		p, err := s.compared(ctx, companyID, m.ID)
		if err != nil {
			return c, err
		}
		others, c.onTheWay = append(others, p), append(c.onTheWay, approval.Policy{ID: m.ID, Version: p.Version})
	}
	c.Contrast = approval.Compare(has, to, others...)
	return c, nil
}

// compared is a policy to compare, or none if it is not there any more.
func (s *Service) compared(ctx context.Context, companyID, id string) (policy.Policy, error) {
	p, err := s.Inventory.Policy(ctx, companyID, id)
	if fault.CodeOf(err) == fault.NotFound {
		return policy.Policy{}, nil
	}
	return p, err
}

// digest is the keyed digest of all that an authorization is bound to. The arguments may
// hold a password: without the key nothing can be guessed from it.
func (s *Service) digest(c approval.Call, body any) string {
	if s.Digest == nil {
		return "" // the store refuses it
	}
	arguments := map[string]any{}
	switch b := body.(type) {
	case PasswordBody:
		arguments["newPassword"] = b.NewPassword
	case ChangePolicyBody:
		arguments["policyId"] = b.Policy.ID
	}
	text, _ := json.Marshal([]any{c.CompanyID, c.AssetID, c.Epoch, c.Command, c.Caller.Kind, c.Caller.ID, c.Move, arguments}) // texts and numbers: it cannot fail
	return hex.EncodeToString(s.Digest(text))
}

// refusal makes what the store refused fit for the caller.
func (s *Service) refusal(err error) error {
	if r, ok := errors.AsType[*approval.Refusal](err); ok {
		return r.Fault(s.PublicURL)
	}
	return notDispatched(err)
}
