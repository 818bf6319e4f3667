package agent

import (
	"context"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// touch writes down, before anything changes, which settings a new policy changes: if
// the agent's process ends in between, they are set or taken back later. With it is
// what the guard restores.
func (a *Agent) touch(want map[string]string, g *guard) error {
	next := a.applied
	next.Touched = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.recorded(), slices.Collect(maps.Keys(want))))))
	if g != nil {
		next.Guard = g
	}
	if err := a.store.save(appliedFile, next); err != nil {
		return err
	}
	a.applied = next
	return nil
}

// mayHaveSet lists the settings that a policy set: as recorded or, after the
// record was damaged, all that there are.
func (a *Agent) mayHaveSet() []string {
	if a.applied.Lost {
		return a.options.Device.Settings()
	}
	return a.recorded()
}

// recorded lists the settings that a policy set, or began to set, or that could not be
// taken back.
func (a *Agent) recorded() []string {
	ids := slices.Concat(slices.Collect(maps.Keys(a.applied.Wanted)), a.applied.Touched)
	for _, s := range a.applied.Settings {
		if s.State == protocol.SettingFailed || s.State == protocol.RolledBack {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// halfApplied reports whether a process of the agent ended while it applied a policy.
func (a *Agent) halfApplied() bool { return len(a.applied.Touched) > 0 }

// stays ends a command that failed to give the device back, or to erase it, and may have
// taken back some of the policy before that: the policy is repaired at once. That it is to
// be repaired is on disk before the command has failed.
func (a *Agent) stays(ctx context.Context, e Entry, why error) error {
	if a.applied.Policy.ID != "" {
		a.applied.CheckAt = 0
		if err := a.store.save(appliedFile, a.applied); err != nil {
			return err
		}
	}
	if err := a.finish(e, protocol.Failed, why.Error()); err != nil || a.applied.Policy.ID == "" {
		return err
	}
	return a.repair(ctx, e.BootID)
}
