package agentserver_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

// A serial number is printed on the box: a newcomer that claims the one of a
// live device is a device of its own, and the live one notices nothing.
func TestEnroll_SerialNumberOfLiveDevice(t *testing.T) {
	w := newWorld(t)
	victim := w.enrollAs(protocol.Ed25519, "SN-1", w.token())
	victim.mustCheckIn()
	rogue := w.enrollAs(protocol.Ed25519, "SN-1", w.token())
	rogue.mustCheckIn()
	if rogue.assetID == victim.assetID {
		t.Fatal("the newcomer became the live device's asset")
	}
	victim.mustCheckIn()
	if got := victim.device.State(); got.Settings["CAMERA"] != "BLOCK" || got.Released {
		t.Errorf("the live device is %+v", got)
	}
	if a := victim.asset(); a.Status != asset.Active {
		t.Errorf("the live device's asset is %s", a.Status)
	}
}

// A device that was released may come back by its serial number.
func TestEnroll_SerialNumberOfReleasedDevice(t *testing.T) {
	w := newWorld(t)
	p := w.enrollAs(protocol.Ed25519, "SN-1", w.token())
	p.mustCheckIn()
	if err := p.agent.Unenroll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := w.enrollAs(protocol.Ed25519, "SN-1", w.token()); again.assetID != p.assetID {
		t.Error("the device became another asset")
	}
}

// A device that is to be erased cannot leave instead.
func TestUnenroll_WithOpenWipe(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.WipeCompanyData, nil)
	if err := p.agent.Unenroll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := p.device.State(); !s.Wiped {
		t.Errorf("the device is %+v", s)
	}
	if c := p.latest(); c.State != command.Sent {
		t.Errorf("the wipe is %s %q: it is not known yet that the device is erased", c.State, c.Outcome)
	}
}

// A release that was carried out while a wipe was open erased nothing, and the
// history says so; the device is told to erase itself if it comes back.
func TestRelinquish_WithOpenWipe(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.RelinquishOwnership, nil)
	p.options.Crash = func(at string) {
		if at == "before done" {
			panic(errCrash)
		}
	}
	p.start()
	func() {
		defer func() { _ = recover() }()
		_ = p.checkIn()
	}()
	released := p.latest()
	p.send(command.WipeCompanyData, nil)
	wipe := p.latest()
	if _, err := w.link.Hear(t.Context(), w.device(p), protocol.CheckinRequest{
		Acks: []protocol.Ack{{CommandID: released.ID, State: protocol.Done, At: time.Now().UnixMilli()}}}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]command.State{released.ID: command.Succeeded, wipe.ID: command.Failed} {
		t.Run(id, func(t *testing.T) {
			c, err := w.db.Command(t.Context(), id)
			if err != nil || c.State != want || want == command.Failed && c.Outcome != command.ReleasedWithoutErasing {
				t.Errorf("%s is %s %q, want %s, %v", c.Type, c.State, c.Outcome, want, err)
			}
		})
	}
	p.options.Crash = nil
	p.start()
	if err := p.checkIn(); !errors.Is(err, agent.ErrEnded) || !p.device.State().Wiped {
		t.Errorf("the device came back: %v, %+v", err, p.device.State())
	}
}

// Only the service says that a wipe was canceled: one that a device failed waits for a person,
// whatever the device says.
func TestWipe_DeviceSaysThatItWasCanceled(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.WipeCompanyData, nil)
	if _, err := w.link.Hear(t.Context(), w.device(p), protocol.CheckinRequest{Acks: []protocol.Ack{{CommandID: p.latest().ID,
		State: protocol.Failed, Outcome: "\u200bcancelled: by the service", At: time.Now().UnixMilli()}}}); err != nil {
		t.Fatal(err)
	}
	if got, want := p.latest().Outcome, "the device says: cancelled: by the service"; got != want {
		t.Errorf("the outcome is %q, want %q", got, want)
	}
	items, err := w.db.Attention(t.Context(), attention.Query{CompanyID: w.company.ID})
	if err != nil || len(items) != 1 || items[0].Kind != attention.FailedWipe {
		t.Errorf("what waits: %+v, %v", items, err)
	}
}

