package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

const (
	// driftInterval is how often the device's state is compared with its policy.
	driftInterval = 6 * time.Hour
	// guardTime is how long after a change of connectivity the device may be out
	// of touch before the change is taken back.
	guardTime = 5 * time.Minute
	// settleTime is how long such a change may take: a check-in that begins before tells nothing.
	settleTime = 20 * time.Second
)

// connectivity are the settings that can cut a device off.
var connectivity = [...]string{"WIFI_STATE", "CONFIGURE_WIFI", "AIRPLANE_MODE", "VPN_CONFIGURATION", "MINIMUM_WIFI_SECURITY"} //nolint:gochecknoglobals // a table that is never written to

// follow brings the device to the policy that the answer to the request with the
// sequence number gives it.
func (a *Agent) follow(ctx context.Context, answer protocol.CheckinResponse, sequence int64, force bool) error {
	if a.link.companion() {
		return nil
	}
	if answer.Assignment == nil {
		if force {
			return errors.New("the service did not sign which policy this device is to have")
		}
		a.options.Log.WarnContext(ctx, "the service did not sign which policy this device is to have: it keeps what it has")
		return nil
	}
	assigned, err := a.link.assignment(*answer.Assignment, sequence)
	if err != nil {
		return err
	}
	if assigned.PolicyID == a.applied.Policy.ID && assigned.Version == a.applied.Policy.Version && !force && !a.halfApplied() {
		return nil
	}
	policy, err := a.fetch(ctx, assigned)
	if err != nil {
		return err
	}
	return a.converge(ctx, protocol.PolicyRef{ID: assigned.PolicyID, Version: assigned.Version}, policy.Settings)
}

// assignment opens the assignment in the answer to the request with the sequence
// number.
func (l *link) assignment(sealed protocol.Envelope, sequence int64) (protocol.Assignment, error) {
	var assigned protocol.Assignment
	if err := l.open(sealed, protocol.KindAssignment, &assigned); err != nil {
		return assigned, fmt.Errorf("cannot trust the assignment of a policy: %w", err)
	}
	if assigned.DeviceID != l.deviceID() || assigned.Number != sequence || assigned.PolicyID == "" {
		return assigned, errors.New("the assignment of a policy is for another device or another request")
	}
	l.keepTime(assigned.Time)
	return assigned, nil
}

// keepTime keeps a time, in Unix milliseconds, that the service has signed, if it is
// much later than the one that is kept: in memory alone where the disk is full, because
// that holds back nothing that the service signed.
func (l *link) keepTime(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at-l.id.Latest <= latestEvery.Milliseconds() {
		return
	}
	next := l.id
	next.Latest = at
	if l.save(next) != nil {
		l.id.Latest = at
	}
}

// latestEvery is how far the latest signed time may run ahead of what is on disk.
const latestEvery = 24 * time.Hour

// refollow asks for the assigned policy and applies it, also if it is the one
// that the device has.
func (a *Agent) refollow(ctx context.Context) (string, error) {
	var answer protocol.CheckinResponse
	boot, err := a.options.Device.BootID(ctx)
	if err != nil {
		return "", err
	}
	sequence, err := a.link.call(ctx, "/checkin", protocol.CheckinRequest{AgentVersion: a.options.Version, BootID: boot,
		KeyID: a.link.newestKey(), Build: a.updates.build()}, &answer)
	if err != nil {
		return "", err
	}
	if err := a.accept(ctx, answer); err != nil {
		return "", err
	}
	if err := a.follow(ctx, answer, sequence, true); err != nil {
		return "", err
	}
	return fmt.Sprintf("policy version %d applied", a.applied.Policy.Version), nil
}

// fetch gets a policy's document and checks that it is the one that was named.
func (a *Agent) fetch(ctx context.Context, want protocol.Assignment) (protocol.Policy, error) {
	var p protocol.Policy
	var sealed protocol.Envelope
	path := "/policy/" + url.PathEscape(want.PolicyID) + "?v=" + strconv.Itoa(want.Version)
	if _, err := a.link.exchange(ctx, http.MethodGet, path, nil, &sealed); err != nil {
		return p, err
	}
	if err := a.link.open(sealed, protocol.KindPolicy, &p); err != nil {
		return p, err
	}
	if p.ID != want.PolicyID || p.Version < want.Version {
		return p, fmt.Errorf("asked for policy %s version %d, got %s version %d", want.PolicyID, want.Version, p.ID, p.Version)
	}
	if p.CompanyID != want.CompanyID {
		return p, fmt.Errorf("policy %s is of another company", p.ID)
	}
	return p, nil
}

