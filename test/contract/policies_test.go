package contract_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/needs"
)

// args are the arguments of a tool.
type args = map[string]any

func change(setting, value string) []args { return []args{{"setting": setting, "value": value}} }

// policyFixture is what the cases of contract 7.3 stand on, for one door.
type policyFixture struct {
	*servertest.Tenant
	t       *testing.T
	r       *servertest.Replica
	caller  caller
	made    int
	agent   policy.Policy
	foreign policy.Policy // of another company
	loose   company.Company
	shut    company.Company
}

// key is a new key, with a whole budget.
func (p *policyFixture) key(permissions access.Permission) string {
	return p.Key(p.Company, permissions)
}

func (p *policyFixture) all() string { return p.key(access.All) }

// policy is a new policy that the platform holds.
func (p *policyFixture) policy() policy.Policy {
	p.t.Helper()
	p.made++
	made := p.Env.Policy(p.Company, fmt.Sprintf("%s %d", p.caller.name, p.made), policy.Platform)
	p.pushed(made.ID)
	return made
}

func (p *policyFixture) current(id string) policy.Policy {
	p.t.Helper()
	now, err := p.Admin().Policies.Current(p.t.Context(), p.Company.ID, id)
	if err != nil {
		p.t.Fatal(err)
	}
	return now
}

// pushed waits until the platform holds the policy as it is.
func (p *policyFixture) pushed(id string) {
	p.t.Helper()
	p.Eventually("the platform holds the policy", func() error {
		now := p.current(id)
		held, err := p.r.Platform().ReadCopy(p.t.Context(), p.Company, now)
		if err == nil && (!held.Same || now.Behind()) {
			err = fmt.Errorf("version %d of %d (%s), the same: %v", now.Push.Version, now.Version, now.Push.Error, held.Same)
		}
		return err
	})
}

func (p *policyFixture) save(id string, changes ...policy.Change) {
	p.t.Helper()
	if _, err := p.Admin().Policies.Save(p.t.Context(), p.Company.ID, id, p.current(id).Version,
		policy.Edit{Changes: changes}, policy.Author{Kind: "USER", ID: "u", Name: "Ada"}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *policyFixture) ok(key, tool string, a args) map[string]any {
	p.t.Helper()
	v := p.caller.call(p.t, p.r, key, tool, a)
	if v.code != "" || v.status >= 300 {
		p.t.Fatalf("%s ends %d %s: %s", tool, v.status, v.code, v.message)
	}
	return v.result
}

// propose proposes a change of a new policy and returns the proposal's id and
// the policy.
func (p *policyFixture) propose(key string) (string, policy.Policy) {
	p.t.Helper()
	of := p.policy()
	return p.ok(key, "update_policy_settings",
		args{"policyId": of.PathName(), "changes": change("CAMERA", "BLOCK")})["proposalId"].(string), of
}

func (p *policyFixture) status(key, id string) any {
	p.t.Helper()
	return p.ok(key, "get_policy_proposal", args{"proposalId": id})["status"]
}

// refusal is a row of contract 7.3: a call that ends in a code. then, if any,
// is what must be true afterwards.
type refusal struct {
	name   string
	status int
	code   string
	call   func(p *policyFixture) (key, tool string, a args, then func())
}

// Contract 7.3, case for case, on both doors: the same code and status, with
// retryable false for all but rate_limited.
func TestPolicies_Refusals(t *testing.T) {
	t.Parallel()
	needs.Zbar().Of(t)
	env := servertest.New(t)
	tenant, other := env.NewTenant("acme"), env.NewTenant("other")
	loose := env.Company("loose", servertest.Everything())
	shut := env.Company("shut", access.Settings{DeviceCommands: true, Provisioning: true, OAuthConnections: true})
	replica := env.Start()
	agent := env.Policy(tenant.Company, "Kiosk", policy.Agent)
	for _, d := range callers() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := &policyFixture{Tenant: tenant, t: t, r: replica, caller: d, agent: agent, foreign: other.Policy, loose: loose, shut: shut}
			for _, c := range slices.Concat(badArguments(), wrongCallers(), wrongTargets(), refusedProposals(), refusedApplies()) {
				t.Run(c.name, func(t *testing.T) { p.t = t; c.check(t, p) })
			}
		})
	}
}

