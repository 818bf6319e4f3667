package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// Types of commands that the agent carries out itself. All others are the device's.
const (
	typeStatus       = "STATUS_REPORT"
	typeLocation     = "LOCATION_UPDATE"
	typeSyncPolicy   = "SYNC_POLICY"
	typeChangePolicy = "CHANGE_POLICY"
	typeUploadLog    = "UPLOAD_LOG"
)

// needsService reports the commands that need the service again.
func needsService(commandType string) bool {
	return commandType == typeSyncPolicy || commandType == typeChangePolicy || commandType == typeUploadLog
}

// asksFirst reports the commands that end the relation: the service must know
// that the device has them before they run, because nothing comes after.
func asksFirst(commandType string) bool {
	return commandType == Erase || commandType == LetGo
}

// powers reports the commands whose proof is another start of the machine.
func powers(commandType string) bool { return commandType == Restart || commandType == PowerOff }

// reports reports the commands whose result is what the next check-in carries.
func reports(commandType string) bool {
	return commandType == typeStatus || commandType == typeLocation
}

// downTime is how long after a restart was ordered the machine may take to go
// down. What is begun in between would be lost, though it reads as done.
const downTime = time.Minute

// goingDown reports whether a restart is under way since the start of the machine
// with the boot id, or the device is to be erased: then nothing else is begun.
func (a *Agent) goingDown(boot string) bool {
	return slices.ContainsFunc(a.journal.Entries(Started), func(e Entry) bool { return e.Command.Type == Erase || a.restarts(e, boot) })
}

func (a *Agent) restarts(e Entry, boot string) bool {
	since := a.link.serviceTime().UnixMilli() - e.At
	return powers(e.Command.Type) && e.BootID == boot && since >= 0 && since < downTime.Milliseconds()
}

// looksAgain is when to look again whether a command that is STARTED has shown its effect.
func (a *Agent) looksAgain(e Entry) time.Duration {
	switch {
	case e.Command.Type == Erase:
		return eraseEvery
	case a.restarts(e, e.BootID):
		return restartWait
	}
	return downTime
}

// recover settles what a crash, or a restart that was ordered, left STARTED.
// At the agent's start whatever was interrupted runs again; later on only the
// machine's own restart settles anything.
func (a *Agent) recover(ctx context.Context) error {
	boot, err := a.options.Device.BootID(ctx)
	if err != nil {
		return err
	}
	if err := a.journal.settle(); err != nil { // it holds back nothing else
		a.options.Log.WarnContext(ctx, "cannot write down what became of commands", "error", err)
	}
	if err := a.resumeAll(ctx, boot); err != nil {
		if ctx.Err() != nil {
			return err
		}
		a.options.Log.WarnContext(ctx, "cannot resume commands", "error", err) // it holds back no check-in
	}
	if err := a.restore(ctx, boot); err != nil {
		if ctx.Err() != nil {
			return err
		}
		a.options.Log.WarnContext(ctx, "cannot restore what the policy set", "error", err) // it holds back nothing else
	}
	return a.execute(ctx, false)
}

// resumeAll settles what is STARTED. At the agent's start it makes the reports again that a process before
// this one made and may not have delivered: they were in its memory, while the journal says that the
// command is done.
func (a *Agent) resumeAll(ctx context.Context, boot string) error {
	for _, e := range a.journal.Entries(Started) {
		if err := a.resume(e, boot); err != nil {
			return err
		}
	}
	if a.recovered {
		return nil
	}
	for _, e := range a.journal.Entries(Done) {
		if reports(e.Command.Type) && e.Result == protocol.Done {
			if err := a.run(ctx, e, boot); err != nil {
				return err
			}
		}
	}
	a.recovered = true
	return nil
}

// resume settles one command that was STARTED.
func (a *Agent) resume(e Entry, boot string) error {
	power := powers(e.Command.Type)
	switch {
	case power && e.BootID != boot:
		detail := "the device has restarted"
		if e.Command.Type == PowerOff {
			detail = "the device was switched off, and is on again"
		}
		return a.finish(e, protocol.Done, detail)
	case power && a.late(e.Command):
		return a.finish(e, protocol.Failed, "interrupted, and its time has run out")
	case a.recovered, e.Command.Type == Erase:
		return nil // it is under way (see eraseAgain)
	}
	// Every other command may run again, and so may a restart that never came:
	// the effect is the same.
	e.Stage, e.Accepted = Received, true
	return a.journal.Write(e)
}

// late reports whether a command's deadline has surely passed. The service does
// not correct a clock that is less than MaxSkew off, so the agent allows as much; and
// the service itself hands out nothing that has expired.
func (a *Agent) late(c protocol.Command) bool {
	return c.Deadline != 0 && a.link.serviceTime().UnixMilli() > c.Deadline+protocol.MaxSkew
}

