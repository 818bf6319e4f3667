package platform_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/provisioning"

	"google.golang.org/api/option"
	"google.golang.org/api/pubsub/v1"
)

const (
	topic        = "projects/" + emulator.DefaultProject + "/topics/" + emulator.DefaultTopic
	subscription = "projects/" + emulator.DefaultProject + "/subscriptions/" + emulator.DefaultSubscription
)

// publish puts a message of our own making on the topic.
func (b *bench) publish(kind string, data any) {
	b.Helper()
	text, ok := data.(string)
	if !ok {
		encoded, err := json.Marshal(data)
		b.ok(err)
		text = string(encoded)
	}
	message := &pubsub.PubsubMessage{Data: base64.StdEncoding.EncodeToString([]byte(text))}
	if kind != "" {
		message.Attributes = map[string]string{"notificationType": kind}
	}
	_, err := b.pubsub().Projects.Topics.Publish(topic, &pubsub.PublishRequest{Messages: []*pubsub.PubsubMessage{message}}).Do()
	b.ok(err)
}

func (b *bench) pubsub() *pubsub.Service {
	transport := &http.Transport{DialContext: b.network.dial}
	b.Cleanup(transport.CloseIdleConnections)
	s, err := pubsub.NewService(b.Context(), option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithEndpoint("http://vendor.test/"))
	b.ok(err)
	return s
}

// backlog is how many messages are not acknowledged, an hour from now.
func (b *bench) backlog() int {
	b.Helper()
	b.pass(time.Hour)
	answer, err := b.pubsub().Projects.Subscriptions.Pull(subscription, &pubsub.PullRequest{MaxMessages: 1000}).Do()
	b.ok(err)
	return len(answer.ReceivedMessages)
}

// What says nothing, and what can never be read, is acknowledged and changes
// nothing; the loop goes on.
func TestNotifications_EmptyMessages(t *testing.T) {
	connected(t, func(b *bench) {
		name := b.company.Enterprise + "/devices/dx"
		for kind, data := range map[string]any{
			"":                   "{}",
			"test":               "",
			"TEST":               "",
			"ENTERPRISE_UPGRADE": `{"enterprise":"x"}`,
			"COMPLIANCE_REPORT":  `{}`,
			"FROM_THE_FUTURE":    `{}`,
			"STATUS_REPORT":      `{"name":"enterprises/other/devices/d1","state":"ACTIVE"}`, // another company's
			"COMMAND":            `{"name":"` + name + `/operations/1","done":true}`,         // unknown
			"ENROLLMENT":         `not JSON`,
			"USAGE_LOGS":         `{"device":"` + name + `","usageLogEvents":[null,{"lostModeLocationEvent":{}}]}`,
		} {
			b.publish(kind, data)
		}
		for _, data := range []string{`{}`, `{"name":""}`, `{"name":"enterprises/x"}`, `[]`, `null`,
			`{"name":"` + name + `","apiLevel":"x"}`, "\xff"} {
			b.publish("STATUS_REPORT", data)
			b.publish("COMMAND", data)
		}
		b.pass(11 * time.Minute) // so long is the other company's given back
		names, err := b.db.DeviceNames(b.Context(), b.company.ID)
		b.ok(err)
		b.equal("devices", len(names), 0)
		a := b.device() // it goes on
		b.equal("status", a.Status, asset.Active)
		b.halt()
		b.equal("left over", b.backlog(), 0)
	})
}

// A name that the database cannot keep is never readable, so that the message is
// acknowledged and not asked for again for days.
func TestNotifications_NamesThatCannotBeStored(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 513)
	for name, valid := range map[string]bool{
		"enterprises/LC1/devices/d1": true, "enterprises/LC1/devices/gerät": true, "enterprises/LC1/devices/" + long: false,
		"enterprises/LC1/devices/d\x00": false, "enterprises/LC\x001/devices/d1": false, "enterprises/LC1/devices/d\n1": false,
		"enterprises/LC1/devices/d\u202e1": false,
	} {
		for kind, data := range map[string]any{"STATUS_REPORT": map[string]any{"name": name}, "USAGE_LOGS": map[string]any{"device": name},
			"COMMAND": map[string]any{"name": name + "/operations/1"}} {
			if err := readable(t, kind, data); (err == nil) != valid {
				t.Errorf("%s of %q: %v", kind, name, err)
			}
		}
	}
	for _, operation := range []string{"1\x00", "1\u202e", long} {
		data := map[string]any{"name": "enterprises/LC1/devices/d1/operations/" + operation}
		if readable(t, "COMMAND", data) == nil {
			t.Errorf("the operation %q was read", operation)
		}
	}
}

