package database_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/asset"
)

// claimants is how many devices with the same serial number the test has. The first is the asset that is
// kept, into which the others are merged.
const claimants = 24

// attempt is one call to a replica: a wipe of the kept asset, or a merge of a claimant into it.
type attempt struct {
	claimant int   // the index of the device to merge; 0: a wipe
	epoch    int   // the enrollment that the wipe is for
	at       int64 // Unix milliseconds
}

// mergeState is the state of the model that the replicas' answers are compared with.
type mergeState struct {
	epoch  int                  // the kept asset's present enrollment
	merged [claimants]bool      // by claimant
	used   [claimants + 1]int64 // when the device of each enrollment was wiped or left, in Unix milliseconds; 0: never
}

// after returns the state after an attempt, and whether the attempt is allowed: a wipe must be for the present
// enrollment, a claimant is merged once, and a device counts once in a window of the limit.
func (s mergeState) after(in attempt) (mergeState, bool) {
	if in.claimant == 0 && in.epoch != s.epoch || in.claimant > 0 && s.merged[in.claimant] {
		return s, false
	}
	windowStart, inWindow := in.at-limitWidth.Milliseconds(), 0
	for _, at := range s.used {
		if at > windowStart {
			inWindow++
		}
	}
	if inWindow >= limitOf && s.used[s.epoch] <= windowStart {
		return s, false
	}
	s.used[s.epoch] = max(s.used[s.epoch], in.at)
	if in.claimant > 0 {
		s.merged[in.claimant] = true
		s.epoch++
	}
	return s, true
}

// mergeModel has two possible states after an attempt without an answer: it may have taken place.
func mergeModel() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{mergeState{epoch: 1}} },
		Step: func(state, input, output any) []any {
			next, done := state.(mergeState).after(input.(attempt))
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

// Two replicas wipe an asset, and merge others into it, which takes its device away, while they are killed.
// Their answers fit one order of all attempts, in which no window has more devices than the
// limit, and no wipe is for a device that has left.
func TestMergeAssets_AgainstWipesIsLinearizableWithKills(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(limitOf, int(limitWidth.Minutes()))
		k := &killing{fixture: f, devices: f.sameSerial(claimants, "SN-1")}
		by := *f.may()
		var kept asset.Asset
		read := func() { kept = f.asset(k.devices[0].ID) }
		read()
		k.rounds(10, func(caller int, random *rand.Rand) {
			in := attempt{epoch: kept.Device.Epoch + random.IntN(2), at: f.clock.Now().UnixMilli()} // the present or the next one
			o := wipeOrder{At: in.at, Company: f.company.ID, Asset: kept.ID, Epoch: in.epoch}
			if random.IntN(2) == 0 {
				in.claimant = 1 + random.IntN(claimants-1)
				o.Merges, o.By = k.devices[in.claimant].ID, by
			}
			k.ask(caller, random.IntN(2), o, in, func(got wipeAnswer, lost bool) any { return wiped{got.Done, lost} })
		}, func() { k.clock.Advance(2 * time.Minute); read() })
		k.linearizable(mergeModel())
	})
}
