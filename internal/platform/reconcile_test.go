package platform_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/provisioning"
)

func (b *bench) losing(kind string, times int) {
	b.Helper()
	b.fault(emulator.Fault{Method: "notifications", Match: kind, Lose: true, Times: times})
}

// A lost notification leaves no command behind: the operation is asked after,
// first after two minutes.
func TestPoll_AsksForLostResults(t *testing.T) {
	connected(t, func(b *bench) {
		a, e := b.device(), b.asset(b.enroll(provisioning.Disallowed, behaves("ERROR", "UNSUPPORTED"))[0])
		b.losing("COMMAND", 2)
		for _, device := range []asset.Asset{a, e} {
			_, err := b.command(device, command.Lock, nil)
			b.ok(err)
		}
		b.pass(time.Minute)
		b.equal("after a minute", b.history(a)[0].State, command.Sent)
		b.pass(75 * time.Second)
		b.equal("after two", b.history(a)[0].State, command.Succeeded)
		b.equal("the device's own word", b.history(a)[0].FeedbackAt.IsZero(), false)
		b.equal("after two, failing", b.history(e)[0].State, command.Failed)
		b.equal("questions", b.calls("devices.operations.get"), 2)
	})
}

// A start of lost mode that is asked after when lost mode has ended begins none.
func TestPoll_LostModeThatEnded(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.losing("COMMAND", 1)
		_, err := b.command(a, command.StartLostMode, command.LostModeBody{Message: "Found it? Call us."})
		b.ok(err)
		b.pass(time.Minute)
		_, err = b.command(a, command.StopLostMode, nil)
		b.ok(err)
		b.pass(75 * time.Second)
		b.equal("start", b.history(a)[1].State, command.Succeeded)
		b.equal("lost mode", b.asset(a.Device.Name).Device.LostMode, false)
	})
}

// A company whose enterprise the vendor denies is asked for once in a round, and
// holds up neither the commands of others nor those without an answer.
func TestPoll_DeniedCompanyHoldsUpNoOther(t *testing.T) {
	connected(t, func(b *bench) {
		other := b.neighbor()
		b.losing("COMMAND", 4)
		for _, a := range []asset.Asset{b.device(), b.device()} { // the oldest
			_, err := b.command(a, command.Lock, nil)
			b.ok(err)
		}
		b.fault(emulator.Fault{Method: "devices.operations.get", Match: b.company.Enterprise, Status: 403, Times: -1})
		sent, unconfirmed := other.device(), other.device()
		_, err := other.command(sent, command.Lock, nil)
		b.ok(err)
		b.fault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true, AfterEffect: true})
		_, err = other.command(unconfirmed, command.Lock, nil)
		b.ok(err)
		b.pass(2*time.Minute + 30*time.Second)
		b.equal("another company's", other.history(sent)[0].State, command.Succeeded)
		b.equal("without an answer", other.history(unconfirmed)[0].State, command.Succeeded)
		b.equal("questions", b.calls("devices.operations.get"), 2)
	})
}

// The platform is asked about a command before it ends without a word: at its deadline, and after a time in which the service
// was down. One that cannot be asked about ends a day later.
func TestPoll_BeforeTheEnd(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name   string
		online *bool
		down   bool
		status int // of the platform's answers; 0: it answers
		want   command.State
	}{
		{"carried out late", &yes, false, 0, command.Succeeded},
		{"carried out late, then the service was down", &yes, true, 0, command.Succeeded},
		{"never carried out", &no, false, 0, command.Failed},
		{"the quota is used up", &yes, true, 429, command.Failed},
		{"the platform fails", &yes, true, 503, command.Failed},
		{"the platform fails for a while", &yes, true, 500, command.Succeeded},
		{"the platform denies", &yes, true, 403, command.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			days(t, time.Minute, func(b *bench) {
				device := b.enroll(provisioning.Disallowed, emulator.Enrollment{Behavior: emulator.Behavior{Online: &no}})[0]
				a := b.asset(device)
				b.losing("COMMAND", 1)
				_, err := b.command(a, command.Reboot, nil)
				b.ok(err)
				b.pass(50 * time.Minute)
				_, err = b.emulator.SetBehavior(b.Context(), device, emulator.Behavior{Online: c.online}, true)
				b.ok(err)
				if c.status != 0 {
					b.fault(emulator.Fault{Method: "devices.operations.get", Status: c.status, Times: -1})
				}
				if c.down {
					b.halt()
					b.pass(3 * time.Hour)
					b.ok(b.commands.Sweep(b.Context()))
					b.equal("when it starts", b.history(a)[0].State, command.Sent)
					b.run()
				}
				b.pass(18 * time.Minute)
				b.ok(b.commands.Sweep(b.Context()))
				if c.status != 0 {
					b.equal("not asked", b.history(a)[0].State, command.Sent)
					if c.want == command.Succeeded {
						b.emulator.ClearFaults()
					}
					b.pass(24 * time.Hour)
					b.ok(b.commands.Sweep(b.Context()))
				}
				b.equal("in the end", b.history(a)[0].State, c.want)
			})
		})
	}
}

