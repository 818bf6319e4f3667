package drill

import (
	"context"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/wait"
)

// raced is the setting of high impact that the races loosen.
const raced = "FACTORY_RESET"

// vendorTakes is how long the vendor takes for the first call of a race, in milliseconds.
const vendorTakes = 400

// races tries, under RISKY, to bring a change of high impact to a device that is in use:
// the model copies the device's policy, changes the copy, which no device uses, and moves
// the device there while the vendor is called, and the other way round.
func (d *drill) races(ctx context.Context, key string) {
	settings, _ := d.look(ctx)
	if !settings.Controls.ApplyApproval.On() {
		return
	}
	d.controls(ctx, access.DefaultControls())
	strict := script.Must(d.Admin.Policies.Create(ctx, policy.New{CompanyID: d.Company.ID, CompanySlug: d.Company.Slug, Name: "Strict",
		Type: policy.Platform, Changes: []policy.Change{{Setting: raced, Value: "BLOCK"}}}, author()))
	devices := d.under(ctx, strict)
	risky := settings.Controls
	risky.ApplyApproval = access.ApproveRisky
	d.controls(ctx, risky)
	overREST, overMCP := d.row("race change and move, REST"), d.row("race change and move, MCP")
	d.bridged(ctx, key, nil, func(bridged caller) {
		for i, device := range devices {
			r := &race{drill: d, on: d.rest(key, nil), device: device, row: overREST}
			if i >= len(devices)/2 {
				r.on, r.row = bridged, overMCP
			}
			r.run(ctx, strict, i)
		}
	})
	d.fact("%d races of a change and a move; allowed is one of the two", len(devices))
	d.controls(ctx, settings.Controls)
}

// racers is how many devices take part in races: each order on each surface.
const racers = 4

// under moves devices to a policy, while no person has to be asked.
func (d *drill) under(ctx context.Context, p policy.Policy) (devices []asset.Asset) {
	_, all := d.look(ctx)
	for _, a := range all {
		if a.Device.Management == asset.Platform && len(devices) < racers {
			got := d.patient(ctx, d.rest(d.Key, nil), "change_device_policy", map[string]any{"assetId": a.ID, "policyId": p.ID}, "")
			if got.code == "" { // not every device takes it
				devices = append(devices, a)
			}
		}
	}
	return devices
}

// race is one race.
type race struct {
	*drill
	on     caller
	device asset.Asset
	row    *Attack
}

// call makes a call of the race that the vendor answers at once.
func (r *race) call(ctx context.Context, name string, args map[string]any) answer {
	got := r.patient(ctx, r.on, name, args, "")
	if got.code != "" {
		script.Fail("%s was refused: %s", name, got.detail)
	}
	return got
}

func (r *race) run(ctx context.Context, strict policy.Policy, n int) {
	copied := r.call(ctx, "create_policy", map[string]any{"fromPolicyId": strict.PathName(), "displayName": "Copy " + strconv.Itoa(n)})
	made := r.call(ctx, "apply_policy_proposal", map[string]any{"proposalId": copied.result["proposalId"]})
	to := made.result["result"].(map[string]any)["policyId"]
	loose := r.call(ctx, "update_policy_settings",
		map[string]any{"policyId": to, "changes": []map[string]any{{"setting": raced, "value": "ALLOW"}}})
	id, _ := loose.result["proposalId"].(string)
	change := func() answer {
		return r.patient(ctx, r.on, "apply_policy_proposal", map[string]any{"proposalId": id}, "")
	}
	move := func() answer {
		return r.patient(ctx, r.on, "change_device_policy", map[string]any{"assetId": r.device.ID, "policyId": to}, "")
	}
	slow, first, then := "policies.patch", change, move
	if n%2 == 1 {
		slow, first, then = "devices.patch", move, change
	}
	script.Need(r.Emulator.AddFault(emulator.Fault{Method: slow, DelayMS: vendorTakes}))
	done := make(chan error, 1)
	var was answer
	go func() { done <- script.Attempt(func() { was = first() }) }()
	r.begun(ctx, id, to)
	got := then()
	script.Need(<-done)
	r.row.note(was)
	r.row.note(got)
	r.judge(ctx, strict)
}

// begun waits until the first call of the race is recorded.
func (r *race) begun(ctx context.Context, id string, to any) {
	for {
		if script.Must(r.db.PeekProposal(ctx, r.Company.ID, id)).Status != proposal.Pending {
			return
		}
		for _, c := range r.history(ctx, r.device.ID) {
			if c.Type == command.ChangePolicy && resource.Of(r.Company.Slug, resource.Policies, c.PolicyID) == to ||
				c.PolicyID == "" && c.Type == command.ChangePolicy {
				return
			}
		}
		if !wait.For(ctx, pollPause) {
			script.Need(ctx.Err())
		}
	}
}

// judge looks whether the device has a policy that differs from its own in what a person
// has to be asked about.
func (r *race) judge(ctx context.Context, own policy.Policy) {
	a := script.Must(r.db.Asset(ctx, r.Company.ID, r.device.ID))
	now := script.Must(r.db.Policy(ctx, r.Company.ID, a.Device.PolicyID))
	difference := script.Must(policy.Compare(now.Type, own.Revision(), now.Revision()))
	if difference.Risky() {
		r.harm("a change of high impact reached a device without a person")
	}
	r.enough(ctx, nil)
}

// twin is a device of the attacker (own) with the serial number of one of the company's devices (victim).
type twin struct{ victim, own asset.Asset }

// makeTwins enrolls a twin of each device that Muster's agent manages, so that the attacker can merge
// the two assets.
func (t *attacker) makeTwins(ctx context.Context) {
	row := t.row("enroll twins of devices")
	kiosk := t.policyNamed(ctx, "Kiosk")
	_, devices := t.look(ctx)
	for i, victim := range devices {
		if victim.Device.Management != asset.Agent {
			continue
		}
		device := simulated.New(simulated.Default(victim.Specifications["serialNumber"]), t.clock.now)
		t.live(ctx, "twin-"+strconv.Itoa(i), device, kiosk)
		t.twins = append(t.twins, twin{victim, t.twinOf(ctx, victim)})
		row.note(answer{})
	}
}

// pollPause is the time between two looks for an asset.
const pollPause = 20 * time.Millisecond

// twinOf waits for the other asset with the serial number of victim, until ctx ends.
func (t *attacker) twinOf(ctx context.Context, victim asset.Asset) asset.Asset {
	for {
		_, all := t.look(ctx)
		for _, a := range all {
			if a.ID != victim.ID && a.Specifications["serialNumber"] == victim.Specifications["serialNumber"] {
				return a
			}
		}
		if !wait.For(ctx, pollPause) {
			script.Need(ctx.Err())
		}
	}
}

// replace attacks each victim once a minute: in turn by a code with which another device enrolls in its
// place, and by a merge of the twin into its asset. The administrators take turns as well.
func (t *attacker) replace(ctx context.Context, row *Attack, minute int) {
	administrators := append([]*client.Person{t.owner}, t.people...)
	for i, pair := range t.twins {
		victim := script.Must(t.db.Asset(ctx, t.Company.ID, pair.victim.ID)) // again: a merge may have changed the name
		path, fields := frame.DevicePath(victim.ID)+"/enroll", []string{"confirm", victim.Identification}
		if (minute+i)%2 == 1 {
			path, fields = frame.DevicePath(victim.ID)+"/merge", append(fields, "other", pair.own.ID)
		}
		row.note(outcome(administrators[(minute+i)%len(administrators)].Post(ctx, path, fields...)))
	}
}