func (c refusal) check(t *testing.T, p *policyFixture) {
	key, tool, a, then := c.call(p)
	v := p.caller.call(t, p.r, key, tool, a)
	if v.status != c.status || v.code != c.code || v.message == "" || v.retryable != (c.code == "rate_limited") {
		t.Errorf("%s %v ends %d %q, retryable %v (%s), want %d %q", tool, a, v.status, v.code, v.retryable, v.message, c.status, c.code)
	}
	if then != nil {
		then()
	}
}

func badArguments() []refusal {
	bad := func(name, tool string, a func(p *policyFixture) args) refusal {
		return refusal{name, 400, "invalid_arguments", func(p *policyFixture) (string, string, args, func()) {
			return p.all(), tool, a(p), nil
		}}
	}
	changes := func(name string, list any) refusal {
		return bad(name, "update_policy_settings", func(p *policyFixture) args { return args{"policyId": p.Policy.ID, "changes": list} })
	}
	copied := func(name string, a args) refusal {
		return bad(name, "create_policy", func(p *policyFixture) args {
			all := args{"fromPolicyId": p.Policy.ID, "displayName": "Copy"}
			maps.Copy(all, a)
			maps.DeleteFunc(all, func(_ string, v any) bool { return v == "absent" })
			return all
		})
	}
	return []refusal{
		changes("unknown setting", change("KAMERA", "BLOCK")),
		changes("setting in another case", change("camera", "BLOCK")),
		changes("value not allowed", change("CAMERA", "MAYBE")),
		changes("NOT_SET", change("CAMERA", "NOT_SET")),
		changes("CUSTOM", change("CAMERA", "CUSTOM")),
		changes("setting listed twice", append(change("CAMERA", "BLOCK"), change("CAMERA", "ALLOW")...)),
		changes("no value", []args{{"setting": "CAMERA"}}),
		changes("an unknown member", []args{{"setting": "CAMERA", "value": "BLOCK", "force": true}}),
		changes("changes of another kind", "CAMERA"),
		changes("null", nil),
		bad("no changes", "update_policy_settings", func(p *policyFixture) args { return args{"policyId": p.Policy.ID} }),
		copied("no source", args{"fromPolicyId": "absent"}),
		copied("no name", args{"displayName": "absent"}),
		copied("blank name", args{"displayName": "  "}),
		copied("51 characters", args{"displayName": strings.Repeat("ä", 51)}),
		copied("bad change of a copy", args{"changes": change("SMS", "CUSTOM")}),
		bad("no revision", "rollback_policy", func(p *policyFixture) args { return args{"policyId": p.Policy.ID} }),
		bad("revision 0", "rollback_policy", func(p *policyFixture) args { return args{"policyId": p.Policy.ID, "revision": 0} }),
		bad("limit 0", "list_policy_revisions", func(p *policyFixture) args { return args{"policyId": p.Policy.ID, "limit": 0} }),
		bad("limit 101", "list_policy_revisions", func(p *policyFixture) args { return args{"policyId": p.Policy.ID, "limit": 101} }),
	}
}

// writes are the four operations that change policies, with valid arguments.
func writes(p policy.Policy) map[string]args {
	return map[string]args{
		"update_policy_settings": {"policyId": p.ID, "changes": change("CAMERA", "BLOCK")},
		"create_policy":          {"fromPolicyId": p.ID, "displayName": "New"},
		"rollback_policy":        {"policyId": p.ID, "revision": 1},
		"apply_policy_proposal":  {"proposalId": "prp_5h9j3f7p1s6z4g8a2e0k7m9q3v"},
	}
}