// Two commands that are RESET_PASSWORD to the platform and had no answer are told apart: the first never arrived, the second did.
func TestAdopt_PasswordSetOrRemoved(t *testing.T) {
	for _, report := range []string{"arrives", "is lost"} {
		t.Run("the device's report "+report, func(t *testing.T) {
			connected(t, func(b *bench) {
				a := b.device()
				if report == "is lost" {
					b.losing("COMMAND", 1)
				}
				b.fault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true})
				_, err := b.command(a, command.ResetScreenLock, nil)
				b.ok(err)
				b.pass(time.Second)
				b.fault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true, AfterEffect: true})
				_, err = b.command(a, command.ChangeScreenLockPassword, command.PasswordBody{NewPassword: "123456"})
				b.ok(err)
				b.pass(3 * time.Minute)
				h := b.history(a)
				b.equal("the one that arrived", h[0].State, command.Succeeded)
				b.equal("the one that did not", h[1].State, command.Unconfirmed)
			})
		})
	}
}

// A device that stays away is asked after ever more rarely.
func TestPoll_BacksOff(t *testing.T) {
	days(t, time.Minute, func(b *bench) {
		offline := false
		a := b.asset(b.enroll(provisioning.Disallowed, emulator.Enrollment{Behavior: emulator.Behavior{Online: &offline}})[0])
		b.halt()
		b.runOnly(b.platform.Operations)
		_, err := b.command(a, command.Lock, nil)
		b.ok(err)
		for _, c := range []struct {
			until time.Duration
			polls int
		}{{3 * time.Minute, 1}, {8 * time.Minute, 2}, {23 * time.Minute, 3}, {84 * time.Minute, 4}, {24 * time.Hour, 27}} {
			created := b.history(a)[0].CreatedAt
			b.pass(c.until - time.Since(created))
			if n := b.calls("devices.operations.get"); n < c.polls-1 || n > c.polls+1 {
				b.Errorf("after %v: %d polls, want about %d", c.until, n, c.polls)
			}
		}
	})
}

// A command whose answer was lost is found again by what the device says.
func TestAdopt_ByNotification(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.fault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true, AfterEffect: true})
		result, err := b.command(a, command.Lock, nil)
		b.ok(err)
		b.equal("at once", result.Status, "UNCONFIRMED")
		b.pass(time.Second)
		h := b.history(a)[0]
		b.equal("after the device's report", h.State, command.Succeeded)
		b.equal("has a name", h.Ref != "", true)
		b.equal("sent", b.calls("devices.issueCommand"), 1)
	})
}

// Or by the list of the device's operations, if that word is lost as well.
func TestAdopt_ByList(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		_, err := b.command(a, command.Lock, nil) // another of the type, with a name
		b.ok(err)
		b.pass(5 * time.Second)
		b.fault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true, AfterEffect: true})
		b.losing("COMMAND", 1)
		_, err = b.command(a, command.Lock, nil)
		b.ok(err)
		b.pass(time.Minute)
		b.equal("after a minute", b.history(a)[0].State, command.Unconfirmed)
		b.pass(2 * time.Minute)
		h := b.history(a)
		b.equal("after three", h[0].State, command.Succeeded)
		b.equal("its own name", h[0].Ref != h[1].Ref, true)
	})
}

// A command that never reached the vendor stays UNCONFIRMED, and is not taken
// for another of its type.
func TestAdopt_NeverArrivedStaysUnconfirmed(t *testing.T) {
	days(t, time.Minute, func(b *bench) {
		a := b.device()
		_, err := b.command(a, command.Lock, nil)
		b.ok(err)
		b.pass(time.Second)
		b.fault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true})
		_, err = b.command(a, command.Lock, nil)
		b.ok(err)
		b.pass(3 * time.Hour)
		b.equal("state", b.history(a)[0].State, command.Unconfirmed)
		b.equal("sent", b.calls("devices.issueCommand"), 2)
	})
}

