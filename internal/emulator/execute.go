package emulator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
)

// carryOut makes a device that acts carry out a command and acknowledge it.
func (e *Emulator) carryOut(d *simulated, op *operation, out *outbox) {
	if !e.current(d, op) || !d.acts() {
		return
	}
	if !e.now().Before(op.Expires) {
		e.expire(d, op)
		return
	}
	op.Done = true
	e.touch()
	if d.Outcome == OutcomeError {
		op.fail(cmp.Or(d.ErrorCode, "UNKNOWN"))
		e.notifyCommand(d, op, out)
		return
	}
	after := e.execute(d, op)
	e.notifyCommand(d, op, out)
	if after != nil {
		after(out)
	}
}

// fail ends a command with an error of the device.
func (op *operation) fail(code string) {
	op.Command.ErrorCode = code
	op.Error = &am.Status{Code: 13, Message: "The device could not execute the command: " + code + "."}
}

// execute does to the device what a command asks. What it returns, if anything,
// happens after the acknowledgment.
func (e *Emulator) execute(d *simulated, op *operation) (after func(*outbox)) {
	if reason := commandSupport(d, op.Command.Type); reason == silent {
		return nil
	} else if reason != "" {
		op.fail(reason)
		return nil
	}
	switch op.Command.Type {
	case "REBOOT":
		d.power("SHUTDOWN", e.now())
		d.power("BOOT_COMPLETED", e.now())
	case "RESET_PASSWORD":
		e.resetPassword(d, op)
	case "CLEAR_APP_DATA":
		clearAppData(d, op)
	case "START_LOST_MODE":
		return e.startLostMode(d, op)
	case "STOP_LOST_MODE":
		return e.stopLostMode(d, op)
	case "WIPE", "RELINQUISH_OWNERSHIP":
		return func(out *outbox) { e.leave(d, out) }
	}
	return nil
}

// silent says that a command is acknowledged as if it were done, and is not.
const silent = "silent"

// commandSupport reports why a command does not work on a device: silently on a
// personally owned one, with an error code elsewhere.
func commandSupport(d *simulated, kind string) string {
	need := map[string]map[string]int{ // API levels by kind of device
		"REBOOT":               {fully: 24},
		"RELINQUISH_OWNERSHIP": {cope: 26},
		"START_LOST_MODE":      {fully: 30, cope: 33},
		"STOP_LOST_MODE":       {fully: 30, cope: 33},
	}[kind]
	if need == nil {
		return ""
	}
	level, works := need[d.kind()]
	switch {
	case works && d.APILevel >= level:
		return ""
	case works:
		return "API_LEVEL"
	case d.personal():
		return silent
	default:
		return "MANAGEMENT_MODE"
	}
}

func (e *Emulator) resetPassword(d *simulated, op *operation) {
	switch {
	case op.Password == passwordShortPIN && d.APILevel >= 34 && e.settings.Quirks.PasswordRules,
		op.Password == passwordNone && d.Applied.Password:
		op.fail("INVALID_VALUE")
	default:
		d.PasswordReset = e.now()
	}
}

// clearAppData answers for each package. The device's own policy app and the
// system's are protected.
func clearAppData(d *simulated, op *operation) {
	status := &am.ClearAppsDataStatus{Results: map[string]am.PerAppResult{}}
	for _, name := range op.Command.ClearAppsDataParams.PackageNames {
		result := "SUCCESS"
		switch {
		case d.APILevel < 28:
			result = "API_LEVEL"
		case name == "com.google.android.apps.work.clouddpc" || name == "android" || strings.HasPrefix(name, "com.android."):
			result = "APP_PROTECTED"
		case !slices.Contains(d.Packages, name):
			result = "APP_NOT_FOUND"
		}
		status.Results[name] = am.PerAppResult{ClearingResult: result}
	}
	op.Command.ClearAppsDataStatus = status
}

// leave ends the management of a device that has acknowledged its wipe: it sends
// its last report, and the platform forgets it.
func (e *Emulator) leave(d *simulated, out *outbox) {
	d.Deleted = true
	e.report(d, out)
	e.forget(d)
}

// lostModePause is how long a device stays out of lost mode after the
// administrator reset its password, or its user ended lost mode.
const lostModePause = 12 * time.Hour

func (e *Emulator) startLostMode(d *simulated, op *operation) func(*outbox) {
	status := &am.StartLostModeStatus{Status: "SUCCESS"}
	op.Command.StartLostModeStatus = status
	recently := func(t time.Time) bool { return !t.IsZero() && e.now().Sub(t) < lostModePause }
	switch {
	case d.lost():
		status.Status = "ALREADY_IN_LOST_MODE"
	case recently(d.PasswordReset) && e.settings.Quirks.PasswordRules:
		status.Status = "RESET_PASSWORD_RECENTLY"
	case recently(d.LostModeExit):
		status.Status = "USER_EXIT_LOST_MODE_RECENTLY"
	default:
		d.LostSince = e.now()
		e.scheduleLostLocation(d, d.LostSince)
		return func(out *outbox) { e.report(d, out) }
	}
	return nil
}

func (e *Emulator) stopLostMode(d *simulated, op *operation) func(*outbox) {
	if !d.lost() {
		op.Command.StopLostModeStatus = &am.StopLostModeStatus{Status: "NOT_IN_LOST_MODE"}
		return nil
	}
	op.Command.StopLostModeStatus = &am.StopLostModeStatus{Status: "SUCCESS"}
	d.LostSince = time.Time{}
	return func(out *outbox) { e.report(d, out) }
}

// A lost device is loud first, then reports where it is.
const (
	lostAlert    = 5 * time.Minute
	lostInterval = time.Minute
)

// scheduleLostLocation lets a lost device report its location until it is found.
func (e *Emulator) scheduleLostLocation(d *simulated, since time.Time) {
	next := since.Add(lostAlert)
	for !next.After(e.now()) {
		next = next.Add(lostInterval)
	}
	e.at(next, func() {
		if e.world.byDevice[d.ID] != d || d.Deleted || !d.LostSince.Equal(since) {
			return
		}
		if d.Online {
			e.notify(d.owner, "USAGE_LOGS", d.lostLocation(e.now()), &outbox{})
		}
		e.scheduleLostLocation(d, since)
	})
}

func (d *simulated) lostLocation(now time.Time) *am.BatchUsageLogEvents {
	return d.usageLog(now, &am.UsageLogEvent{EventType: "LOST_MODE_LOCATION",
		LostModeLocationEvent: &am.LostModeLocationEvent{BatteryLevel: int64(d.Battery),
			Location: &am.Location{Latitude: d.Latitude, Longitude: d.Longitude}}})
}

// usageLog is a log with one event, which happens now.
func (d *simulated) usageLog(now time.Time, e *am.UsageLogEvent) *am.BatchUsageLogEvents {
	e.EventId, e.EventTime = now.UnixMilli(), timestamp(now)
	return &am.BatchUsageLogEvents{Device: d.name(), User: d.owner.name() + "/users/" + d.UserID, RetrievalTime: timestamp(now),
		UsageLogEvents: []*am.UsageLogEvent{e}}
}
