// propose-apply.ts RUN POLICY SETTING VALUE: proposes a change of a policy, waits until
// a person has approved it in the portal, and applies it. RUN names this run, so that it
// can be started again. Exits with 1 if the change was declined or cannot be applied.
import { muster, said } from "./client.ts";
import type { components } from "./muster-api.ts";

type Change = components["schemas"]["ProposalChange"];
const [run, policyId, setting, value] = process.argv.slice(2);
if (!run || !policyId || !setting || !value) throw new Error("usage: propose-apply.ts RUN POLICY SETTING VALUE");
const pause = Number(process.env["PAUSE_SECONDS"] ?? 30);

const made = await muster.POST("/policies/{policyId}/changes", {
  params: { path: { policyId }, header: { "Idempotency-Key": run + "-propose" } },
  body: { changes: [{ setting: setting as Change["setting"], value }] },
});
if (!made.data) throw new Error("cannot propose: " + said(made.error));
let proposal = made.data;
console.log(proposal.summary);

if (proposal.approval) console.log("A person approves or declines it at", proposal.approval.url);
while (proposal.status === "PENDING" && proposal.approval?.state === "WAITING") {
  await new Promise((done) => setTimeout(done, pause * 1000));
  const now = await muster.GET("/policy-proposals/{proposalId}", { params: { path: { proposalId: proposal.proposalId } } });
  if (!now.data) throw new Error("cannot read the proposal: " + said(now.error));
  proposal = now.data;
}
if (proposal.status !== "PENDING") {
  console.log(`not applied: ${proposal.status} ${proposal.approval?.reason ?? ""}`);
  process.exit(1);
}

// Without an approval in the portal, a person confirms a high impact: they type the policy's name.
const confirmation = process.env["CONFIRMATION"] ?? null;
const applied = await muster.POST("/policy-proposals/{proposalId}/apply", {
  params: { path: { proposalId: proposal.proposalId }, header: { "Idempotency-Key": run + "-apply" } },
  body: { confirmation },
});
if (!applied.data) throw new Error("cannot apply: " + said(applied.error));
console.log(applied.data.status, applied.data.result?.message ?? "");