// A service that dies between the vendor's answer and its own note of it finds
// the command again, and sends nothing twice.
func TestAdopt_CrashBetweenCallAndRecord(t *testing.T) {
	for _, report := range []string{"arrives", "is lost"} {
		t.Run("the device's report "+report, func(t *testing.T) {
			connected(t, func(b *bench) {
				a := b.device()
				if report == "is lost" {
					b.losing("COMMAND", 1)
				}
				b.commands.Crash = func(step string) {
					if step == command.AfterSend {
						panic("killed")
					}
				}
				func() {
					defer func() { _ = recover() }()
					_, _ = b.command(a, command.Lock, nil)
				}()
				b.equal("after the crash", b.history(a)[0].State, command.Prepared)
				b.halt()
				b.start(nil)
				b.run()
				b.pass(2 * time.Minute)
				b.ok(b.commands.Sweep(b.Context()))
				b.pass(2 * time.Minute)
				b.equal("in the end", b.history(a)[0].State, command.Succeeded)
				b.equal("sent", b.calls("devices.issueCommand"), 1)
			})
		})
	}
}

// A wipe whose every word is lost ends SUCCESS: the device is gone.
func TestPoll_WipeWithoutReport(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.losing("COMMAND", 1)
		b.losing("STATUS_REPORT", 1)
		_, err := b.command(a, command.WipeCompanyData, nil)
		b.ok(err)
		b.pass(3 * time.Minute)
		b.equal("status", b.again(a).Status, asset.Deleted)
		b.equal("state", b.history(a)[0].State, command.Succeeded)
	})
}

// An operation that the vendor has dropped has no outcome after a week.
func TestPoll_ForgottenOperation(t *testing.T) {
	days(t, time.Hour, func(b *bench) {
		offline := false
		a := b.asset(b.enroll(provisioning.Disallowed, emulator.Enrollment{Behavior: emulator.Behavior{Online: &offline}})[0])
		b.halt()
		b.runOnly(b.platform.Operations)
		_, err := b.command(a, command.WipeCompanyData, nil)
		b.ok(err)
		b.fault(emulator.Fault{Method: "devices.operations.get", Status: 404, Reason: "NOT_FOUND", Times: -1})
		b.pass(6 * 24 * time.Hour)
		b.equal("after six days", b.history(a)[0].State, command.Sent)
		b.pass(26 * time.Hour)
		b.equal("after a week", b.history(a)[0].State, command.Failed)
		b.says("outcome", b.history(a)[0].Outcome, "no longer knows")
		b.equal("the device", b.again(a).Status.Enrolled(), true)
	})
}

// A change of policy is settled by the device's report, also when that is lost,
// and by the vendor's having another policy in mind.
func TestPoll_LostChangesOfPolicy(t *testing.T) {
	connected(t, func(b *bench) {
		next := b.newPolicy("Kiosk", `{}`)
		b.pass(2 * time.Second)
		a, u, o := b.device(), b.device(), b.device()
		b.losing("STATUS_REPORT", 1)
		b.equal("outcome", b.move(a, b.saved(next.ID)).Code, outcome.Accepted)
		b.pass(time.Second)
		b.fault(emulator.Fault{Method: "devices.patch", DropConnection: true})
		b.equal("outcome", b.move(u, b.saved(next.ID)).Code, outcome.Unknown)
		b.fault(emulator.Fault{Method: "devices.patch", DropConnection: true, AfterEffect: true})
		b.equal("outcome", b.move(o, b.saved(next.ID)).Code, outcome.Unknown)
		b.pass(4 * time.Minute)
		b.equal("made, report lost", b.history(a)[0].State, command.Succeeded)
		b.equal("never made", b.history(u)[0].State, command.Failed)
		b.says("never made", b.history(u)[0].Outcome, "another policy")
		b.equal("made, answer lost", b.history(o)[0].State, command.Succeeded)
	})
}

