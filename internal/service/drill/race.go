package drill

import (
	"context"
	"fmt"
	"strconv"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/wait"
)

// raced is the setting of high impact that the races loosen.
const raced = "FACTORY_RESET"

// vendorTakes is how long the vendor takes for the first call of a race, in milliseconds.
const vendorTakes = 400

// races tries, under RISKY, to bring a change of high impact to a device that is in use:
// the model copies the device's policy, changes the copy, which no device uses, and moves
// the device there while the vendor is called, and the other way round.
func (d *drill) races(ctx context.Context, key string) error {
	settings, _, err := d.look(ctx)
	if err != nil || !settings.Controls.ApplyApproval.On() {
		return err
	}
	if err := d.controls(ctx, access.DefaultControls()); err != nil {
		return err
	}
	strict, err := d.Admin.Policies.Create(ctx, policy.New{CompanyID: d.Company.ID, CompanySlug: d.Company.Slug, Name: "Strict",
		Type:    policy.Platform,
		Changes: []policy.Change{{Setting: raced, Value: "BLOCK"}}}, policy.Author{Kind: string(access.System), ID: "drill", Name: "drill"})
	if err != nil {
		return err
	}
	devices, err := d.under(ctx, strict)
	if err != nil {
		return err
	}
	risky := settings.Controls
	risky.ApplyApproval = access.ApproveRisky
	if err := d.controls(ctx, risky); err != nil {
		return err
	}
	bridged, end, err := d.bridged(ctx, key, nil)
	if err != nil {
		return err
	}
	defer func() { _ = end() }()
	overREST, overMCP := d.row("race change and move, REST"), d.row("race change and move, MCP")
	for i, device := range devices {
		r := &race{drill: d, on: d.rest(key, nil), device: device, row: overREST}
		if i >= len(devices)/2 {
			r.on, r.row = bridged, overMCP
		}
		if err := r.run(ctx, strict, i); err != nil {
			return err
		}
	}
	d.result.Facts = append(d.result.Facts, fmt.Sprintf("%d races of a change and a move; allowed is one of the two", len(devices)))
	return d.controls(ctx, settings.Controls)
}

// racers is how many devices take part in races: each order on each surface.
const racers = 4

// under moves devices to a policy, while no person has to be asked.
func (d *drill) under(ctx context.Context, p policy.Policy) (devices []asset.Asset, err error) {
	_, all, err := d.look(ctx)
	for _, a := range all {
		if a.Device.Management == asset.Platform && len(devices) < racers {
			got, err := d.patient(ctx, d.rest(d.Key, nil), "change_device_policy", map[string]any{"assetId": a.ID, "policyId": p.ID}, "")
			if err != nil {
				return nil, err
			}
			if got.code != "" {
				continue // not every device takes it
			}
			devices = append(devices, a)
		}
	}
	return devices, err
}

// race is one race.
type race struct {
	*drill
	on     caller
	device asset.Asset
	row    *Attack
}

// call makes a call of the race that the vendor answers at once.
func (r *race) call(ctx context.Context, name string, args map[string]any) (answer, error) {
	got, err := r.patient(ctx, r.on, name, args, "")
	if err == nil && got.code != "" {
		err = fmt.Errorf("%s was refused: %s", name, got.detail)
	}
	return got, err
}

func (r *race) run(ctx context.Context, strict policy.Policy, n int) error {
	copied, err := r.call(ctx, "create_policy", map[string]any{"fromPolicyId": strict.PathName(), "displayName": "Copy " + strconv.Itoa(n)})
	if err != nil {
		return err
	}
	made, err := r.call(ctx, "apply_policy_proposal", map[string]any{"proposalId": copied.result["proposalId"]})
	if err != nil {
		return err
	}
	to := made.result["result"].(map[string]any)["policyId"]
	loose, err := r.call(ctx, "update_policy_settings",
		map[string]any{"policyId": to, "changes": []map[string]any{{"setting": raced, "value": "ALLOW"}}})
	if err != nil {
		return err
	}
	id, _ := loose.result["proposalId"].(string)
	change := func() (answer, error) {
		return r.patient(ctx, r.on, "apply_policy_proposal", map[string]any{"proposalId": id}, "")
	}
	move := func() (answer, error) {
		return r.patient(ctx, r.on, "change_device_policy", map[string]any{"assetId": r.device.ID, "policyId": to}, "")
	}
	slow, first, then := "policies.patch", change, move
	if n%2 == 1 {
		slow, first, then = "devices.patch", move, change
	}
	if err := r.Emulator.AddFault(emulator.Fault{Method: slow, DelayMS: vendorTakes}); err != nil {
		return err
	}
	type reply struct {
		answer
		err error
	}
	done := make(chan reply, 1)
	go func() {
		got, err := first()
		done <- reply{got, err}
	}()
	if err := r.begun(ctx, id, to); err != nil {
		return err
	}
	got, err := then()
	was := <-done
	for _, err := range []error{err, was.err} {
		if err != nil {
			return err
		}
	}
	r.row.note(was.answer)
	r.row.note(got)
	return r.judge(ctx, strict)
}

// begun waits until the first call of the race is recorded.
func (r *race) begun(ctx context.Context, id string, to any) error {
	for {
		p, err := r.db.PeekProposal(ctx, r.Company.ID, id)
		if err != nil || p.Status != proposal.Pending {
			return err
		}
		commands, err := r.history(ctx, r.device.ID)
		if err != nil {
			return err
		}
		for _, c := range commands {
			if c.Type == command.ChangePolicy && resource.Of(r.Company.Slug, resource.Policies, c.PolicyID) == to ||
				c.PolicyID == "" && c.Type == command.ChangePolicy {
				return nil
			}
		}
		if !wait.For(ctx, pollPause) {
			return ctx.Err()
		}
	}
}

// judge looks whether the device has a policy that differs from its own in what a person
// has to be asked about.
func (r *race) judge(ctx context.Context, own policy.Policy) error {
	a, err := r.db.Asset(ctx, r.Company.ID, r.device.ID)
	if err != nil {
		return err
	}
	now, err := r.db.Policy(ctx, r.Company.ID, a.Device.PolicyID)
	if err != nil {
		return err
	}
	difference, err := policy.Compare(now.Type, own.Revision(), now.Revision())
	if err != nil {
		return err
	}
	if difference.Risky() {
		r.harm("a change of high impact reached a device without a person")
	}
	return r.enough(ctx, func(context.Context) error { return nil })
}
