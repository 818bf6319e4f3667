package drill

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/limit"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// What the attacker makes, and how long the session lasts.
const (
	stolenMinutes    = 10
	attackerKeys     = 6
	attackerUsers    = 3 // administrators; the last has no passkey
	attackerClients  = 3 // OAuth connections
	wipesEachRound   = 3 // for each caller or administrator, and minute
	attackerPassword = "a password of the thief 1"
)

// defaults gives the company the controls that a new company has.
func defaults(ctx context.Context, d *drill) error {
	return d.controls(ctx, access.DefaultControls())
}

// attacker has an administrator's session, with the passkey of an unlocked computer.
type attacker struct {
	*drill
	before  access.Settings
	owner   *portalclient.Client
	people  []*portalclient.Client // made by the attacker; sessions of administrators
	limited *portalclient.Client   // a helper of long standing, who may use one policy
	callers []caller               // keys and connections
	twins   []twin                 // machines of the attacker that claim to be devices of the company
	targets []asset.Asset
}

// stolenAdministrator wipes from every caller that a stolen session can make.
func stolenAdministrator(ctx context.Context, d *drill) error {
	before, _, err := d.look(ctx)
	if err != nil {
		return err
	}
	t := &attacker{drill: d, before: before}
	if t.owner, err = d.signIn(ctx); err == nil {
		err = t.owner.AddPasskey(ctx)
	}
	if err == nil {
		err = t.makeLimited(ctx)
	}
	if err == nil { // the owner, unlike whom the attacker makes, is no new user
		d.clock.advance(2 * access.DefaultControls().ApproverAge)
		err = t.owner.SignInByPasskey(ctx)
	}
	for _, step := range []func(context.Context) error{t.makeKeys, t.makePeople, t.makeClients, t.decideAlone, t.outlive, t.makeTwins,
		t.wipeForMinutes} {
		if err == nil {
			err = step(ctx)
		}
	}
	if err != nil {
		return err
	}
	return t.judge(ctx)
}

// wipeForMinutes attacks for ten minutes: each caller, each minute.
func (t *attacker) wipeForMinutes(ctx context.Context) error {
	byKey, byClient := t.row("wipe with API keys"), t.row("wipe with connections")
	withPasskey, without := t.row("wipe in the portal, passkey"), t.row("wipe in the portal, no passkey")
	loosening, replacing := t.row("loosen the controls"), t.row("merge, and enroll again")
	for minute := range stolenMinutes {
		var err error
		if _, t.targets, err = t.look(ctx); err != nil { // without those that are erased
			return err
		}
		if err := t.loosen(ctx, loosening, minute); err != nil {
			return err
		}
		if err := t.enough(ctx, t.judge); err != nil {
			return err
		}
		for i, c := range t.callers {
			row := byKey
			if i >= attackerKeys {
				row = byClient
			}
			for n := range wipesEachRound {
				if err := t.destroy(ctx, c, row, minute*len(t.callers)*wipesEachRound+i*wipesEachRound+n); err != nil {
					return err
				}
			}
		}
		for i, v := range append([]*portalclient.Client{t.owner}, t.people...) {
			row := withPasskey
			if v.Passkey == nil {
				row = without
			}
			for n := range wipesEachRound {
				if err := t.destroyInPortal(ctx, v, row, (minute*(attackerUsers+1)+i)*wipesEachRound+n); err != nil {
					return err
				}
			}
		}
		if err := t.replace(ctx, replacing, minute); err != nil {
			return err
		}
		if err := t.enough(ctx, t.judge); err != nil {
			return err
		}
		t.clock.advance(time.Minute)
	}
	return nil
}

// destructive are the four destructive commands.
func destructive() []string {
	return []string{"wipe_device", "reset_screen_lock", "change_screen_lock_password", "relinquish_ownership"}
}

// destroy sends the nth command to the nth device.
func (t *attacker) destroy(ctx context.Context, c caller, row *Attack, n int) error {
	args := map[string]any{"assetId": t.targets[n%len(t.targets)].ID}
	command := destructive()[n%7%4] // mostly wipes and new passwords
	if command == "change_screen_lock_password" {
		args["newPassword"] = "246813579"
	}
	got, err := c.call(ctx, command, args, "")
	if err != nil {
		return err
	}
	row.note(got)
	return nil
}

func (t *attacker) destroyInPortal(ctx context.Context, v *portalclient.Client, row *Attack, n int) error {
	target := t.targets[n%len(t.targets)]
	p, err := v.Post(ctx, frame.DevicePath(target.ID)+"/commands/"+destructive()[n%2], "confirm", target.Identification)
	if err != nil {
		return err
	}
	row.note(outcome(p))
	return nil
}

var waiting = regexp.MustCompile(frame.ControlsPath + `/[0-9a-z]+/confirm`)

// loosen asks for looser controls, and has every administrator confirm them.
func (t *attacker) loosen(ctx context.Context, row *Attack, minute int) error {
	all := append([]*portalclient.Client{t.owner}, t.people...)
	asks := all[minute%len(all)]
	if minute%4 == 0 { // a proof of identity is good for five minutes
		for _, v := range all {
			if err := v.Prove(ctx); err != nil {
				return err
			}
		}
	}
	p, err := asks.Post(ctx, frame.ControlsPath, "limit", []string{"off", "100000/1m", "10000/60m"}[minute%3], "age", "0")
	if err != nil {
		return err
	}
	row.note(outcome(p))
	if p, err = all[(minute+1)%len(all)].Get(ctx, frame.ControlsPath); err != nil { // who asked is not offered to confirm
		return err
	}
	for _, path := range waiting.FindAllString(p.Body, -1) {
		for _, v := range all {
			if v.Passkey == nil {
				continue
			}
			p, err := v.Get(ctx, path)
			if err != nil {
				return err
			}
			token, signed, err := p.Answered(v.Passkey.Get)
			if err != nil {
				row.note(outcome(p))
				continue // it does not wait any more
			}
			if p, err = v.Post(ctx, path, "token", token, "answer", signed); err != nil {
				return err
			}
			row.note(outcome(p))
		}
	}
	return nil
}

// judge counts the devices that got a destructive command, and looks whether
// a control became looser.
func (t *attacker) judge(ctx context.Context) error {
	if err := t.db.ApplyLoosenings(ctx); err != nil { // as each replica does every two seconds
		return err
	}
	after, _, err := t.look(ctx)
	if err != nil {
		return err
	}
	hit, err := t.destroyed(ctx)
	if err != nil {
		return err
	}
	most := access.DefaultControls().DestructiveLimit.Devices + limit.Reserve
	t.result.Facts = append(t.result.Facts,
		fmt.Sprintf("%d devices got a destructive command or left their assets; allowed are %d, of which %d for people with a passkey "+
			"of age; a second command to a device is free", hit, most, limit.Reserve))
	if hit > most {
		t.harm("%d devices got a destructive command or left their assets: the limit and its reserve are %d", hit, most)
	}
	for _, name := range access.ControlNames() {
		if access.Loosens(name, t.before, after) {
			t.harm("%s became looser: %s, was %s", name, after.Control(name), t.before.Control(name))
		}
	}
	return nil
}