// A device that leaves without a word ends, one that joins without a word
// joins, and one that enrolls at the same time is left alone.
func TestInventory_ComparesDevices(t *testing.T) {
	days(t, time.Hour, func(b *bench) {
		stays := b.device()
		leaves := b.asset(b.enroll(provisioning.Allowed, emulator.Enrollment{})[0])
		b.ok(b.emulator.Act(b.Context(), leaves.Device.Name, emulator.ActionRemoveProfile, false))
		mute := false
		names := b.enroll(provisioning.Disallowed, emulator.Enrollment{Count: 120, Notify: &mute})
		b.pass(time.Minute)
		b.equal("ghost", b.again(leaves).Status, asset.Active)
		b.pass(40 * time.Minute)
		b.equal("the one that left", b.again(leaves).Status, asset.Deleted)
		b.equal("the one that stayed", b.again(stays).Status, asset.Active)
		for _, name := range names {
			a := b.asset(name)
			b.equal("one that joined", a.Status, asset.Active)
			b.equal("its version", a.Device.PolicyApplied, 1)
		}
	})
}

// An incomplete list ends no device.
func TestInventory_IncompleteListEndsNoDevice(t *testing.T) {
	connected(t, func(b *bench) {
		b.enroll(provisioning.Disallowed, emulator.Enrollment{Count: 101})
		a := b.device() // on the second page
		b.halt()
		b.fault(emulator.Fault{Method: "devices.list", Match: "devices", Status: 200, Corrupt: "truncate"})
		if err := b.platform.CompareDevices(b.Context(), b.company); err == nil {
			b.Error("a truncated list was taken")
		}
		b.emulator.ClearFaults()
		b.fault(emulator.Fault{Method: "devices.list", DelayMS: 1})
		b.fault(emulator.Fault{Method: "devices.list", Status: 503})
		if err := b.platform.CompareDevices(b.Context(), b.company); err == nil {
			b.Error("half a list was taken")
		}
		b.equal("status", b.again(a).Status, asset.Active)
		b.ok(b.platform.CompareDevices(b.Context(), b.company))
		b.equal("status", b.again(a).Status, asset.Active)
	})
}

// A device that the list leaves out, and that the vendor has, is not ended.
func TestInventory_AsksBeforeADeviceEnds(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		ghost := b.asset(b.enroll(provisioning.Allowed, emulator.Enrollment{})[0])
		b.ok(b.emulator.Act(b.Context(), ghost.Device.Name, emulator.ActionRemoveProfile, false))
		b.halt()
		b.fault(emulator.Fault{Method: "get", Status: 403}) // the enterprise cannot be confirmed
		if err := b.platform.CompareDevices(b.Context(), b.company); err == nil {
			b.Error("an unconfirmed end was taken")
		}
		b.equal("unconfirmed", b.again(ghost).Status, asset.Active)
		b.ok(b.platform.CompareDevices(b.Context(), b.company))
		b.equal("confirmed", b.again(ghost).Status, asset.Deleted)
		b.equal("the other", b.again(a).Status, asset.Active)
	})
}

// Devices that the vendor fails to read keep no other from being compared, and are compared
// the next time. A company that is denied is asked for no more.
func TestInventory_DeviceThatCannotBeRead(t *testing.T) {
	connected(t, func(b *bench) {
		mute := false
		left := []asset.Asset{}
		for _, name := range b.enroll(provisioning.Allowed, emulator.Enrollment{Count: 6}) {
			left = append(left, b.asset(name))
		}
		b.halt()
		names := b.enroll(provisioning.Disallowed, emulator.Enrollment{Count: 6, Notify: &mute})
		for _, a := range left {
			b.ok(b.emulator.Act(b.Context(), a.Device.Name, emulator.ActionRemoveProfile, false))
		}
		for _, name := range []string{names[2], left[2].Device.Name} {
			b.fault(emulator.Fault{Method: "devices.get", Match: name, Status: 503, Times: -1})
		}
		if err := b.platform.CompareDevices(b.Context(), b.company); err == nil {
			b.Error("the comparison of devices that cannot be read succeeded")
		}
		for n, name := range names {
			_, err := b.db.AssetOfDevice(b.Context(), b.company.ID, name)
			b.equal("joined", err == nil, n != 2)
			b.equal("ended", b.again(left[n]).Status == asset.Deleted, n != 2)
		}
		b.emulator.ClearFaults()
		b.fault(emulator.Fault{Method: "devices.get", Status: 403, Times: -1})
		before := b.calls("devices.get")
		if err := b.platform.CompareDevices(b.Context(), b.company); err == nil {
			b.Error("a comparison that was denied succeeded")
		}
		b.equal("calls while denied", b.calls("devices.get")-before, 1)
		b.emulator.ClearFaults()
		b.ok(b.platform.CompareDevices(b.Context(), b.company))
		b.equal("joined", b.asset(names[2]).Status, asset.Active)
		b.equal("ended", b.again(left[2]).Status, asset.Deleted)
	})
}

