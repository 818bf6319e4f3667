package database_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/asset"
)

// claimantsOf is how many devices claim the serial number of the asset that all become.
const claimantsOf = 24

// replaced is an attempt to wipe the asset in an enrollment, or to give it the device of a
// claimant: 0 is the wipe.
type replaced struct {
	epoch, claimant int
	at              int64
}

// enrollments is the present one of the asset, when each got its last command or left, and
// which claimants are used up.
type enrollments struct {
	now  int
	used [claimantsOf]bool
	at   [claimantsOf + 1]int64
}

func (e enrollments) after(in replaced) (enrollments, bool) {
	if in.claimant == 0 && in.epoch != e.now || in.claimant > 0 && e.used[in.claimant] {
		return e, false
	}
	since, counting := in.at-limitWidth.Milliseconds(), 0
	for _, at := range e.at {
		if at > since {
			counting++
		}
	}
	if counting >= limitOf && e.at[e.now] <= since {
		return e, false
	}
	e.at[e.now] = max(e.at[e.now], in.at)
	if in.claimant > 0 {
		e.used[in.claimant] = true
		e.now++
	}
	return e, true
}

func replacements() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{enrollments{now: 1}} },
		Step: func(state, input, output any) []any {
			next, done := state.(enrollments).after(input.(replaced))
			switch got := output.(wiped); {
			case got.lost:
				return []any{state, next}
			case got.begun == done:
				return []any{next}
			default:
				return nil
			}
		},
	}).ToModel()
}

// Wipes of an asset and merges into it, by which its device leaves, are in one order on two
// replicas that are killed: no window holds more devices than the limit, and no wipe
// reaches a device that has left.
func TestMergeAssets_AgainstWipesIsLinearizableWithKills(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(limitOf, int(limitWidth.Minutes()))
		k := &killing{fixture: f, devices: f.sameSerial(claimantsOf, "SN-1")}
		by := *f.may()
		var kept asset.Asset
		read := func() { kept = f.asset(k.devices[0].ID) }
		read()
		k.rounds(10, func(caller int, random *rand.Rand) {
			in := replaced{epoch: kept.Device.Epoch + random.IntN(2), at: f.clock.Now().UnixMilli()}
			o := wipeOrder{At: in.at, Company: f.company.ID, Asset: kept.ID, Epoch: in.epoch}
			if random.IntN(2) == 0 {
				in.claimant = 1 + random.IntN(claimantsOf-1)
				o.Merges, o.By = k.devices[in.claimant].ID, by
			}
			k.ask(caller, random.IntN(2), o, in, func(got wipeAnswer, lost bool) any { return wiped{got.Done, lost} })
		}, func() { k.clock.Advance(2 * time.Minute); read() })
		k.linearizable(replacements())
	})
}
