package drill

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// alone is a way in which the attacker asks for something and decides about it, too.
type alone struct {
	what    string
	asks    caller
	decides *client.Person
}

const limitedEmail = "limited@acme.test"

// makeLimited makes a manager with a passkey who may use one policy.
func (t *attacker) makeLimited(ctx context.Context) {
	kiosk := t.policyNamed(ctx, "Kiosk")
	t.limited = t.invite(ctx, limitedEmail, "role", "manager", "scope", "some", "policy", kiosk.ID)
	t.limited.AddPasskey(ctx)
}

// widen lets the limited manager use all policies.
func (t *attacker) widen(ctx context.Context) {
	u := script.Must(t.db.UserByEmail(ctx, limitedEmail))
	p := t.owner.Post(ctx, frame.UsersPath+"/"+u.ID, "name", u.Name, "role", string(u.Role), "scope", "all")
	t.row("give a helper all policies").note(outcome(p))
	t.limited.SignInByPasskey(ctx)
}

// decideAlone tries what takes a second person where the company asks for that: a wipe
// and a change of a policy, asked for and decided by accounts of the attacker.
func (t *attacker) decideAlone(ctx context.Context) {
	settings, _ := t.look(ctx)
	strict := access.DefaultControls()
	strict.ApplyApproval, strict.DestructiveApproval, strict.SecondPerson = access.ApproveAll, true, true
	t.controls(ctx, strict)
	before := t.state(ctx)
	t.widen(ctx)
	helper := t.people[0]
	done := 0
	for _, one := range []alone{
		{"decide with the account that asked", t.callers[0], t.owner},
		{"decide with a new helper account", t.callers[1], helper},
		{"ask with a new helper account", t.rest(makeKey(ctx, helper, "helper"), nil), t.owner},
		{"decide with more policies", t.callers[2], t.limited},
	} {
		t.tryAlone(ctx, one)
		after := t.state(ctx)
		changed, _, destroyed := before.until(after)
		if before = after; changed+destroyed > 0 {
			t.harm("%s: %d policies changed and %d destructive commands, decided by one person", one.what, changed, destroyed)
		}
		done += changed + destroyed
		t.enough(ctx, nil)
	}
	t.fact("%d changes and destructive commands that one person asked for and decided; allowed is none", done)
	t.controls(ctx, settings.Controls)
}

// tryAlone asks, decides and asks again.
func (t *attacker) tryAlone(ctx context.Context, one alone) {
	_, devices := t.look(ctx)
	p := t.policyNamed(ctx, "Meeting rooms")
	proposed := one.asks.call(ctx, "update_policy_settings", map[string]any{"policyId": p.ID, "changes": looser()}, "")
	if proposed.code != "" {
		script.Fail("nothing to approve: %s", proposed.detail)
	}
	row := t.row(one.what)
	apply := map[string]any{"proposalId": proposed.result["proposalId"], "confirmation": p.Name}
	t.askAndDecide(ctx, one, row, "apply_policy_proposal", apply)
	for _, a := range devices {
		if a.Device.Management == asset.Platform && a.Device.PolicyID == p.ID {
			t.askAndDecide(ctx, one, row, "wipe_device", map[string]any{"assetId": a.ID})
			return
		}
	}
	script.Fail("%s has no device", p.Name)
}

func (t *attacker) askAndDecide(ctx context.Context, one alone, row *Attack, name string, args map[string]any) {
	asked := one.asks.call(ctx, name, args, "")
	row.note(asked)
	if asked.approvalURL == "" {
		return
	}
	row.note(outcome(one.decides.Decide(ctx, asked.approvalURL)))
	row.note(one.asks.call(ctx, name, args, ""))
}