func wrongCallers() (all []refusal) {
	for _, tool := range slices.Sorted(maps.Keys(writes(policy.Policy{}))) {
		all = append(all,
			refusal{tool + " without POLICIES_WRITE", 403, "forbidden", func(p *policyFixture) (string, string, args, func()) {
				return p.key(access.All &^ access.PoliciesWrite), tool, writes(p.Policy)[tool], nil
			}},
			refusal{tool + " without POLICIES_READ", 403, "forbidden", func(p *policyFixture) (string, string, args, func()) {
				return p.key(access.All &^ access.PoliciesRead), tool, writes(p.Policy)[tool], nil
			}},
			refusal{tool + " with the setting off", 403, "forbidden", func(p *policyFixture) (string, string, args, func()) {
				return p.Key(p.shut, access.All), tool, writes(p.Policy)[tool], nil
			}})
	}
	for tool, a := range map[string]args{"get_policy_settings": {"policyId": "p"}, "list_policy_revisions": {"policyId": "p"},
		"get_policy_proposal": {"proposalId": "p"}} {
		all = append(all, refusal{tool + " without POLICIES_READ", 403, "forbidden", func(p *policyFixture) (string, string, args, func()) {
			return p.key(access.All &^ access.PoliciesRead), tool, a, nil
		}})
	}
	return append(all, refusal{"eleventh call", 429, "rate_limited", func(p *policyFixture) (string, string, args, func()) {
		key, of := p.all(), p.policy()
		a := args{"policyId": of.ID, "changes": change("CAMERA", "BLOCK")}
		for range 10 {
			p.ok(key, "update_policy_settings", a)
		}
		return key, "update_policy_settings", a, func() { p.ok(key, "get_policy_settings", args{"policyId": of.ID}) }
	}})
}

func wrongTargets() []refusal {
	missing := func(name string, call func(p *policyFixture) (string, args)) refusal {
		return refusal{name, 404, "not_found", func(p *policyFixture) (string, string, args, func()) {
			tool, a := call(p)
			return p.all(), tool, a, nil
		}}
	}
	unsupported := func(name, tool string, a func(p *policyFixture) args) refusal {
		return refusal{name, 409, "unsupported", func(p *policyFixture) (string, string, args, func()) { return p.all(), tool, a(p), nil }}
	}
	all := []refusal{
		missing("no such revision", func(p *policyFixture) (string, args) {
			return "rollback_policy", args{"policyId": p.Policy.ID, "revision": 99}
		}),
		missing("no such proposal", func(*policyFixture) (string, args) {
			return "apply_policy_proposal", args{"proposalId": "prp_5h9j3f7p1s6z4g8a2e0k7m9q3v"}
		}),
		missing("what is no proposal's id", func(*policyFixture) (string, args) {
			return "get_policy_proposal", args{"proposalId": "5h9"}
		}),
		missing("another key's proposal, read", func(p *policyFixture) (string, args) {
			id, _ := p.propose(p.all())
			return "get_policy_proposal", args{"proposalId": id}
		}),
		missing("another key's proposal, applied", func(p *policyFixture) (string, args) {
			id, _ := p.propose(p.all())
			return "apply_policy_proposal", args{"proposalId": id}
		}),
		unsupported("changes of an agent's policy", "update_policy_settings", func(p *policyFixture) args {
			return args{"policyId": p.agent.ID, "changes": change("CAMERA", "BLOCK")}
		}),
		unsupported("a copy of an agent's policy", "create_policy", func(p *policyFixture) args {
			return args{"fromPolicyId": p.agent.ID, "displayName": "Copy of kiosk"}
		}),
		unsupported("rollback of an agent's policy", "rollback_policy", func(p *policyFixture) args {
			return args{"policyId": p.agent.ID, "revision": 1}
		}),
	}
	for tool, member := range map[string]string{"update_policy_settings": "policyId", "create_policy": "fromPolicyId",
		"rollback_policy": "policyId", "get_policy_settings": "policyId", "list_policy_revisions": "policyId"} {
		for name, target := range map[string]func(p *policyFixture) string{
			"no such policy":                     func(*policyFixture) string { return "5h9j3f7p1s6z4g8a2e0k7m9q3v" },
			"another company's policy":           func(p *policyFixture) string { return p.foreign.ID },
			"another company's policy, its path": func(p *policyFixture) string { return p.foreign.PathName() },
			"an asset's path":                    func(p *policyFixture) string { return "enterprises/acme/assets/" + p.Policy.ID },
			"a deleted policy": func(p *policyFixture) string {
				gone := p.policy()
				if _, err := p.Admin().Policies.Delete(p.t.Context(), p.Company.ID, gone.ID); err != nil {
					p.t.Fatal(err)
				}
				return gone.ID
			},
		} {
			all = append(all, missing(tool+" of "+name, func(p *policyFixture) (string, args) {
				a := maps.Clone(writes(p.Policy)[tool])
				if a == nil {
					a = args{}
				}
				a[member] = target(p)
				return tool, a
			}))
		}
	}
	return all
}

