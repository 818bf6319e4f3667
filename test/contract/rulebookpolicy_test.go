package contract_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/rulebook"
	"github.com/musterhq/muster/test/poll"
)

// rulebookSettings are a setting of each kind: of no risk, of high impact, and one whose
// value BLOCK can cut devices off.
func rulebookSettings() []string { return []string{"CAMERA", "FACTORY_RESET", "CONFIGURE_WIFI"} }

// makePolicies gives the company a second policy, which a device always has, as one has
// the first, and a spare one, which no device ever has.
func (b *book) makePolicies(agents policy.Policy) {
	office := &servertest.Tenant{Env: b.tenant.Env, Company: b.tenant.Company,
		Policy: b.tenant.Env.Policy(b.tenant.Company, "Office", policy.Platform)}
	spare := b.tenant.Env.Policy(b.tenant.Company, "Spare", policy.Platform)
	for _, keeps := range []*servertest.Tenant{b.tenant, office} {
		d := keeps.Devices(b.replica, servertest.FullyManaged(), 1)[0]
		servertest.AwaitStatus(b.t, b.tenant, b.admin, d.AssetID, "ACTIVE")
	}
	b.names = map[string]string{b.tenant.Policy.ID: b.tenant.Policy.Name, office.Policy.ID: "Office", spare.ID: "Spare"}
	b.policies = map[string]rulebook.Policy{b.tenant.Policy.ID: {Used: true}, office.Policy.ID: {Used: true}, spare.ID: {},
		agents.ID: {Agent: true}}
	b.moves = []string{b.tenant.Policy.ID, office.Policy.ID, b.tenant.Policy.ID, office.Policy.ID, agents.ID, "nothing"}
	b.moved = slices.DeleteFunc(slices.Clone(b.targets), func(id string) bool { return !b.devices[id].Enrolled || b.devices[id].Agent })
	b.changed = []string{b.tenant.Policy.ID, office.Policy.ID, spare.ID, agents.ID, "nothing"}
}

// now gives the world the policies as they are, and the devices those that they have.
func (b *book) now(w *rulebook.World) {
	w.Devices, w.Policies = maps.Clone(b.devices), maps.Clone(b.policies)
	for id, d := range w.Devices {
		var read struct{ ManagedDevice *struct{ PolicyID string } }
		b.admin.Get("/assets/"+id).Want(b.t, 200).JSON(b.t, &read)
		if read.ManagedDevice != nil {
			d.Policy = read.ManagedDevice.PolicyID[strings.LastIndex(read.ManagedDevice.PolicyID, "/")+1:]
			w.Devices[id] = d
		}
	}
	for id, p := range w.Policies {
		var read struct{ Settings []struct{ ID, Value string } }
		b.admin.Get("/policies/"+id+"/settings").Want(b.t, 200).JSON(b.t, &read)
		p.Values = map[string]string{}
		for _, s := range read.Settings {
			if slices.Contains(rulebookSettings(), s.ID) {
				p.Values[s.ID] = s.Value
			}
		}
		if p.First == nil { // before the first play
			p.First = p.Values
			b.policies[id] = rulebook.Policy{Agent: p.Agent, Used: p.Used, First: p.Values}
		}
		w.Policies[id] = p
	}
	w.Names = map[string]bool{"Office": true}
}

// draw is a random call.
func (b *book) draw(r *rapid.T, w *rulebook.World, tools []string) rulebook.Call {
	c := rulebook.Call{Tool: rapid.SampledFrom(tools).Draw(r, "tool"), Reason: rapid.Bool().Draw(r, "gives a reason"),
		Malformed: rarely(r, 8, "malformed")}
	if rarely(r, 5, "another kind") {
		c.Tool = rapid.SampledFrom(otherTools()).Draw(r, "tool")
	}
	if c.Tool == "apply_policy_proposal" && len(w.Proposals) == 0 && !rarely(r, 3, "another's") {
		c.Tool = "update_policy_settings"
	}
	switch c.Tool {
	case "update_policy_settings":
		c.Policy = rapid.SampledFrom(b.changed).Draw(r, "policy")
		c.Setting = rapid.SampledFrom(rulebookSettings()).Draw(r, "setting")
		c.Value = map[bool]string{false: "ALLOW", true: "BLOCK"}[rapid.Bool().Draw(r, "blocks")]
	case "create_policy":
		c.Policy = rapid.SampledFrom(b.changed).Draw(r, "policy")
		c.Name = rapid.SampledFrom([]string{fmt.Sprint("Copy ", b.plays), fmt.Sprint("Another ", b.plays), "Office"}).Draw(r, "name")
	case "rollback_policy":
		c.Policy, c.Revision = rapid.SampledFrom(b.changed).Draw(r, "policy"), 1
		if rarely(r, 6, "no such revision") {
			c.Revision = 1 << 20
		}
	case "get_policy_settings", "list_policy_revisions", "create_provisioning_qr_code":
		c.Policy = rapid.SampledFrom(b.changed).Draw(r, "policy")
	case "apply_policy_proposal", "get_policy_proposal":
		c.Proposal = max(0, len(w.Proposals)-1-rapid.IntRange(0, 3).Draw(r, "proposals ago"))
		c.Confirmed = rapid.Bool().Draw(r, "typed")
	case "change_device_policy":
		c.Policy = rapid.SampledFrom(b.moves).Draw(r, "policy")
		c.Device = rapid.SampledFrom(b.moved).Draw(r, "device")
		if rarely(r, 4, "another device") {
			c.Device = rapid.SampledFrom(b.targets).Draw(r, "device")
		}
	default:
		c.Device = rapid.SampledFrom(b.targets).Draw(r, "device")
	}
	return c
}