// readable decodes a message as it is pulled.
func readable(t *testing.T, kind string, data any) error {
	t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, _, err = platform.ReadNotification(&pubsub.PubsubMessage{MessageId: "1", PublishTime: "2026-11-25T12:00:00Z",
		Data: base64.StdEncoding.EncodeToString(text), Attributes: map[string]string{"notificationType": kind}})
	return err
}

// A notification counts once, however often and late it comes (consumer rules).
func TestNotifications_DoubledLateAndReordered(t *testing.T) {
	connected(t, func(b *bench) {
		settings := b.emulator.Settings()
		settings.Notifications = emulator.Reliability{DuplicateShare: 0.5, DelayShare: 0.5, DelayMS: 2500, Seed: 42}
		b.ok(b.emulator.SetSettings(settings))
		names := b.enroll(provisioning.Disallowed, emulator.Enrollment{Count: 20})
		b.pass(10 * time.Second)
		for i, name := range names {
			a := b.asset(name)
			b.equal("status of "+name, a.Status, asset.Active)
			b.equal("epoch of "+name, a.Device.Epoch, 1)
			kind := command.Lock
			if i%2 == 1 {
				kind = command.WipeCompanyData
			}
			_, err := b.command(a, kind, nil)
			b.ok(err)
		}
		b.pass(10 * time.Second)
		for i, name := range names {
			a := b.asset(name)
			h := b.history(a)
			b.equal("commands", len(h), 1)
			b.equal("state", h[0].State, command.Succeeded)
			b.equal("ended", a.Status == asset.Deleted, i%2 == 1)
		}
		b.halt()
		b.equal("left over", b.backlog(), 0)
	})
}

// A report that was published before the device ended does not bring it back,
// and a late word of its end does not end the enrollment that followed.
func TestNotifications_StaleReportsAreIgnored(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		b.fault(emulator.Fault{Method: "notifications", Match: "STATUS_REPORT", DelayMS: 30_000})
		b.ok(b.emulator.Act(b.Context(), a.Device.Name, emulator.ActionStatusReport, true)) // comes in half a minute
		_, err := b.command(a, command.WipeCompanyData, nil)
		b.ok(err)
		b.pass(5 * time.Second)
		b.equal("wiped", b.again(a).Status, asset.Deleted)
		b.publish("STATUS_REPORT", map[string]any{"name": a.Device.Name, "state": "ACTIVE"}) // later, but of a device that ended
		b.pass(time.Minute)
		b.equal("after late reports", b.again(a).Status, asset.Deleted)

		again := b.asset(b.enroll(provisioning.Disallowed, emulator.Enrollment{
			SerialNumber: a.Specifications["serialNumber"], Brand: a.Specifications["brand"]})[0])
		b.equal("the same asset", again.ID, a.ID)
		b.equal("a new epoch", again.Device.Epoch, 2)
		b.publish("STATUS_REPORT", map[string]any{"name": a.Device.Name, "state": "DELETED"}) // of the name before
		b.pass(time.Second)
		b.equal("after a late end of the earlier enrollment", b.again(a).Status, asset.Active)
	})
}

func TestNotifications_DeletedInEitherMessage(t *testing.T) {
	connected(t, func(b *bench) {
		for _, kind := range []string{"STATUS_REPORT", "ENROLLMENT"} {
			for _, member := range []string{"state", "appliedState"} {
				a := b.device()
				b.publish(kind, map[string]any{"name": a.Device.Name, member: "DELETED"}) // and no hardwareInfo
				b.pass(time.Second)
				b.equal(kind+" "+member, b.again(a).Status, asset.Deleted)
			}
		}
	})
}

func TestNotifications_LocationOfALostDevice(t *testing.T) {
	connected(t, func(b *bench) {
		lat, long := 52.5, 13.4
		a := b.asset(b.enroll(provisioning.Disallowed,
			emulator.Enrollment{Behavior: emulator.Behavior{Latitude: &lat, Longitude: &long}})[0])
		_, err := b.command(a, command.StartLostMode, command.LostModeBody{Message: "Hi"})
		b.ok(err)
		b.pass(10 * time.Minute)
		a = b.again(a)
		b.equal("lost", a.Device.LostMode, true)
		if l := a.Device.Location; l == nil || l.Latitude != lat || l.Longitude != long || time.Since(l.ReportedAt) > 2*time.Minute {
			b.Fatalf("location %+v", l)
		}
		_, err = b.command(a, command.StopLostMode, nil)
		b.ok(err)
		b.pass(time.Second)
		b.equal("lost", b.again(a).Device.LostMode, false)
	})
}