func refusedProposals() []refusal {
	refused := func(name string, call func(p *policyFixture) (string, string, args)) refusal {
		return refusal{name, 422, "refused", func(p *policyFixture) (string, string, args, func()) {
			key, tool, a := call(p)
			return key, tool, a, nil
		}}
	}
	return []refusal{
		refused("nothing would change", func(p *policyFixture) (string, string, args) {
			of := p.policy()
			p.save(of.ID, policy.Change{Setting: "CAMERA", Value: "BLOCK"})
			return p.all(), "update_policy_settings", args{"policyId": of.ID, "changes": change("CAMERA", "block")}
		}),
		refused("an empty list", func(p *policyFixture) (string, string, args) {
			return p.all(), "update_policy_settings", args{"policyId": p.Policy.ID, "changes": []args{}}
		}),
		refused("a rollback to what is", func(p *policyFixture) (string, string, args) {
			return p.all(), "rollback_policy", args{"policyId": p.policy().ID, "revision": 1}
		}),
		refused("a company that is not connected", func(p *policyFixture) (string, string, args) {
			p.made++
			of := p.Env.Policy(p.loose, fmt.Sprintf("%s %d", p.caller.name, p.made), policy.Platform)
			return p.Key(p.loose, access.All), "create_policy", args{"fromPolicyId": of.ID, "displayName": "Copy"}
		}),
		refused("a name that is taken", func(p *policyFixture) (string, string, args) {
			of := p.policy()
			return p.all(), "create_policy", args{"fromPolicyId": of.ID, "displayName": " " + strings.ToUpper(of.Name) + " "}
		}),
	}
}

