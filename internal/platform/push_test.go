package platform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/policy"
)

// pushed is the body of the last push.
func (b *bench) pushed() string {
	b.Helper()
	all := b.emulator.Calls(0, "policies.patch")
	if len(all) == 0 {
		b.Fatal("nothing was pushed")
	}
	last := all[len(all)-1]
	b.equal("query", last.Query, "alt=json&prettyPrint=false") // no updateMask: the whole document
	return string(last.Body)
}

// pushesOf are the calls that pushed a policy.
func (b *bench) pushesOf(p policy.Policy) []emulator.Call {
	return slices.DeleteFunc(b.emulator.Calls(0, "policies.patch"), func(c emulator.Call) bool { return !strings.HasSuffix(c.Path, p.ID) })
}

func TestPush_WholePolicy(t *testing.T) {
	on(t, func(b *bench) {
		p := b.newPolicy("Whole", `{"name":"enterprises/x/policies/y","version":"9","cameraDisabled":false,"screenCaptureDisabled":true,
			"applications":[{"packageName":"com.example.app","managedConfiguration":{"none":null,"big":12345678901234567890}}],
			"encryptionPolicy":"ENCRYPTION_POLICY_UNSPECIFIED"}`)
		b.emulator.ClearCalls()
		b.equal("not connected", b.platform.Push(b.Context(), b.company, p.ID).Code, outcome.NotSent)
		b.connect()
		b.equal("pushed at connect", b.saved(p.ID).Push.Version, 1)
		b.equal("pushed", b.platform.Push(b.Context(), b.company, p.ID).Code, outcome.Done)
		var got, want any
		b.ok(json.Unmarshal([]byte(b.pushed()), &got))
		b.ok(json.Unmarshal([]byte(`{"cameraDisabled":false,"screenCaptureDisabled":true,
			"applications":[{"packageName":"com.example.app","managedConfiguration":{"none":null,"big":12345678901234567890}}],
			"encryptionPolicy":"ENCRYPTION_POLICY_UNSPECIFIED"}`), &want))
		b.equal("body", fmt.Sprint(got), fmt.Sprint(want))
		b.says("body", b.pushed(), "12345678901234567890")
	})
}

// A device's version is ours, whatever the vendor calls it.
func TestPush_VersionsAreTranslated(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		for i := 2; i < 6; i++ {
			document := fmt.Sprintf(`{"screenCaptureDisabled":%v,"statusReportingSettings":{"softwareInfoEnabled":true}}`, i%2 == 0)
			b.save(b.policy, document)
			b.pass(3 * time.Second)
			b.equal("version applied", b.again(a).Device.PolicyApplied, i)
			b.equal("version pushed", b.saved(b.policy.ID).Push.Version, i)
		}
	})
}

func TestPush_RefusedThenCorrected(t *testing.T) {
	connected(t, func(b *bench) {
		p := b.newPolicy("Bad", `{"cameraAccess":"NEVER"}`)
		b.pass(10 * time.Minute)
		b.equal("calls", b.calls("policies.patch"), 2) // one of them the other policy
		b.equal("held", b.saved(p.ID).Push.Version, 0)
		b.says("error shown", b.saved(p.ID).Push.Error, "NEVER")
		r := b.platform.Push(b.Context(), b.company, p.ID) // a second attempt
		b.equal("again", r.Code, outcome.Refused)
		b.says("detail", r.Detail, "NEVER")
		b.equal("for a caller", fault.CodeOf(b.platform.PushPolicy(b.Context(), b.company.ID, p.ID)), fault.Refused)
		b.save(p, `{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`)
		b.pass(3 * time.Second)
		b.equal("held after the correction", b.saved(p.ID).Push.Version, 2)
		b.equal("error after the correction", b.saved(p.ID).Push.Error, "")
	})
}

// What the vendor could not take now is tried again, ever more rarely.
func TestPush_IsRetried(t *testing.T) {
	connected(t, func(b *bench) {
		for _, f := range []emulator.Fault{
			{Status: 429, Reason: "RESOURCE_EXHAUSTED"}, {Status: 503, Reason: "UNAVAILABLE"}, {Status: 409, Reason: "ABORTED"},
			{Status: 403, Reason: "PERMISSION_DENIED"}, {DropConnection: true}, {DropConnection: true, AfterEffect: true},
			{Corrupt: "html"},
		} {
			f.Method = "policies.patch"
			b.fault(f)
		}
		p := b.newPolicy("Kiosk", `{}`)
		b.pass(3 * time.Second)
		b.equal("held at first", b.saved(p.ID).Push.Version, 0)
		b.equal("error shown", b.saved(p.ID).Push.Error != "", true)
		b.pass(20 * time.Minute)
		b.equal("held in the end", b.saved(p.ID).Push.Version, 1)
		b.equal("error in the end", b.saved(p.ID).Push.Error, "")
		b.equal("calls", b.calls("policies.patch"), 9)
		for i, pushes := 2, b.pushesOf(p); i < len(pushes); i++ {
			if last, now := pushes[i-1].At.Sub(pushes[i-2].At), pushes[i].At.Sub(pushes[i-1].At); now < last-time.Second ||
				now < 4*time.Second {
				b.Errorf("try %d came %v after the last, which had waited %v", i, now, last)
			}
		}
	})
}