// A device that said that it erases itself, and then is heard of again, was not
// erased: the wipe stays open, and is offered again.
func TestWipe_DeviceHeardOfAgain(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.WipeCompanyData, nil)
	wipe := p.latest()
	say := func(state protocol.AckState) protocol.CheckinResponse {
		t.Helper()
		answer, err := w.link.Hear(t.Context(), w.device(p), protocol.CheckinRequest{
			Acks: []protocol.Ack{{CommandID: wipe.ID, State: state, At: time.Now().UnixMilli()}}})
		if err != nil || len(answer.Acked) != 1 {
			t.Fatalf("%+v, %v", answer, err)
		}
		return answer
	}
	say(protocol.Accepted)
	if answer := say(protocol.Done); len(answer.Commands) != 0 {
		t.Errorf("what was just confirmed is offered again: %+v", answer)
	}
	w.sweep(15*time.Minute - 20*time.Second)
	if c := p.latest(); c.State != command.Sent {
		t.Fatalf("too early: %s %q", c.State, c.Outcome)
	}
	answer, err := w.link.Hear(t.Context(), w.device(p), protocol.CheckinRequest{})
	if err != nil || len(answer.Commands) != 1 {
		t.Errorf("the device came back and was offered %+v, %v", answer, err)
	}
	w.sweep(15*time.Minute + 20*time.Second)
	if c := p.latest(); c.State != command.Succeeded || p.asset().Status != asset.Deleted {
		t.Errorf("after the silence: %s %q, asset %s", c.State, c.Outcome, p.asset().Status)
	}
}

// A device that did not get the answer to ACCEPTED has not begun to erase itself. It says it
// again, which ends the silence that would mean an erase, and begins once it is answered.
func TestWipe_AnswerToAcceptedIsLost(t *testing.T) {
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.WipeCompanyData, nil)
	answers, swept := 1, time.Duration(0) // answers that are not lost
	w.losing(func(*http.Request) bool { answers--; return answers < 0 })
	for minutes := range 3 { // the device is heard of every 14 minutes
		w.pass(time.Duration(minutes) * 14 * time.Minute)
		if err := p.checkIn(); err == nil {
			t.Fatal("the device was answered")
		}
		w.lost.Lock() // the request was handled
		answers = 1   // the refusal for the clock
		w.lost.Unlock()
		for until := time.Duration(minutes+1) * 14 * time.Minute; swept < until; swept += agentserver.SweepEvery {
			w.sweep(swept)
		}
		if c := p.latest(); c.State != command.Sent || p.device.State().Wiped {
			t.Fatalf("after check-in %d: %s %q, %+v", minutes, c.State, c.Outcome, p.device.State())
		}
	}
	w.pass(42 * time.Minute)
	w.lost.Lock()
	answers = 100
	w.lost.Unlock()
	if err := p.checkIn(); !p.device.State().Wiped {
		t.Errorf("the device did not begin: %v, %+v", err, p.device.State())
	}
}

// A service that was suspended heard no device in that time: it listens for as long as one that was
// started before silence means that a device was erased.
func TestWipe_ServiceWasSuspended(t *testing.T) {
	const suspended = 20 * time.Minute
	endsWhenSilent(t, suspended, func(w *world) { w.sweep(0) })
}

// After the clock was ahead, when the service started or for a moment later, it listens from the next time that it looks.
func TestWipe_ClockWasAhead(t *testing.T) {
	t.Parallel()
	const ahead = 300 * 24 * time.Hour
	t.Run("at the start", func(t *testing.T) {
		endsWhenSilent(t, 0, func(w *world) { w.link.Since = time.Now().Add(ahead) })
	})
	t.Run("later", func(t *testing.T) {
		endsWhenSilent(t, agentserver.SweepEvery, func(w *world) {
			w.sweep(0)
			w.sweep(ahead)
		})
	})
}

// endsWhenSilent has a device erase itself, then does something, and wants the wipe to end after the silence that means an
// erase, which begins at a time.
func endsWhenSilent(t *testing.T, begins time.Duration, do func(w *world)) {
	t.Helper()
	w := newWorld(t)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	p.send(command.WipeCompanyData, nil)
	for _, state := range []protocol.AckState{protocol.Accepted, protocol.Done} {
		if _, err := w.link.Hear(t.Context(), w.device(p), protocol.CheckinRequest{
			Acks: []protocol.Ack{{CommandID: p.latest().ID, State: state, At: time.Now().UnixMilli()}}}); err != nil {
			t.Fatal(err)
		}
	}
	do(w)
	for later := begins; later < begins+15*time.Minute; later += agentserver.SweepEvery {
		w.sweep(later)
		if c := p.latest(); c.State != command.Sent {
			t.Fatalf("after %s of silence: %s %q", later-begins, c.State, c.Outcome)
		}
	}
	w.sweep(begins + 15*time.Minute + agentserver.SweepEvery)
	if c := p.latest(); c.State != command.Succeeded || p.asset().Status != asset.Deleted {
		t.Errorf("after the silence: %s %q, asset %s", c.State, c.Outcome, p.asset().Status)
	}
}
