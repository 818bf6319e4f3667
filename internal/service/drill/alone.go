package drill

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// alone is a way in which the attacker asks for something and decides about it, too.
type alone struct {
	what    string
	asks    caller
	decides *portalclient.Client
}

const limitedEmail = "limited@acme.test"

// makeLimited makes a manager with a passkey who may use one policy.
func (t *attacker) makeLimited(ctx context.Context) error {
	kiosk, err := t.policyNamed(ctx, "Kiosk")
	if err != nil {
		return err
	}
	if t.limited, err = t.invite(ctx, limitedEmail, "role", "manager", "scope", "some", "policy", kiosk.ID); err != nil {
		return err
	}
	return t.limited.AddPasskey(ctx)
}

// widen lets the limited manager use all policies.
func (t *attacker) widen(ctx context.Context) error {
	u, err := t.db.UserByEmail(ctx, limitedEmail)
	if err != nil {
		return err
	}
	p, err := t.owner.Post(ctx, frame.UsersPath+"/"+u.ID, "name", u.Name, "role", string(u.Role), "scope", "all")
	if err != nil {
		return err
	}
	t.row("give a helper all policies").note(outcome(p))
	return t.limited.SignInByPasskey(ctx)
}

// decideAlone tries what takes a second person where the company asks for that: a wipe
// and a change of a policy, asked for and decided by accounts of the attacker.
func (t *attacker) decideAlone(ctx context.Context) error {
	settings, _, err := t.look(ctx)
	if err != nil {
		return err
	}
	strict := access.DefaultControls()
	strict.ApplyApproval, strict.DestructiveApproval, strict.SecondPerson = access.ApproveAll, true, true
	if err := t.controls(ctx, strict); err != nil {
		return err
	}
	before, err := t.state(ctx)
	if err != nil {
		return err
	}
	if err := t.widen(ctx); err != nil {
		return err
	}
	helper := t.people[0]
	key, err := makeKey(ctx, helper, "helper")
	if err != nil {
		return err
	}
	done := 0
	for _, one := range []alone{
		{"decide with the account that asked", t.callers[0], t.owner},
		{"decide with a new helper account", t.callers[1], helper},
		{"ask with a new helper account", t.rest(key, nil), t.owner},
		{"decide with more policies", t.callers[2], t.limited},
	} {
		if err := t.tryAlone(ctx, one); err != nil {
			return err
		}
		after, err := t.state(ctx)
		if err != nil {
			return err
		}
		changed, _, destroyed := before.until(after)
		if before = after; changed+destroyed > 0 {
			t.harm("%s: %d policies changed and %d destructive commands, decided by one person", one.what, changed, destroyed)
		}
		done += changed + destroyed
		if err := t.enough(ctx, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	t.result.Facts = append(t.result.Facts,
		fmt.Sprintf("%d changes and destructive commands that one person asked for and decided; allowed is none", done))
	return t.controls(ctx, settings.Controls)
}

// tryAlone asks, decides and asks again.
func (t *attacker) tryAlone(ctx context.Context, one alone) error {
	_, devices, err := t.look(ctx)
	if err != nil {
		return err
	}
	p, err := t.policyNamed(ctx, "Meeting rooms")
	if err != nil {
		return err
	}
	proposed, err := one.asks.call(ctx, "update_policy_settings", map[string]any{"policyId": p.ID, "changes": looser()}, "")
	if err != nil {
		return err
	}
	if proposed.code != "" {
		return fmt.Errorf("nothing to approve: %s", proposed.detail)
	}
	row := t.row(one.what)
	apply := map[string]any{"proposalId": proposed.result["proposalId"], "confirmation": p.Name}
	if err := t.askAndDecide(ctx, one, row, "apply_policy_proposal", apply); err != nil {
		return err
	}
	for _, a := range devices {
		if a.Device.Management == asset.Platform && a.Device.PolicyID == p.ID {
			return t.askAndDecide(ctx, one, row, "wipe_device", map[string]any{"assetId": a.ID})
		}
	}
	return fmt.Errorf("%s has no device", p.Name)
}

func (t *attacker) askAndDecide(ctx context.Context, one alone, row *Attack, name string, args map[string]any) error {
	asked, err := one.asks.call(ctx, name, args, "")
	if err != nil {
		return err
	}
	row.note(asked)
	if asked.approvalURL == "" {
		return nil
	}
	p, err := one.decides.Decide(ctx, asked.approvalURL)
	if err != nil {
		return err
	}
	row.note(outcome(p))
	again, err := one.asks.call(ctx, name, args, "")
	if err == nil {
		row.note(again)
	}
	return err
}