// otherTools are the operations that are no command, change no policy, and apply nothing.
func otherTools() []string {
	return []string{"list_assets", "count_assets", "get_asset", "list_device_commands", "list_policies", "get_policy_settings",
		"list_policy_revisions",
		"get_policy_proposal", "create_provisioning_qr_code"}
}

// arguments are those of a call. A proposal that there is not is one of another caller.
func (b *book) arguments(w *rulebook.World, c rulebook.Call, example map[string]any) map[string]any {
	all := maps.Clone(example)
	switch c.Tool {
	case "list_assets", "count_assets", "list_policies":
	case "update_policy_settings":
		all = args{"policyId": c.Policy, "changes": change(c.Setting, c.Value)}
	case "create_policy":
		all = args{"fromPolicyId": c.Policy, "displayName": c.Name}
	case "rollback_policy":
		all = args{"policyId": c.Policy, "revision": c.Revision}
	case "apply_policy_proposal", "get_policy_proposal":
		all = args{"proposalId": b.foreign}
		if c.Proposal < len(w.Proposals) {
			all["proposalId"] = b.proposals[c.Proposal]
			if c.Confirmed && c.Tool == "apply_policy_proposal" {
				all["confirmation"] = b.names[w.Proposals[c.Proposal].Policy]
			}
		}
	case "get_policy_settings", "list_policy_revisions", "create_provisioning_qr_code":
		all["policyId"] = c.Policy
	case "change_device_policy":
		all["policyId"] = c.Policy
		fallthrough
	default:
		all["assetId"] = c.Device
	}
	if c.Malformed {
		all["nonsense"] = 1
	}
	return all
}

// review is the person's decision about a proposal; for one of high impact its name is typed.
func (b *book) review(r *rapid.T, address string, p *rulebook.Proposal) {
	u, err := url.Parse(address)
	if err != nil {
		b.t.Fatal(err)
	}
	what := "/approve"
	if p.Decision = rulebook.Authorized; rarely(r, 4, "declines") {
		p.Decision, what = rulebook.Declined, "/decline"
	}
	d := b.decider()
	form := d.Get(u.Path).Want(b.t, 200)
	if what == "/approve" && strings.Contains(form.Body, `name="confirmation"`) { // compared before it is signed
		form = d.Post(u.Path+what, "confirmation", b.names[p.Policy]).Want(b.t, 200)
	}
	_, form.Body, _ = strings.Cut(form.Body, `action="`+u.Path+what+`"`)
	d.Post(u.Path+what, "confirmation", b.names[p.Policy], "token", form.Field(b.t, "token"), "answer", d.key.Get(form.Options(b.t))).
		Want(b.t, 200)
}

// beginChange leaves a change of the policy Office with an outcome that is not known, until
// the function that it returns has the platform answer again.
func (b *book) beginChange(w *rulebook.World) (end func()) {
	b.set(rulebook.World{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true, RequireReason: "OFF",
		ApplyApproval: "OFF"})
	office := slices.DeleteFunc(slices.Collect(maps.Keys(b.names)), func(id string) bool { return b.names[id] != "Office" })[0]
	p := w.Policies[office]
	value := map[bool]string{true: "ALLOW", false: "BLOCK"}[p.Values["CAMERA"] == "BLOCK"]
	made := b.admin.Post("/policies/"+office+"/changes", args{"changes": change("CAMERA", value)}).Want(b.t, 201).
		Members(b.t)["proposalId"].(string)
	b.tenant.Fault(emulator.Fault{Method: "policies.patch", Match: office, DropConnection: true})
	b.tenant.Fault(emulator.Fault{Method: "policies.get", Match: office, Status: 503, Times: -1})
	b.admin.Post("/policy-proposals/"+made+"/apply", args{"confirmation": "Office"}).Want(b.t, 500)
	p.Doubtful = true
	w.Policies[office] = p
	return func() {
		b.tenant.Emulator.ClearFaults()
		b.set(rulebook.World{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true, RequireReason: "OFF",
			ApplyApproval: "RISKY"})
		b.tenant.Advance(time.Minute)
		question := args{"operation": "change_device_policy", "arguments": args{"assetId": b.moved[0], "policyId": office}}
		if w.Devices[b.moved[0]].Policy == office {
			question["arguments"].(args)["policyId"] = b.tenant.Policy.ID
		}
		poll.Until(b.t, "the change is reconciled", func() error {
			var explanation explained
			b.admin.Post("/explain", question).Want(b.t, 200).JSON(b.t, &explanation)
			if b.tenant.Advance(5 * time.Second); explanation.Answer.Status == 503 {
				return errors.New("a move is still refused")
			}
			return nil
		})
	}
}
