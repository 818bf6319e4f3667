package drill

import (
	"context"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/wait"
)

// twin is a machine of the attacker with the serial number of a device of the company.
type twin struct{ victim, own asset.Asset }

// makeTwins enrolls a machine for each device with our own agent, so that the two assets
// can be merged.
func (t *attacker) makeTwins(ctx context.Context) error {
	row := t.row("enroll twins of devices")
	under, err := t.policyNamed(ctx, "Kiosk")
	if err != nil {
		return err
	}
	_, before, err := t.look(ctx)
	if err != nil {
		return err
	}
	for i, victim := range before {
		if victim.Device.Management != asset.Agent {
			continue
		}
		device := simulated.New(simulated.Default(victim.Specifications["serialNumber"]), t.clock.now)
		if err := t.live(ctx, "twin-"+strconv.Itoa(i), device, under); err != nil {
			return err
		}
		own, err := t.twinOf(ctx, victim)
		if err != nil {
			return err
		}
		row.note(answer{})
		t.twins = append(t.twins, twin{victim, own})
	}
	return nil
}

// pollPause is how long the drill waits before it looks again.
const pollPause = 20 * time.Millisecond

// twinOf waits for the asset that has the serial number of another.
func (t *attacker) twinOf(ctx context.Context, victim asset.Asset) (asset.Asset, error) {
	for {
		_, all, err := t.look(ctx)
		if err != nil {
			return asset.Asset{}, err
		}
		for _, a := range all {
			if a.ID != victim.ID && a.Specifications["serialNumber"] == victim.Specifications["serialNumber"] {
				return a, nil
			}
		}
		if !wait.For(ctx, pollPause) {
			return asset.Asset{}, ctx.Err()
		}
	}
}

// replace makes codes with which another machine becomes a device of the company, in one
// minute, and merges the attacker's machines into the devices, in the next.
func (t *attacker) replace(ctx context.Context, row *Attack, minute int) error {
	all := append([]*portalclient.Client{t.owner}, t.people...)
	for i, pair := range t.twins {
		now, err := t.db.Asset(ctx, t.Company.ID, pair.victim.ID) // a merge may have renamed it
		if err != nil {
			return err
		}
		path, fields := frame.DevicePath(now.ID)+"/enroll", []string{"confirm", now.Identification}
		if (minute+i)%2 == 1 {
			path, fields = frame.DevicePath(now.ID)+"/merge", append(fields, "other", pair.own.ID)
		}
		p, err := all[(minute+i)%len(all)].Post(ctx, path, fields...)
		if err != nil {
			return err
		}
		row.note(outcome(p))
	}
	return nil
}
