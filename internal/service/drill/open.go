package drill

import (
	"context"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// stopReason is in each refusal during the operator's stop.
const stopReason = "an account was stolen"

// outlive has requests open while the operator stops everything, and while the operator
// ends the accounts that they are of.
func (t *attacker) outlive(ctx context.Context) {
	set := func(stop access.Stop) {
		script.Must(t.Admin.Companies.UpdateCompany(ctx, t.Company.ID, company.Change(func(c *company.Company) { c.Settings.Stop = stop })))
	}
	stopped := access.Stop{At: t.clock.now(), Reason: stopReason, All: true}
	t.holdAcross(ctx, "requests open across a stop", "stopped@acme.test", func() { set(stopped) })
	set(access.Stop{})
	t.holdAcross(ctx, "requests open as rights end", "ended@acme.test", func() { t.endAccount(ctx, "ended@acme.test") })
}

// endAccount disables a user, and revokes the key that was made in the user's name.
func (d *drill) endAccount(ctx context.Context, email string) {
	for _, k := range script.Must(d.db.Keys(ctx, d.Company.ID)) {
		if k.Name == email {
			script.Must(d.db.RevokeKey(ctx, d.Company.ID, k.ID, d.clock.now()))
		}
	}
	u := script.Must(d.db.UserByEmail(ctx, email))
	script.Must(d.db.UpdateUser(ctx, d.Company.ID, u.ID, func(u *account.User) error { u.Disabled = true; return nil }))
}

// holdAcross makes a helper with a key and a connection, opens requests of all three, calls
// end, and then sends the requests' bodies.
func (t *attacker) holdAcross(ctx context.Context, what, email string, end func()) {
	helper := t.invite(ctx, email, "role", "admin")
	key := makeKey(ctx, t.owner, email)
	token := helper.Connect(ctx, "Thief", access.All.Scopes()...).Access
	requests := t.requests(ctx, helper, key, token)
	before := t.written(ctx)
	held := make([]func() answer, len(requests))
	for i, send := range requests {
		held[i] = client.Hold(send)
	}
	end()
	row := t.row(what)
	for _, finish := range held {
		row.note(finish())
	}
	t.judgeWritten(ctx, what, before, len(requests))
}

// requests are those that each caller of a helper has open: the helper wipes, makes a user
// and makes a key; the key proposes and wipes; the connection wipes.
func (t *attacker) requests(ctx context.Context, helper *client.Person, key, token string) []open {
	_, devices := t.look(ctx)
	p := t.policyNamed(ctx, "Meeting rooms")
	targets := slices.DeleteFunc(devices, func(a asset.Asset) bool { return a.Device.Management != asset.Platform })
	if len(targets) < 4 {
		script.Fail("the company has only %d devices of the platform", len(targets))
	}
	makesKey := keyForm(ctx, helper, "kept")
	wipe := func(n int) map[string]any { return map[string]any{"assetId": targets[n].ID} }
	change := map[string]any{"policyId": p.ID, "changes": looser()}
	return []open{
		t.openREST(ctx, key, "wipe_device", wipe(0)),
		t.openREST(ctx, key, "update_policy_settings", change),
		t.openTool(ctx, "X-API-Key", key, wipe(1)),
		t.openTool(ctx, "Authorization", "Bearer "+token, wipe(2)),
		openForm(ctx, helper, frame.DevicePath(targets[3].ID)+"/commands/wipe_device", "confirm", targets[3].Identification),
		openForm(ctx, helper, frame.AccessPath+"/keys", makesKey...),
		openForm(ctx, helper, frame.UsersPath, "email", "kept@acme.test", "name", "Kept", "role", "admin"),
	}
}

// written counts what callers can leave behind.
func (d *drill) written(ctx context.Context) map[string]int {
	n := map[string]int{}
	d.everyCommand(ctx, func(c command.Command) { n["commands"]++ })
	n["users"] = len(script.Must(d.db.Users(ctx, d.Company.ID)))
	n["keys"] = len(script.Must(d.db.Keys(ctx, d.Company.ID)))
	n["proposals"] = len(script.Must(d.db.CompanyProposals(ctx, proposal.Query{CompanyID: d.Company.ID, Limit: pageOfAll})))
	return n
}

// judgeWritten looks for what requests recorded that were open when their callers lost
// what they could do.
func (t *attacker) judgeWritten(ctx context.Context, what string, before map[string]int, requests int) {
	after := t.written(ctx)
	recorded := 0
	for kind, n := range after {
		if more := n - before[kind]; more > 0 {
			recorded += more
			t.harm("%s: %d %s were recorded", what, more, kind)
		}
	}
	t.fact("%d records by %d %s; allowed is none", recorded, requests, what)
	t.enough(ctx, nil)
}