func TestPush_Outcomes(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		for _, c := range []struct {
			fault emulator.Fault
			want  outcome.Code
			code  fault.Code
		}{
			{emulator.Fault{Status: 400, Reason: "Invalid value"}, outcome.Refused, fault.Refused},
			{emulator.Fault{Status: 401}, outcome.NotSent, fault.Unavailable},
			{emulator.Fault{Status: 403}, outcome.NotSent, fault.Unavailable},
			{emulator.Fault{Status: 404}, outcome.NotSent, fault.Unavailable},
			{emulator.Fault{Status: 409}, outcome.NotSent, fault.Unavailable},
			{emulator.Fault{Status: 429}, outcome.NotSent, fault.Unavailable},
			{emulator.Fault{Status: 500}, outcome.Unknown, fault.Provider},
			{emulator.Fault{Status: 503, AfterEffect: true}, outcome.Unknown, fault.Provider},
			{emulator.Fault{DropConnection: true}, outcome.Unknown, fault.Provider},
			{emulator.Fault{Corrupt: "truncate", AfterEffect: true}, outcome.Unknown, fault.Provider},
			{emulator.Fault{DelayMS: 60_000}, outcome.Unknown, fault.Provider},
		} {
			c.fault.Method, c.fault.Times = "policies.patch", 2
			b.fault(c.fault)
			r := b.platform.Push(b.Context(), b.company, b.policy.ID)
			b.equal(fmt.Sprintf("%+v", c.fault), r.Code, c.want)
			b.equal("says why", r.Detail != "" && r.Cause != nil, true)
			b.equal("for a caller", fault.CodeOf(b.platform.PushPolicy(b.Context(), b.company.ID, b.policy.ID)), c.code)
			b.emulator.ClearFaults()
		}
		b.ok(b.platform.PushPolicy(b.Context(), b.company.ID, b.policy.ID))
		b.equal("of no policy", fault.CodeOf(b.platform.PushPolicy(b.Context(), b.company.ID, "nope")), fault.NotFound)
		b.equal("of no company", fault.CodeOf(b.platform.PushPolicy(b.Context(), "nope", b.policy.ID)), fault.NotFound)
	})
}

// late answers what is to be pushed, and then waits until another replica has worked through its own list.
type late struct {
	platform.Policies
	other func()
}

func (s late) PoliciesToPush(ctx context.Context, companyID string, now time.Time, limit int) ([]policy.Policy, error) {
	due, err := s.Policies.PoliciesToPush(ctx, companyID, now, limit)
	s.other()
	return due, err
}

// A replica with a list from before another one pushed neither pushes the same version again nor tells again that it was refused.
func TestPush_StaleList(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		bad, good := b.newPolicy("Bad", `{"cameraAccess":"NEVER"}`), b.newPolicy("Good", `{}`)
		b.emulator.ClearCalls()
		other, pushed := b.replica(b.open(), b.commands, nil), false
		stale := b.replica(b.db, b.commands, func(c *platform.Config) {
			c.Stores.Policies = late{c.Stores.Policies, func() {
				if !pushed {
					pushed = true
					_, _, err := other.PushDue(b.Context())
					b.ok(err)
				}
			}}
		})
		_, n, err := stale.PushDue(b.Context())
		b.ok(err)
		b.equal("pushes of the stale list", n, 0)
		b.equal("calls for what was pushed", len(b.pushesOf(good)), 1)
		b.equal("calls for what was refused", len(b.pushesOf(bad)), 1)
		_, err = b.db.NumberRound(b.Context())
		b.ok(err)
		head, err := b.db.EventHead(b.Context(), b.company.ID)
		b.ok(err)
		told, err := b.db.News(b.Context(), attention.NewsQuery{CompanyID: b.company.ID, Upto: head.Last,
			Types: []event.Type{event.PolicyFailed}, See: event.Sight{Policies: true, Company: true}})
		b.ok(err)
		b.equal("types of events", len(told), 1)
		b.equal("events of the failure", told[0].Count, int64(1))
		b.save(bad, `{}`)
		_, n, err = stale.PushDue(b.Context())
		b.ok(err)
		b.equal("pushes of the next list", n, 1)
	})
}

// Two replicas that push while a policy is saved again and again end with the
// last version at the vendor.
func TestPush_KeepsOrder(t *testing.T) {
	connected(t, func(b *bench) {
		other := b.replica(b.open(), b.commands, nil)
		p := b.newPolicy("Kiosk", `{"maximumTimeToLock":"1"}`)
		b.fault(emulator.Fault{Method: "policies.patch", DelayMS: 700, Times: 3})
		var all sync.WaitGroup
		for i := range 4 {
			p = b.save(p, fmt.Sprintf(`{"maximumTimeToLock":"%d"}`, i+2))
			for _, replica := range []*platform.Platform{b.platform, other} {
				all.Go(func() {
					if r := replica.Push(context.WithoutCancel(b.Context()), b.company, p.ID); r.Code != outcome.Done {
						b.Errorf("%+v", r)
					}
				})
			}
			b.pass(200 * time.Millisecond)
		}
		all.Wait()
		pushes := b.pushesOf(p)
		for i := range 3 { // each of the slow ones ended before the next began
			if gap := pushes[i+1].At.Sub(pushes[i].At); gap < 700*time.Millisecond {
				b.Errorf("push %d began %v after the last", i+1, gap)
			}
		}
		b.says("last body", b.pushed(), `"5"`)
		b.equal("version", b.saved(p.ID).Push.Version, 5)
	})
}
