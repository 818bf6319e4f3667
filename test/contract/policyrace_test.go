package contract_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/poll"
)

// racer is a caller that makes both calls of the race, over REST or over MCP.
type racer struct {
	t    *testing.T
	rest servertest.Client
	mcp  *servertest.Assistant
}

// raced is how a call was answered.
type raced struct {
	status      int
	code        string
	approvalURL string
	retryable   bool
}

func (r racer) call(path, tool string, body, arguments args) (got raced) {
	if r.mcp == nil {
		answer := r.rest.Post(path, body)
		var m struct {
			Code, ApprovalURL string
			Retryable         bool
		}
		answer.JSON(r.t, &m)
		return raced{answer.Status, m.Code, m.ApprovalURL, m.Retryable}
	}
	result := r.mcp.Call(tool, arguments)
	if !result.IsError {
		return raced{status: 200}
	}
	failed := result.Failed(r.t)
	url := ""
	if strings.Contains(result.Content[0].Text, "approvalUrl") {
		url = "there"
	}
	return raced{failed.Status, failed.Code, url, strings.Contains(strings.ReplaceAll(result.Content[0].Text, " ", ""), `"retryable":true`)}
}

func (r racer) apply(proposalID string) raced {
	return r.call("/policy-proposals/"+proposalID+"/apply", "apply_policy_proposal", args{}, args{"proposalId": proposalID})
}

func (r racer) move(assetID string, to string) raced {
	return r.call("/assets/"+assetID+"/commands/change-policy", "change_device_policy", args{"policyId": to},
		args{"assetId": assetID, "policyId": to})
}

// A change of high impact and the move of a device to its policy, both under way at one
// time, do not both pass without a person, in either order, over REST and over MCP.
func TestApproval_ChangeAndMoveAtOneTime(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start(servertest.OnLocalhost(t))
		env.CLI(new(any), "policy", "set", tenant.Policy.PathName(), "--company", "acme", "--set", "FACTORY_RESET=BLOCK")
		env.CLI(new(any), "company", "set", "--company", "acme", "--apply-approval", "risky")
		devices := tenant.Devices(replica, servertest.FullyManaged(), 4)
		admin := tenant.Client(replica, access.All)
		for _, d := range devices {
			servertest.AwaitStatus(t, tenant, admin, d.AssetID, "ACTIVE")
		}
		for n, over := range []string{"REST", "MCP"} {
			r := racer{t: t, rest: tenant.Client(replica, access.All)}
			if over == "MCP" {
				assistant := servertest.WithKey(t, replica.PublicURL(), r.rest.Key)
				r.mcp = &assistant
			}
			copied := func(name string) string { return copyOf(t, admin, tenant.Policy, name+" "+over) }
			t.Run(over+", the change first", func(t *testing.T) {
				to, device := copied("First"), devices[2*n].AssetID
				made := loosens(t, r.rest, to)
				env.Fault(emulator.Fault{Method: "policies.patch", Match: path.Base(to), DelayMS: 5000}) // no other policy's
				first := make(chan raced)
				go func() { first <- r.apply(made) }()
				awaitProposal(t, r.rest, made, "EXECUTING")
				if got := r.move(device, to); got.status != 503 || got.code != "unavailable" || !got.retryable {
					t.Errorf("the move: %+v", got)
				}
				if got := <-first; got.status != 200 {
					t.Errorf("the change: %+v", got)
				}
				if got := r.move(device, to); got.status != 403 || got.approvalURL == "" {
					t.Errorf("the move after it: %+v", got)
				}
			})
			t.Run(over+", the move first", func(t *testing.T) {
				to, device := copied("Second"), devices[2*n+1].AssetID
				made := loosens(t, r.rest, to)
				env.Fault(emulator.Fault{Method: "devices.patch", DelayMS: 5000})
				first := make(chan raced)
				go func() { first <- r.move(device, to) }()
				poll.Until(t, "the command is recorded", func() error {
					if body := string(admin.Get("/assets/"+device+"/commands").Want(t, 200).Body); !strings.Contains(body,
						"CHANGE_POLICY") {
						return fmt.Errorf("the history is %.200s", body)
					}
					return nil
				})
				if got := r.apply(made); got.status != 422 || got.code != "confirmation_required" || got.approvalURL == "" {
					t.Errorf("the change: %+v", got)
				}
				var shown struct {
					Impact   string
					Approval struct{ State string }
				}
				r.rest.Get("/policy-proposals/"+made).Want(t, 200).JSON(t, &shown)
				if shown.Impact != "HIGH" || shown.Approval.State != "WAITING" {
					t.Errorf("the proposal: %+v", shown)
				}
				if got := <-first; got.status != 200 {
					t.Errorf("the move: %+v", got)
				}
			})
		}
	})
}

// copyOf is a copy of a policy, which no device has, made by a key.
func copyOf(t *testing.T, by servertest.Client, from policy.Policy, name string) string {
	t.Helper()
	made := by.Post("/policies", args{"fromPolicyId": from.PathName(), "displayName": name}).Want(t, 201).Members(t)["proposalId"].(string)
	var applied struct{ Result struct{ PolicyID string } }
	by.Post("/policy-proposals/"+made+"/apply", args{}).Want(t, 200).JSON(t, &applied)
	return applied.Result.PolicyID
}

func loosens(t *testing.T, by servertest.Client, policyID string) string {
	t.Helper()
	changes := "/policies/" + path.Base(policyID) + "/changes"
	return by.Post(changes, args{"changes": change("FACTORY_RESET", "ALLOW")}).Want(t, 201).Members(t)["proposalId"].(string)
}

func awaitProposal(t *testing.T, by servertest.Client, id, status string) {
	t.Helper()
	poll.Until(t, "the proposal is "+status, func() error {
		if got := by.Get("/policy-proposals/"+id).Want(t, 200).Members(t)["status"]; got != status {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}