func refusedApplies() []refusal {
	apply := func(name string, status int, code string, prepare func(p *policyFixture) (key, id string, more args, then func())) refusal {
		return refusal{name, status, code, func(p *policyFixture) (string, string, args, func()) {
			key, id, more, then := prepare(p)
			a := args{"proposalId": id}
			maps.Copy(a, more)
			return key, "apply_policy_proposal", a, then
		}}
	}
	unconfirmed := func(name string, more args) refusal {
		return apply(name, 422, "confirmation_required", func(p *policyFixture) (string, string, args, func()) {
			key, of := p.all(), p.policy()
			p.Enroll(p.Company, emulator.Enrollment{EnrollmentToken: p.Client(p.r, access.All).QRCode(of, args{}), Count: 1})
			id := p.ok(key, "update_policy_settings",
				args{"policyId": of.ID, "changes": change("FACTORY_RESET", "BLOCK")})["proposalId"].(string)
			return key, id, more, func() {
				if got := p.status(key, id); got != "PENDING" || p.current(of.ID).Version != 1 {
					p.t.Errorf("it is %v", got)
				}
				p.ok(key, "apply_policy_proposal", args{"proposalId": id, "confirmation": "  " + strings.ToUpper(of.Name) + " "})
			}
		})
	}
	troubled := func(name string, f emulator.Fault, status int, code, ends string) refusal {
		return apply(name, status, code, func(p *policyFixture) (string, string, args, func()) {
			key := p.all()
			id, of := p.propose(key)
			f.Method, f.Match, f.Times = "policies.patch", of.ID, 1
			p.Fault(f)
			return key, id, nil, func() {
				if got := p.status(key, id); got != ends {
					p.t.Errorf("it is %v, want %s", got, ends)
				}
				p.pushed(of.ID) // with or without the change, both sides agree
				version, want := p.current(of.ID).Version, 1
				if f.AfterEffect {
					p.Eventually("the change is saved here", func() error {
						if version = p.current(of.ID).Version; version != 2 {
							return fmt.Errorf("version %d", version)
						}
						return nil
					})
					want = 2
				}
				if version != want {
					p.t.Errorf("version %d, want %d", version, want)
				}
				if got := p.status(key, id); got != ends {
					p.t.Errorf("it became %v, after %s", got, ends)
				}
				if f.Status == 400 { // once refused, it can be sent again
					again := p.ok(key, "update_policy_settings",
						args{"policyId": of.ID, "changes": change("CAMERA", "BLOCK")})["proposalId"]
					p.ok(key, "apply_policy_proposal", args{"proposalId": again})
					p.pushed(of.ID)
				}
			}
		})
	}
	return []refusal{
		apply("applied already", 409, "not_pending", func(p *policyFixture) (string, string, args, func()) {
			key := p.all()
			id, _ := p.propose(key)
			p.ok(key, "apply_policy_proposal", args{"proposalId": id})
			return key, id, nil, nil
		}),
		apply("saved since", 409, "stale_proposal", func(p *policyFixture) (string, string, args, func()) {
			key := p.all()
			id, of := p.propose(key)
			p.save(of.ID, policy.Change{Setting: "SMS", Value: "BLOCK"})
			return key, id, nil, func() {
				if v := p.caller.call(p.t, p.r, key, "apply_policy_proposal", args{"proposalId": id}); v.code != "not_pending" {
					p.t.Errorf("a stale one ends %s the second time", v.code)
				}
			}
		}),
		apply("a name that was taken since", 422, "refused", func(p *policyFixture) (string, string, args, func()) {
			key, of := p.all(), p.policy()
			p.made++
			wanted := fmt.Sprintf("%s %d", p.caller.name, p.made)
			id := p.ok(key, "create_policy", args{"fromPolicyId": of.ID, "displayName": wanted})["proposalId"].(string)
			p.Env.Policy(p.Company, wanted, policy.Platform)
			return key, id, nil, nil
		}),
		unconfirmed("no confirmation", nil),
		unconfirmed("another confirmation", args{"confirmation": "yes"}),
		unconfirmed("an empty confirmation", args{"confirmation": ""}),
		troubled("the vendor refuses", emulator.Fault{Status: 400, Reason: "INVALID_ARGUMENT"}, 422, "refused", "FAILED"),
		troubled("the vendor is busy", emulator.Fault{Status: 429}, 500, "internal_error", "FAILED"),
		troubled("the vendor fails", emulator.Fault{Status: 503}, 500, "internal_error", "UNCONFIRMED"),
		troubled("the answer is lost", emulator.Fault{DropConnection: true, AfterEffect: true}, 500, "internal_error", "UNCONFIRMED"),
		troubled("the request is lost", emulator.Fault{DropConnection: true}, 500, "internal_error", "UNCONFIRMED"),
	}
}
