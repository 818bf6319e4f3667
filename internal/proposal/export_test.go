package proposal

import (
	"context"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
)

// ProposeChanges runs update_policy_settings without its admission.
func (s *Service) ProposeChanges(ctx context.Context, call operation.Call, ref string, changes []policy.Change) (Proposal, error) {
	args := ChangeArgs{Changes: asArgs(changes)}
	args.PolicyID = ref
	return propose(ctx, s, call, args, s.draftChanges)
}

// ProposeCopy runs create_policy without its admission.
func (s *Service) ProposeCopy(ctx context.Context, call operation.Call, ref, name string, changes []policy.Change) (Proposal, error) {
	return propose(ctx, s, call, CopyArgs{FromPolicyID: ref, DisplayName: name, Changes: asArgs(changes)}, s.draftCopy)
}

// ProposeRollback runs rollback_policy without its admission.
func (s *Service) ProposeRollback(ctx context.Context, call operation.Call, ref string, revision int) (Proposal, error) {
	args := RollbackArgs{Revision: revision}
	args.PolicyID = ref
	return propose(ctx, s, call, args, s.draftRollback)
}

// Keep is keep, which renews a lease.
var Keep = keep