// execute runs what was received, oldest first; what needs the service again only
// where it is in touch. What the service is not there for holds back nothing else.
func (a *Agent) execute(ctx context.Context, inTouch bool) error {
	var late error
	for _, e := range a.journal.Entries(Received) {
		boot, err := a.options.Device.BootID(ctx)
		if err != nil {
			return err
		}
		if a.goingDown(boot) {
			return late
		}
		if asksFirst(e.Command.Type) && !e.Accepted {
			continue // the service does not know yet that we have it
		}
		if !inTouch && needsService(e.Command.Type) {
			continue
		}
		if a.late(e.Command) {
			if a.clockUnverified {
				continue // the check-in that follows corrects the clock first
			}
			if err := a.finish(e, protocol.Failed, "expired before the device could run it"); err != nil {
				return err
			}
			continue
		}
		err = a.run(ctx, e, boot)
		if away := (unreached{}); errors.As(err, &away) {
			late, err = err, nil
		}
		if err != nil {
			return err
		}
	}
	return late
}

// run carries out one command, with its start and its end on disk.
func (a *Agent) run(ctx context.Context, e Entry, boot string) error {
	e.Stage, e.BootID, e.At = Started, boot, a.link.serviceTime().UnixMilli()
	a.crash("before started")
	if err := a.journal.Write(e); err != nil {
		return err
	}
	a.crash("after started")
	outcome, err := a.perform(ctx, e.Command)
	a.crash("before done")
	var away unreached
	switch {
	case errors.As(err, &away): // it needs the service and is not done: again, once that is there
		e.Stage, e.Accepted = Received, true
		return errors.Join(err, a.journal.Write(e))
	case err != nil && ctx.Err() != nil: // the agent was told to end, and the command with it: see resume
		a.recovered = false
		return ctx.Err()
	case errors.Is(err, ErrOrdered):
		return nil // proved by the device's silence
	case powers(e.Command.Type) && errors.Is(err, context.DeadlineExceeded):
		return nil // begun, like one that was answered: proved by the next start
	case err != nil && asksFirst(e.Command.Type):
		return a.stays(ctx, e, err)
	case err != nil:
		return a.finish(e, protocol.Failed, err.Error())
	case powers(e.Command.Type):
		return nil // proved by the next start
	}
	return a.finish(e, protocol.Done, outcome)
}

func (a *Agent) finish(e Entry, result protocol.AckState, outcome string) error {
	e.Stage, e.Result, e.Outcome, e.At = Done, result, oneLine(outcome), a.link.serviceTime().UnixMilli()
	a.options.Log.Info("command ended", "type", e.Command.Type, "id", oneLine(e.Command.ID), "result", result, "outcome", e.Outcome)
	return a.journal.Write(e)
}

// maxOutcome is how long a line about a command's end may be, in UTF-16 code units.
const maxOutcome = 1000

// oneLine is a text as one line of UTF-8: what breaks lines, controls or is no
// character becomes a space, and it ends after maxOutcome.
func oneLine(text string) string {
	var line strings.Builder
	units := 0
	for i, c := range text {
		if units >= maxOutcome {
			break
		}
		if unicode.IsControl(c) || c == 0x2028 || c == 0x2029 || c == utf8.RuneError &&
			!strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			c = ' '
		}
		line.WriteRune(c)
		units += utf16.RuneLen(c)
	}
	return strings.Trim(line.String(), " ")
}

// perform does what the command says.
func (a *Agent) perform(ctx context.Context, c protocol.Command) (string, error) {
	if a.link.companion() && !forCompanions(c.Type) {
		return "", fmt.Errorf("%w: a companion has no power over its device", ErrUnsupported)
	}
	switch c.Type {
	case typeStatus, typeLocation:
		return a.collect(ctx, c.Type == typeLocation)
	case typeSyncPolicy, typeChangePolicy:
		return a.refollow(ctx)
	case typeUploadLog:
		return a.uploadLog(ctx, c.ID)
	case LetGo:
		return "released", a.release(ctx)
	}
	return a.options.Device.Do(ctx, Action{Type: c.Type, CommandID: c.ID, Args: c.Args})
}

// collect makes a report, or takes a fix, for the next check-in.
func (a *Agent) collect(ctx context.Context, location bool) (string, error) {
	report, err := a.options.Device.Report(ctx, Reporting{Policy: a.applied.Wanted, Location: location})
	if err != nil {
		return "", err
	}
	if location {
		if report.Location == nil {
			return "", ErrNoFix
		}
		now, own := a.link.serviceTime(), a.options.Now()
		a.location = report.Location
		a.location.At += now.UnixMilli() - own.UnixMilli()
		if age := now.Sub(time.UnixMilli(a.location.At)).Truncate(time.Second); a.location.Stale {
			return fmt.Sprintf("last known location reported, %s old", age), nil
		}
		return "location reported", nil
	}
	a.report = &protocol.StatusReport{At: a.link.serviceTime().UnixMilli(), Values: a.withTroubles(report.Values),
		Specifications: report.Specifications}
	return "status reported", nil
}

// withTroubles adds what the service is to hear of the agent itself to a report.
func (a *Agent) withTroubles(values json.RawMessage) json.RawMessage {
	members := map[string]any{}
	if len(a.troubles) == 0 || json.Unmarshal(values, &members) != nil {
		return values
	}
	members["agentErrors"] = a.troubles
	text, _ := json.Marshal(members) // what was read can be written
	return text
}
