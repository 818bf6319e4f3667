package drill

import (
	"context"
	"regexp"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/limit"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// What the attacker makes, and how long the attack lasts on the drill's clock.
const (
	stolenMinutes    = 10
	attackerKeys     = 6
	attackerUsers    = 3 // administrators; the last has no passkey
	attackerClients  = 3 // OAuth connections
	wipesEachRound   = 3 // destructive commands in each minute, from each caller and each administrator
	attackerPassword = "a password of the thief 1"
)

// defaults gives the company the controls that a new company has.
func defaults(ctx context.Context, d *drill) {
	d.controls(ctx, access.DefaultControls())
}

// attacker uses the session of the owner, an administrator of the company, and the owner's passkey, which is on a computer
// that is unlocked.
type attacker struct {
	*drill
	before  access.Settings  // the company's, before the attack
	owner   *client.Person   // the session that was stolen
	people  []*client.Person // sessions of the administrators that the attacker makes
	limited *client.Person   // a manager who may use one policy, and is old enough to approve
	callers []caller         // API keys, then OAuth connections
	twins   []twin           // machines of the attacker with the serial numbers of the company's devices
	targets []asset.Asset    // the managed devices, read again each minute
}

// stolenAdministrator wipes from every caller that a stolen session can make.
func stolenAdministrator(ctx context.Context, d *drill) {
	before, _ := d.look(ctx)
	t := &attacker{drill: d, before: before}
	t.owner = d.signIn(ctx)
	t.makeLimited(ctx)
	// From here on the owner and the limited manager are older than ApproverAge; accounts made later are not.
	d.clock.advance(2 * access.DefaultControls().ApproverAge)
	t.owner.SignInByPasskey(ctx)
	t.makeKeys(ctx)
	t.makePeople(ctx)
	t.makeClients(ctx)
	t.decideAlone(ctx)
	t.outlive(ctx)
	t.makeTwins(ctx)
	t.wipeForMinutes(ctx)
	t.judge(ctx)
}

// wipeForMinutes attacks for stolenMinutes of the drill's clock. In each minute every caller and every administrator sends
// destructive commands, one administrator asks for looser controls, and devices are replaced.
func (t *attacker) wipeForMinutes(ctx context.Context) {
	byKey, byClient := t.row("wipe with API keys"), t.row("wipe with connections")
	withPasskey, without := t.row("wipe in the portal, passkey"), t.row("wipe in the portal, no passkey")
	loosening, replacing := t.row("loosen the controls"), t.row("merge, and enroll again")
	for minute := range stolenMinutes {
		_, t.targets = t.look(ctx) // the managed devices, without those that were erased
		t.loosen(ctx, loosening, minute)
		t.enough(ctx, t.judge)
		for i, c := range t.callers {
			row := byKey
			if i >= attackerKeys {
				row = byClient
			}
			for n := range wipesEachRound {
				t.destroy(ctx, c, row, minute*len(t.callers)*wipesEachRound+i*wipesEachRound+n)
			}
		}
		for i, v := range append([]*client.Person{t.owner}, t.people...) {
			row := withPasskey
			if v.Passkey == nil {
				row = without
			}
			for n := range wipesEachRound {
				t.destroyInPortal(ctx, v, row, (minute*(attackerUsers+1)+i)*wipesEachRound+n)
			}
		}
		t.replace(ctx, replacing, minute)
		t.enough(ctx, t.judge)
		t.clock.advance(time.Minute)
	}
}

// destructive are the four destructive commands.
func destructive() []string {
	return []string{"wipe_device", "reset_screen_lock", "change_screen_lock_password", "relinquish_ownership"}
}

// destroy sends one destructive command through an API key or a connection. n, the number of the command, chooses the
// device and the kind.
func (t *attacker) destroy(ctx context.Context, c caller, row *Attack, n int) {
	args := map[string]any{"assetId": t.targets[n%len(t.targets)].ID}
	command := destructive()[n%7%4] // of seven, two each of the first three kinds, and one relinquish_ownership
	if command == "change_screen_lock_password" {
		args["newPassword"] = "246813579"
	}
	row.note(c.call(ctx, command, args, ""))
}

// destroyInPortal sends a wipe or a reset_screen_lock, by turns, as an administrator in the portal.
func (t *attacker) destroyInPortal(ctx context.Context, v *client.Person, row *Attack, n int) {
	target := t.targets[n%len(t.targets)]
	p := v.Post(ctx, frame.DevicePath(target.ID)+"/commands/"+destructive()[n%2], "confirm", target.Identification)
	row.note(outcome(p))
}

// waiting matches the addresses at which an administrator confirms looser controls that wait.
var waiting = regexp.MustCompile(frame.ControlsPath + `/[0-9a-z]+/confirm`)

// loosen asks for looser controls as one administrator, a different one each minute, and has every administrator with a
// passkey confirm all that wait.
func (t *attacker) loosen(ctx context.Context, row *Attack, minute int) {
	all := append([]*client.Person{t.owner}, t.people...)
	asks := all[minute%len(all)]
	if minute%4 == 0 { // a proof of identity counts for five minutes (account.ReauthFresh)
		for _, v := range all {
			v.Prove(ctx)
		}
	}
	limits := []string{"off", "100000/1m", "10000/60m"}
	row.note(outcome(asks.Post(ctx, frame.ControlsPath, "limit", limits[minute%3], "age", "0")))
	// Another administrator opens the page: it offers no confirmation to the one who asked.
	p := all[(minute+1)%len(all)].Get(ctx, frame.ControlsPath)
	for _, path := range waiting.FindAllString(p.Body, -1) {
		for _, v := range all {
			if v.Passkey == nil {
				continue
			}
			p := v.Get(ctx, path)
			var token, signed string
			if script.Attempt(func() { token, signed = p.Answered(v.Passkey.Get) }) != nil {
				row.note(outcome(p))
				continue // the change does not wait any more
			}
			row.note(outcome(v.Post(ctx, path, "token", token, "answer", signed)))
		}
	}
}

// judge adds the number of destroyed devices to the facts. It records harm if they are more than the limit and its reserve
// allow, or if a control is looser than before the attack.
func (t *attacker) judge(ctx context.Context) {
	script.Need(t.db.ApplyLoosenings(ctx)) // as each replica does every two seconds
	after, _ := t.look(ctx)
	hit := t.destroyed(ctx)
	most := access.DefaultControls().DestructiveLimit.Devices + limit.Reserve
	t.fact("%d devices got a destructive command or left their assets; allowed are %d, of which %d for people with a passkey of age; a "+
		"second command to a device is free", hit, most, limit.Reserve)
	if hit > most {
		t.harm("%d devices got a destructive command or left their assets: the limit and its reserve are %d", hit, most)
	}
	for _, name := range access.ControlNames() {
		if access.Loosens(name, t.before, after) {
			t.harm("%s became looser: %s, was %s", name, after.Control(name), t.before.Control(name))
		}
	}
}