// The vendor says LOST in the state that the device applies; the other is what administrators set.
func TestNotifications_LostInAppliedStateAlone(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		_, err := b.command(a, command.StartLostMode, command.LostModeBody{Message: "Hi"})
		b.ok(err)
		b.pass(time.Minute)
		report := func(state, appliedState string, lost bool) {
			b.publish("STATUS_REPORT", map[string]any{"name": a.Device.Name, "state": state, "appliedState": appliedState})
			b.pass(time.Second)
			b.equal("lost after "+state+", "+appliedState, b.again(a).Device.LostMode, lost)
		}
		report("ACTIVE", "LOST", true)
		report("LOST", "", true)
		report("PREPARING_FOR_MIGRATION", "", true) // it says nothing of lost mode
		report("LOST", "ACTIVE", true)
		report("ACTIVE", "ACTIVE", false)
		report("DISABLED", "LOST", true)
		report("DISABLED", "DISABLED", false)
	})
}

// A usage log says at once that the user ended lost mode. An attempt that failed changes nothing.
func TestNotifications_UserEndsLostMode(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		_, err := b.command(a, command.StartLostMode, command.LostModeBody{Message: "Hi"})
		b.ok(err)
		b.pass(time.Minute)
		attempt := func(status string) {
			event := map[string]any{"eventType": "STOP_LOST_MODE_USER_ATTEMPT",
				"stopLostModeUserAttemptEvent": map[string]any{"status": status}}
			b.publish("USAGE_LOGS", map[string]any{"device": a.Device.Name, "usageLogEvents": []any{event}})
			b.pass(time.Second)
		}
		attempt("ATTEMPT_FAILED")
		b.equal("lost after an attempt that failed", b.again(a).Device.LostMode, true)
		b.fault(emulator.Fault{Method: "notifications", Match: "STATUS_REPORT", Lose: true})
		b.ok(b.emulator.Act(b.Context(), a.Device.Name, emulator.ActionExitLostMode, true))
		b.pass(time.Second)
		b.equal("lost after the user ended it", b.again(a).Device.LostMode, false)
		b.halt()
		b.equal("left over", b.backlog(), 0)
	})
}

// All places of one message are kept, in their order. One that is off the globe hides none.
func TestNotifications_LocationsOfALostDevice(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		joined := time.Now()
		b.pass(time.Hour)
		events := []any{}
		for n, latitude := range []float64{2, 3, 1, 1e9} {
			at := joined.Add(time.Duration([]int{2, 3, 1, 4}[n]) * time.Minute)
			events = append(events, map[string]any{"eventTime": at.Format(time.RFC3339Nano), "lostModeLocationEvent": map[string]any{
				"location": map[string]any{"latitude": latitude}}})
		}
		b.publish("USAGE_LOGS", map[string]any{"device": a.Device.Name, "usageLogEvents": events})
		b.pass(time.Minute)
		trail, err := b.db.Trail(b.Context(), b.company.ID, a.ID, time.Time{}, 10)
		b.ok(err)
		var latitudes []float64
		for _, l := range trail {
			latitudes = append(latitudes, l.Latitude)
		}
		b.equal("trail", fmt.Sprint(latitudes), "[1 2 3]")
		b.equal("place", b.again(a).Device.Location.Latitude, 3.0)
		b.halt()
		b.equal("left over", b.backlog(), 0)
	})
}

// flaky is an inventory whose store fails at times.
type flaky struct {
	platform.Inventory
	mu    sync.Mutex
	fails int
}

func (f *flaky) Observe(ctx context.Context, o enrollment.Observation) (enrollment.Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return enrollment.Change{}, errors.New("the database is away")
	}
	return f.Inventory.Observe(ctx, o)
}

// A notification that an error of the service kept from being applied is sent again.
func TestNotifications_SurviveFailuresOfTheService(t *testing.T) {
	on(t, func(b *bench) {
		inventory := &flaky{fails: 5}
		b.start(func(c *platform.Config) { inventory.Inventory = c.Stores.Inventory; c.Stores.Inventory = inventory })
		b.connect()
		b.run()
		name := b.enroll(provisioning.Disallowed, emulator.Enrollment{})[0]
		b.pass(2 * time.Minute)
		b.equal("status", b.asset(name).Status, asset.Active)
		b.equal("failures met", inventory.fails, 0)
		b.halt()
		b.equal("left over", b.backlog(), 0)
	})
}

