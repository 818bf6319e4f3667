"""propose_apply.py RUN POLICY SETTING VALUE: proposes a change of a policy, waits until a
person has approved it in the portal, and applies it. RUN names this run, so that it can be
started again. Exits with 1 if the change was declined or cannot be applied."""

import os
import sys
import time

from client import connect, said
from muster_api.api.policies import apply_policy_proposal, get_policy_proposal, update_policy_settings
from muster_api.models import (
    ApplyPolicyProposalRequest, ProposalApprovalView, ProposalApprovalViewState, ProposalChange, ProposalChangeSetting,
    ProposalView, ProposalViewStatus, UpdatePolicySettingsRequest,
)

if len(sys.argv) != 5:
    sys.exit(__doc__)
run, policy, setting, value = sys.argv[1:]
muster = connect()

change = ProposalChange(setting=ProposalChangeSetting(setting), value=value)
proposal = update_policy_settings.sync(
    policy, client=muster, body=UpdatePolicySettingsRequest(changes=[change]), idempotency_key=run + "-propose")
if not isinstance(proposal, ProposalView):
    sys.exit("cannot propose: " + said(proposal))
print(proposal.summary)

if isinstance(proposal.approval, ProposalApprovalView):
    print("A person approves or declines it at", proposal.approval.url, flush=True)
while (proposal.status == ProposalViewStatus.PENDING and isinstance(proposal.approval, ProposalApprovalView)
       and proposal.approval.state == ProposalApprovalViewState.WAITING):
    time.sleep(float(os.environ.get("PAUSE_SECONDS", "30")))
    now = get_policy_proposal.sync(proposal.proposal_id, client=muster)
    if not isinstance(now, ProposalView):
        sys.exit("cannot read the proposal: " + said(now))
    proposal = now
if proposal.status != ProposalViewStatus.PENDING:
    reason = proposal.approval.reason if isinstance(proposal.approval, ProposalApprovalView) else ""
    print("not applied:", proposal.status.value, reason or "")
    sys.exit(1)

# Without an approval in the portal, a person confirms a high impact: they type the policy's name.
applied = apply_policy_proposal.sync(
    proposal.proposal_id, client=muster, idempotency_key=run + "-apply",
    body=ApplyPolicyProposalRequest(confirmation=os.environ.get("CONFIRMATION")))
if not isinstance(applied, ProposalView):
    sys.exit("cannot apply: " + said(applied))
print(applied.status.value, applied.result.message if applied.result else "")