// A device that we took for gone by mistake comes back.
func TestInventory_DeviceReturns(t *testing.T) {
	days(t, time.Hour, func(b *bench) {
		a := b.device()
		b.fault(emulator.Fault{Method: "devices.issueCommand", Status: 404, Reason: "NOT_FOUND"})
		if _, err := b.command(a, command.Lock, nil); err == nil {
			b.Fatal("a device that is gone took a command")
		}
		b.equal("status", b.again(a).Status, asset.Deleted)
		b.pass(40 * time.Minute)
		b.equal("after the next comparison", b.again(a).Status, asset.Active)
		b.equal("epoch", b.again(a).Device.Epoch, 2)
	})
}

// deviceOfSmallQuota starts a replica with 20 queries in 100 seconds, and returns a device. No background work runs.
func (b *bench) deviceOfSmallQuota() asset.Asset {
	b.Helper()
	b.start(func(c *platform.Config) { c.Quota = 20; c.Schedule.Commands = time.Hour })
	b.connect()
	b.run()
	a := b.device()
	b.halt()
	return a
}

// Background work leaves the quota to commands, and waits after the vendor's
// own refusal.
func TestQuota_CommandsFirst(t *testing.T) {
	on(t, func(b *bench) {
		a := b.deviceOfSmallQuota()
		outcomes := map[outcome.Code]int{}
		if err := b.platform.CompareDevices(b.Context(), b.company); err != nil {
			b.Fatal(err)
		}
		for b.platform.CompareDevices(b.Context(), b.company) == nil {
			continue // until it may spend no more
		}
		for range 20 {
			outcomes[b.send(a, command.Lock, nil).Code]++
		}
		if n := outcomes[outcome.Accepted]; n < 6 || n > 8 {
			b.Errorf("%v", outcomes)
		}
		b.equal("nothing else", outcomes[outcome.Accepted]+outcomes[outcome.NotSent], 20)
		b.pass(100 * time.Second)
		b.fault(emulator.Fault{Method: "devices.issueCommand", Status: 429})
		b.equal("throttled", b.send(a, command.Lock, nil).Code, outcome.Throttled)
		b.equal("a command after that", b.send(a, command.Lock, nil).Code, outcome.Accepted)
		if b.platform.CompareDevices(b.Context(), b.company) == nil {
			b.Error("background work did not wait")
		}
		b.pass(time.Minute)
		b.ok(b.platform.CompareDevices(b.Context(), b.company))
	})
}

// Jobs leave 30 % of the quota to callers, looks after a doubtful outcome 10 %. A command of a job takes one query of it.
func TestQuota_CallersBeforeJobs(t *testing.T) {
	on(t, func(b *bench) {
		a := b.deviceOfSmallQuota()
		b.pass(100 * time.Second)
		job := func() command.Receipt {
			b.Helper()
			o := b.order(a, command.Lock, nil)
			o.Command.IdempotencyRef = "job:j1:" + o.Command.ID
			held, refused := b.platform.Prepare(b.Context(), o)
			switch {
			case held != nil:
				b.Error("the platform keeps an order")
			case refused != nil:
				return *refused
			}
			return b.platform.Send(b.Context(), o)
		}
		outcomes := map[outcome.Code]int{}
		for range 20 {
			outcomes[job().Code]++
		}
		b.equal("the jobs'", outcomes, map[outcome.Code]int{outcome.Accepted: 14, outcome.Throttled: 6})
		b.says("why", job().Detail, "the quota of platform queries is used up for the moment")
		for range 5 {
			b.equal("a caller's", b.send(a, command.Lock, nil).Code, outcome.Accepted)
		}
		if _, err := b.platform.ReadCopy(b.Context(), b.company, b.policy); err == nil {
			b.Error("a look after a doubtful outcome took the last query")
		}
		b.equal("the last query", b.send(a, command.Lock, nil).Code, outcome.Accepted)
		b.pass(100 * time.Second)
		b.fault(emulator.Fault{Method: "devices.issueCommand", Status: 429})
		b.equal("throttled", b.send(a, command.Lock, nil).Code, outcome.Throttled)
		b.equal("a job's after that", job().Code, outcome.Throttled)
		b.pass(time.Minute)
		b.equal("a job's after a minute", job().Code, outcome.Accepted)
	})
}