// The vendor's trouble with pulling ends no loop.
func TestNotifications_PullingContinues(t *testing.T) {
	connected(t, func(b *bench) {
		b.fault(emulator.Fault{Method: "pubsub.pull", Status: 503, Times: 6})
		b.fault(emulator.Fault{Method: "pubsub.pull", DropConnection: true, Times: 2})
		b.fault(emulator.Fault{Method: "pubsub.acknowledge", Status: 503, Times: 2})
		b.pass(time.Minute)
		name := b.enroll(provisioning.Disallowed, emulator.Enrollment{})[0]
		b.pass(2 * time.Minute)
		b.equal("status", b.asset(name).Status, asset.Active)
		b.halt()
		b.equal("left over", b.backlog(), 0)
	})
}

// Two replicas share one subscription and one database.
func TestNotifications_TwoReplicasApplyOnce(t *testing.T) {
	connected(t, func(b *bench) {
		other := b.open()
		commands := &command.Service{Store: other, Finder: other, Inventory: other, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
		second := b.replica(other, commands, nil)
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		all.Go(func() { _ = second.Run(ctx) })
		defer all.Wait()
		defer cancel()
		settings := b.emulator.Settings()
		settings.Notifications = emulator.Reliability{DuplicateShare: 1, Seed: 1}
		b.ok(b.emulator.SetSettings(settings))
		names := b.enroll(provisioning.Disallowed, emulator.Enrollment{Count: 30})
		b.pass(20 * time.Second)
		for _, name := range names {
			a := b.asset(name)
			b.equal("epoch", a.Device.Epoch, 1)
			_, err := b.command(a, command.Lock, nil)
			b.ok(err)
		}
		b.pass(20 * time.Second)
		n, err := b.db.CountAssets(b.Context(), asset.Filter{CompanyID: b.company.ID})
		b.ok(err)
		b.equal("assets", n, int64(len(names)))
		for _, name := range names {
			b.equal("state", b.history(b.asset(name))[0].State, command.Succeeded)
		}
	})
}

// The end of the context ends the loops at once, and what was begun is
// acknowledged.
func TestNotifications_Stop(t *testing.T) {
	connected(t, func(b *bench) {
		b.device()
		began := time.Now()
		b.halt()
		if took := time.Since(began); took > time.Second {
			b.Errorf("took %v", took)
		}
		b.equal("left over", b.backlog(), 0)
	})
}

// counted keeps what an Observer is called with.
type counted struct {
	mu    sync.Mutex
	calls map[string]int
	notes map[string]int
	lag   time.Duration
}

func (c *counted) VendorCall(method, class string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[method+" "+class]++
}

func (c *counted) Notification(kind, outcome string, lag time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes[kind+" "+outcome]++
	c.lag = max(c.lag, lag)
}

func TestMetrics_CountCallsAndNotifications(t *testing.T) {
	on(t, func(b *bench) {
		observer := &counted{calls: map[string]int{}, notes: map[string]int{}}
		b.start(func(c *platform.Config) { c.Observer = observer })
		b.connect()
		b.run()
		a := b.device()
		b.fault(emulator.Fault{Method: "devices.issueCommand", Status: 503})
		b.fault(emulator.Fault{Method: "notifications", Match: "COMMAND", Duplicate: true, DelayMS: 3000})
		b.send(a, command.Lock, nil)
		_, err := b.command(a, command.Lock, nil)
		b.ok(err)
		b.publish("STATUS_REPORT", "junk")
		b.pass(10 * time.Second)
		b.halt()
		for what, want := range map[string]int{
			"enterprises.devices.issueCommand unknown": 1, "enterprises.devices.issueCommand ok": 1,
			"enterprises.create ok": 1, "enterprises.patch ok": 1, "signupUrls.create ok": 1, "enterprises.policies.patch ok": 1,
			"enterprises.enrollmentTokens.create ok": 1,
		} {
			b.equal(what, observer.calls[what], want)
		}
		for what, want := range map[string]int{"ENROLLMENT applied": 1, "COMMAND applied": 1, "COMMAND ignored": 1,
			"STATUS_REPORT malformed": 1, "OTHER ignored": 1} {
			b.equal(what, observer.notes[what], want)
		}
		b.says("calls", fmt.Sprint(observer.calls), "pubsub.projects.subscriptions.pull ok")
		if observer.lag > time.Second || strings.Contains(b.log.String(), "panic") {
			b.Errorf("lag %v\n%s", observer.lag, b.log)
		}
	})
}
