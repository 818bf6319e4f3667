package contract_test

import (
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/rulebook"
)

// set gives the company the settings of a world.
func (b *book) set(w rulebook.World) {
	limit := "off"
	if w.Limit > 0 {
		limit = strconv.Itoa(w.Limit) + "/60m"
	}
	approval := map[bool]string{false: "off", true: "on"}[w.Approval]
	args := []string{"company", "set", "acme", "--destructive-limit", limit, "--destructive-approval", approval, "--apply-approval",
		strings.ToLower(w.ApplyApproval), "--require-reason",
		map[string]string{"OFF": "off", "DESTRUCTIVE": "destructive", "ALL": "all"}[w.RequireReason]}
	for name, on := range map[string]bool{"device-commands": w.DeviceCommands, "destructive-commands": w.DestructiveCommands,
		"policy-changes": w.PolicyChanges, "provisioning": w.Provisioning, "oauth-connections": true} {
		if on {
			args = append(args, "--enable", name)
		} else {
			args = append(args, "--disable", name)
		}
	}
	b.tenant.CLI(new(any), args...)
	if w.Stopped == b.stopped {
		return
	}
	if b.stopped = w.Stopped; w.Stopped {
		b.tenant.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a test")
	} else {
		b.tenant.CLI(new(any), "company", "resume", "--company", "acme")
	}
}

// decider is the person who authorizes, signed in with both factors.
func (b *book) decider() decider {
	if b.person != nil {
		return *b.person
	}
	d := decider{b.replica.SignedOut(b.t), b.passkey}
	second := d.Post("/signin", "email", b.user.Email, "password", servertest.Password)
	d.Post("/signin/second", "token", second.Field(b.t, "token"), "answer", d.key.Get(second.Options(b.t))).Want(b.t, 200)
	b.person = &d
	return d
}

// call has one call explained, makes it, and compares both with the rules.
func (b *book) call(r *rapid.T, by rulebookCaller, w *rulebook.World, c rulebook.Call, arguments map[string]any) {
	left, room := 10-w.Spent, max(0, w.Limit-len(w.Counts))
	asks := w.Asks(c)
	before := w.Asked[asks]
	want := w.Predict(c)
	explanation, refused := by.explain(b.t, c, arguments)
	b.note("%+v: predicted %+v, explained %s %d", c, want, dump(explanation), refused)
	if b.late() {
		return
	}
	if refused != 0 { // such a caller may not even ask
		if got := by.send(b.t, c, arguments); got.status != want.Status || refused != want.Status || !w.Barred && !w.Elsewhere {
			r.Fatalf("%+v in %s is answered %+v, and its explanation %d, want %+v", c, dump(w), got, refused, want)
		}
		return
	}
	code := ""
	if explanation.Answer.Code != nil {
		code = *explanation.Answer.Code
	}
	if got := (rulebook.Answer{Status: explanation.Answer.Status, Code: code, Person: want.Person}); got != want ||
		want.Person && explanation.Approval == nil || explanation.Allowed != (want.Status < 300) {
		r.Errorf("%+v in %s is explained as %s, want %+v", c, dump(w), dump(explanation), want)
	}
	if explanation.Budget.Remaining != left || (explanation.Destructive == nil) != (w.Limit == 0) || explanation.Destructive != nil &&
		explanation.Destructive.Remaining != room {
		r.Errorf("%+v in %s: budget %s, destructive %s; want %d and %d left", c, dump(w), dump(explanation.Budget),
			dump(explanation.Destructive), left, room)
	}
	answer := by.send(b.t, c, arguments)
	b.note("answered %+v", answer)
	if b.late() {
		return
	}
	if answer.status != want.Status || answer.code != "" && answer.code != want.Code {
		r.Fatalf("%+v in %s is answered %+v, want %+v", c, dump(w), answer, want)
	}
	if answer.proposal != "" {
		b.proposals = append(b.proposals, answer.proposal)
	}
	address, proposal := answer.address, c.Tool == "apply_policy_proposal"
	if (address != "") != (want.Person && (proposal || w.Asked[asks] != rulebook.None)) {
		r.Fatalf("%+v in %s is answered %+v, want %+v", c, dump(w), answer, want)
	}
	if address == "" || before == rulebook.Declined || !rapid.Bool().Draw(r, "a person decides") {
		return
	}
	if proposal {
		b.review(r, address, w.Proposals[c.Proposal])
	} else {
		decline := rarely(r, 4, "declines")
		b.decider().decide(b.t, address, decline)
		w.Asked[asks] = map[bool]rulebook.Decision{false: rulebook.Authorized, true: rulebook.Declined}[decline]
	}
}
