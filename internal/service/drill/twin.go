package drill

import (
	"context"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/wait"
)

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
	administrators := append([]*portalclient.Client{t.owner}, t.people...)
	for i, pair := range t.twins {
		victim := script.Must(t.db.Asset(ctx, t.Company.ID, pair.victim.ID)) // again: a merge may have changed the name
		path, fields := frame.DevicePath(victim.ID)+"/enroll", []string{"confirm", victim.Identification}
		if (minute+i)%2 == 1 {
			path, fields = frame.DevicePath(victim.ID)+"/merge", append(fields, "other", pair.own.ID)
		}
		row.note(outcome(administrators[(minute+i)%len(administrators)].Post(ctx, path, fields...)))
	}
}
