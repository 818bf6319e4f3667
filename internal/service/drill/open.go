package drill

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// stopReason is in each refusal during the operator's stop.
const stopReason = "an account was stolen"

// outlive has requests open while the operator stops everything, and while the operator
// ends the accounts that they are of.
func (t *attacker) outlive(ctx context.Context) error {
	set := func(stop access.Stop) error {
		_, err := t.Admin.Companies.UpdateCompany(ctx, t.Company.ID, company.Change(func(c *company.Company) { c.Settings.Stop = stop }))
		return err
	}
	stopped := access.Stop{At: t.clock.now(), Reason: stopReason, All: true}
	if err := t.holdAcross(ctx, "requests open across a stop", "stopped@acme.test", func() error { return set(stopped) }); err != nil {
		return err
	}
	if err := set(access.Stop{}); err != nil {
		return err
	}
	return t.holdAcross(ctx, "requests open as rights end", "ended@acme.test", func() error { return t.endAccount(ctx, "ended@acme.test") })
}

// endAccount disables a user, and revokes the key that was made in the user's name.
func (d *drill) endAccount(ctx context.Context, email string) error {
	keys, err := d.db.Keys(ctx, d.Company.ID)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Name == email {
			if _, err := d.db.RevokeKey(ctx, d.Company.ID, k.ID, d.clock.now()); err != nil {
				return err
			}
		}
	}
	u, err := d.db.UserByEmail(ctx, email)
	if err != nil {
		return err
	}
	_, err = d.db.UpdateUser(ctx, d.Company.ID, u.ID, func(u *account.User) error { u.Disabled = true; return nil })
	return err
}

// holdAcross makes a helper with a key and a connection, opens requests of all three, calls
// end, and then sends the requests' bodies.
func (t *attacker) holdAcross(ctx context.Context, what, email string, end func() error) error {
	helper, err := t.invite(ctx, email, "role", "admin")
	if err != nil {
		return err
	}
	key, err := makeKey(ctx, t.owner, email)
	if err != nil {
		return err
	}
	token, err := t.connectClient(ctx, helper)
	if err != nil {
		return err
	}
	requests, err := t.requests(ctx, helper, key, token)
	if err != nil {
		return err
	}
	before, err := t.written(ctx)
	if err != nil {
		return err
	}
	for i := range requests {
		requests[i].finish = hold(requests[i].client, requests[i].Request)
	}
	if err := end(); err != nil {
		return err
	}
	row := t.row(what)
	for _, r := range requests {
		response, err := r.finish()
		if err != nil {
			return err
		}
		got, err := r.read(response)
		if err != nil {
			return err
		}
		row.note(got)
	}
	return t.judgeWritten(ctx, what, before, len(requests))
}

// requests are those that each caller of a helper has open: the helper wipes, makes a user
// and makes a key; the key proposes and wipes; the connection wipes.
func (t *attacker) requests(ctx context.Context, helper *portalclient.Client, key, token string) (all []open, err error) {
	_, devices, err := t.look(ctx)
	if err != nil {
		return nil, err
	}
	p, err := t.policyNamed(ctx, "Meeting rooms")
	if err != nil {
		return nil, err
	}
	targets := slices.DeleteFunc(devices, func(a asset.Asset) bool { return a.Device.Management != asset.Platform })
	if len(targets) < 4 {
		return nil, fmt.Errorf("the company has only %d devices of the platform", len(targets))
	}
	makesKey, err := keyForm(ctx, helper, "kept")
	if err != nil {
		return nil, err
	}
	wipe := func(n int) map[string]any { return map[string]any{"assetId": targets[n].ID} }
	change := map[string]any{"policyId": p.ID, "changes": looser()}
	rest := t.rest(key, nil)
	for _, prepare := range []func() (open, error){
		func() (open, error) { return openREST(ctx, rest, "wipe_device", wipe(0)) },
		func() (open, error) { return openREST(ctx, rest, "update_policy_settings", change) },
		func() (open, error) { return t.openTool(ctx, "X-API-Key", key, wipe(1)) },
		func() (open, error) { return t.openTool(ctx, "Authorization", "Bearer "+token, wipe(2)) },
		func() (open, error) {
			return openForm(ctx, helper, frame.DevicePath(targets[3].ID)+"/commands/wipe_device", "confirm", targets[3].Identification)
		},
		func() (open, error) { return openForm(ctx, helper, frame.AccessPath+"/keys", makesKey...) },
		func() (open, error) {
			return openForm(ctx, helper, frame.UsersPath, "email", "kept@acme.test", "name", "Kept", "role", "admin")
		},
	} {
		one, err := prepare()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// written counts what callers can leave behind.
func (d *drill) written(ctx context.Context) (map[string]int, error) {
	n := map[string]int{}
	if err := d.everyCommand(ctx, func(c command.Command) { n["commands"]++ }); err != nil {
		return nil, err
	}
	users, err := d.db.Users(ctx, d.Company.ID)
	if err != nil {
		return nil, err
	}
	keys, err := d.db.Keys(ctx, d.Company.ID)
	if err != nil {
		return nil, err
	}
	proposals, err := d.db.CompanyProposals(ctx, proposal.Query{CompanyID: d.Company.ID, Limit: pageOfAll})
	n["users"], n["keys"], n["proposals"] = len(users), len(keys), len(proposals)
	return n, err
}

// judgeWritten looks for what requests recorded that were open when their callers lost
// what they could do.
func (t *attacker) judgeWritten(ctx context.Context, what string, before map[string]int, requests int) error {
	after, err := t.written(ctx)
	if err != nil {
		return err
	}
	recorded := 0
	for kind, n := range after {
		if more := n - before[kind]; more > 0 {
			recorded += more
			t.harm("%s: %d %s were recorded", what, more, kind)
		}
	}
	t.result.Facts = append(t.result.Facts, fmt.Sprintf("%d records by %d %s; allowed is none", recorded, requests, what))
	return t.enough(ctx, func(context.Context) error { return nil })
}