// converge applies every setting, takes back what only the policy before had,
// and reads each back. It may be repeated at any time.
func (a *Agent) converge(ctx context.Context, ref protocol.PolicyRef, want map[string]string) error {
	boot, err := a.options.Device.BootID(ctx)
	if err != nil {
		return err
	}
	unread := map[string]protocol.SettingReport{}
	next := applied{Policy: ref, Wanted: want, Guard: a.watch(ctx, boot, want, unread)}
	before := a.mayHaveSet()
	if err := a.touch(want, next.Guard); err != nil {
		return err
	}
	a.crash("before apply")
	for _, id := range before {
		_, kept := want[id]
		if kept && !contradicts(want, id) {
			continue
		}
		// What contradicts goes before the setting that it contradicts, and is reported
		// below. What was taken back without trouble is not worth a word.
		if back := a.apply(ctx, id, ""); !kept && back.State == protocol.SettingFailed {
			next.Settings = append(next.Settings, back)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		report, failed := unread[id]
		if !failed {
			report = a.applyOf(ctx, want, id)
		}
		next.Settings = append(next.Settings, report)
	}
	if err := ctx.Err(); err != nil {
		return err // the agent was told to end: what did not come about has not failed
	}
	next.BootID, next.CheckAt = boot, a.after(driftInterval)
	if next.Guard != nil {
		next.Guard.Until = a.after(guardTime)
	}
	a.applied = next
	a.crash("before applied")
	return a.store.save(appliedFile, a.applied)
}

// contradicts reports whether a setting of a policy undoes another one of it. On
// Android, to block LOCATION_SHARING switches location off.
func contradicts(policy map[string]string, id string) bool {
	return id == "LOCATION_SHARING" && policy[id] == "BLOCK" && policy["LOCATION_MODE"] == "ENFORCED"
}

// applyOf sets one setting of a policy. One that contradicts another is refused,
// and taken back where it was set.
func (a *Agent) applyOf(ctx context.Context, policy map[string]string, id string) protocol.SettingReport {
	if !contradicts(policy, id) {
		return a.apply(ctx, id, policy[id])
	}
	back := a.apply(ctx, id, "")
	if back.State == protocol.Applied {
		back.State, back.Detail = protocol.Unsupported,
			ErrUnsupported.Error()+": BLOCK switches location off, and LOCATION_MODE is ENFORCED"
	}
	return back
}

// apply sets one setting and reads it back.
func (a *Agent) apply(ctx context.Context, id, value string) protocol.SettingReport {
	report := protocol.SettingReport{ID: id, State: protocol.Applied}
	if steersAgent(id) {
		return report
	}
	if err := a.options.Device.Apply(ctx, id, value); err != nil {
		report.State, report.Detail = stateOf(err), err.Error()
		return report
	}
	if value == "" {
		return report // what the device shows now is its user's
	}
	got, err := a.options.Device.Read(ctx, id)
	switch {
	case err != nil:
		report.State, report.Detail = stateOf(err), err.Error()
	case !settled(value, got):
		report.State, report.Detail = protocol.Pending, "the device does not show it yet"
	}
	return report
}

// steersAgent reports the settings that say what the agent itself may tell: the
// device below has no part in them.
func steersAgent(id string) bool {
	return strings.HasPrefix(id, "REPORT_") || id == "APPLICATION_REPORT_LEVEL"
}

// settled reports whether what a device shows is what was asked for. A device
// does not know whether something was allowed or never forbidden, and what is
// the user's to choose may read as anything.
func settled(want, got string) bool {
	if want == "USER_CHOICE" || want == "UNSPECIFIED" {
		return true
	}
	return canonical(want) == canonical(got)
}

// canonical is the one value for those that a device cannot tell apart.
func canonical(value string) string {
	switch value {
	case "ALLOW", "PROMPT", "BLACKLIST", "OPEN_NETWORK", "USER_CHOICE", "UNSPECIFIED":
		return ""
	case "ALLOW_INSTALL_IN_PERSONAL_PROFILE_ONLY":
		return "DISALLOW_INSTALL" // there is no personal profile
	}
	return value
}

func stateOf(err error) protocol.SettingState {
	switch {
	case errors.Is(err, ErrUnsupported):
		return protocol.Unsupported
	case errors.Is(err, ErrNotApplicable):
		return protocol.NotApplicable
	}
	return protocol.SettingFailed
}

func refusesForGood(err error) bool {
	return errors.Is(err, ErrUnsupported) || errors.Is(err, ErrNotApplicable)
}

// watch returns what to restore if the change cuts the device off; nil if no
// connectivity changes. It reads what a policy sets or may have set: nothing else changes.
// What cannot be read now could not be restored: it goes to unread, as failed.
func (a *Agent) watch(ctx context.Context, boot string, want map[string]string, unread map[string]protocol.SettingReport) *guard {
	before := map[string]string{}
	changes := false
	set := a.mayHaveSet()
	for _, id := range connectivity {
		if _, wanted := want[id]; !wanted && !slices.Contains(set, id) {
			continue
		}
		switch now, err := a.options.Device.Read(ctx, id); {
		case err == nil:
			before[id] = now
			changes = changes || canonical(now) != canonical(want[id])
		case !refusesForGood(err):
			unread[id] = protocol.SettingReport{ID: id, State: protocol.SettingFailed,
				Detail: "not set, because what the device has cannot be read: " + err.Error()}
		}
	}
	if g := a.applied.Guard; g != nil { // it still waits: what was before it is restored
		maps.Copy(before, g.Before)
		changes = true
	}
	if !changes {
		return nil
	}
	return &guard{BootID: boot, Until: a.after(guardTime), Before: before}
}

// after is a moment to come, by the clock of this start of the machine, in milliseconds.
func (a *Agent) after(d time.Duration) int64 { return (a.options.Elapsed() + d).Milliseconds() }

// within reports whether a moment is still to come at another, and is not farther away than it can
// have been set.
func within(at, until int64, most time.Duration) bool {
	left := until - at
	return left > 0 && left <= most.Milliseconds()
}

// holds reports whether the answer to a check-in that began at a moment proves that a change
// of connectivity left the device in touch. An agent that does not run asks once.
func (a *Agent) holds(began int64) bool {
	g := a.applied.Guard
	return g != nil && (!a.gate.on || began >= g.tells())
}

// guardIsOver reports whether a guard's time is over at a moment. It gives a guard its whole time again
// after a restart of the machine, which sets its clock back.
func (a *Agent) guardIsOver(boot string, at int64) (bool, error) {
	g := a.applied.Guard
	if g == nil {
		return false, nil
	}
	if g.BootID != boot {
		g.BootID, g.Until = boot, a.after(guardTime)
		return false, a.store.save(appliedFile, a.applied)
	}
	return !within(at, g.Until, guardTime), nil
}

// unanswered takes connectivity back that cut the device off, as a check-in failed that began after the
// guard's time.
func (a *Agent) unanswered(ctx context.Context, boot string, began int64) error {
	if over, err := a.guardIsOver(boot, a.after(0)); !over || ctx.Err() != nil {
		return err
	}
	a.Hint() // the next check-in decides, or is to tell the service
	if over, err := a.guardIsOver(boot, began); !over {
		return err
	}
	return a.rollBack(ctx)
}

// rollBack takes connectivity back that cut the device off. What the policy before had set, and this
// one has not, is set again, too: it is recorded, so that the next policy and the end of the enrollment lift it.
func (a *Agent) rollBack(ctx context.Context) error {
	before := a.applied.Guard.Before
	for id, value := range before {
		_ = a.apply(ctx, id, value) // one that cannot be restored holds back no other
	}
	if err := ctx.Err(); err != nil {
		return err // the guard stays, and is over at the next start, too
	}
	a.applied.Guard, a.applied.Reported = nil, false
	missing := maps.Clone(before)
	maps.DeleteFunc(missing, func(_, value string) bool { return value == "" })
	for i, s := range a.applied.Settings {
		delete(missing, s.ID)
		if slices.Contains(connectivity[:], s.ID) {
			a.applied.Settings[i].State, a.applied.Settings[i].Detail = protocol.RolledBack, cutOff
		}
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		a.applied.Settings = append(a.applied.Settings, protocol.SettingReport{ID: id, State: protocol.RolledBack, Detail: cutOff})
	}
	return a.store.save(appliedFile, a.applied)
}

// cutOff is the detail of a setting that was rolled back.
const cutOff = "it cut the device off"

// restore repairs drift. In an agent that does not run, it takes connectivity back that cut the device
// off; in one that runs, the check-in that follows decides that, because the device may have slept
// since: see unanswered.
func (a *Agent) restore(ctx context.Context, boot string) error {
	over, err := a.guardIsOver(boot, a.after(0))
	if err != nil {
		return err
	}
	if over && !a.gate.on {
		return a.rollBack(ctx)
	}
	if a.applied.Policy.ID == "" || boot == a.applied.BootID && within(a.after(0), a.applied.CheckAt, driftInterval) {
		return nil
	}
	return a.repair(ctx, boot)
}

// repair compares every setting with the device and applies those that moved. Where one of connectivity failed, it
// applies the policy again, with a guard.
func (a *Agent) repair(ctx context.Context, boot string) error {
	next := a.applied
	next.Settings = slices.Clone(next.Settings)
	for i, s := range next.Settings {
		if s.State == protocol.RolledBack || s.State == protocol.Unsupported || s.State == protocol.NotApplicable || steersAgent(s.ID) {
			continue
		}
		if s.State == protocol.SettingFailed && slices.Contains(connectivity[:], s.ID) {
			return a.converge(ctx, a.applied.Policy, a.applied.Wanted)
		}
		want := a.applied.Wanted[s.ID]
		if got, err := a.options.Device.Read(ctx, s.ID); err == nil && settled(want, got) && s.State == protocol.Applied {
			continue
		}
		if again := a.applyOf(ctx, a.applied.Wanted, s.ID); again != s {
			next.Settings[i], next.Reported = again, false
		}
	}
	if err := ctx.Err(); err != nil {
		return err // as in converge
	}
	next.BootID, next.CheckAt = boot, a.after(driftInterval)
	a.applied = next
	return a.store.save(appliedFile, a.applied)
}
