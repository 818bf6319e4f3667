package database_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
)

// lost asks, as a device with a new key that lost its old one and claims a serial number.
func (f *fixture) lost(token, key, serial string) error {
	f.Helper()
	return f.enrollKey(token, key, serial, true)
}

// plain enrolls a device that lost nothing.
func (f *fixture) plain(token, key, serial string) error {
	f.Helper()
	return f.enrollKey(token, key, serial, false)
}

func (f *fixture) enrollKey(token, key, serial string, lost bool) error {
	f.Helper()
	_, err := f.enrolls(f.Context(), f.db, token, key, serial, lost)
	return err
}

// enrolls is one request of a device to be enrolled.
func (f *fixture) enrolls(ctx context.Context, db *database.DB, token, key, serial string, lost bool) (agentdevice.Device, error) {
	f.Helper()
	at := f.clock.Now()
	d := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager, Key: protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: key},
		CommandAlgorithm: protocol.Ed25519, State: agentdevice.Active, EnrolledAt: at, SeenAt: at}
	return db.EnrollAgent(ctx, agentdevice.Enrollment{Hash: sha256.Sum256([]byte(token)), Device: d,
		Again: at.Add(-time.Hour), Lost: lost}, f.agent(serial))
}

// token makes a token for any device.
func (f *fixture) token(token string) {
	f.Helper()
	f.ok(f.db.CreateAgentToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte(token)), CompanyID: f.company.ID,
		PolicyID: f.agentPolicy("Policy of " + token).ID, ExpiresAt: f.clock.Now().Add(time.Hour)}))
}

// agentCode makes a code of our own agent for some devices, with its token.
func (f *fixture) agentCode(token string, devices int) provisioning.Code {
	f.Helper()
	c := provisioning.Code{ID: resource.NewID(), CompanyID: f.company.ID, PolicyID: f.agentPolicy("Policy of " + token).ID,
		Management: policy.Agent, Usage: provisioning.Disallowed, Maker: access.OperatorActor("ada"), MaxDevices: devices,
		CreatedAt: f.clock.Now(), ExpiresAt: f.clock.Now().Add(provisioning.Lifetime)}
	f.ok(f.db.CreateCode(f.Context(), c))
	f.ok(f.db.CreateAgentToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte(token)), CompanyID: f.company.ID,
		PolicyID: c.PolicyID, Code: c.ID, ExpiresAt: c.ExpiresAt}))
	return c
}

// onlyRequest is the one request that waits.
func (f *fixture) onlyRequest() string {
	f.Helper()
	all := f.lostDevices()
	equal(f, "requests", len(all), 1)
	return all[0].ID
}

func (f *fixture) lostDevices() []agentdevice.Request {
	f.Helper()
	all, err := f.db.EnrollmentRequests(f.Context(), f.company.ID, "")
	f.ok(err)
	return all
}

// Who confirms that a device takes the place of one that was in touch within 24 hours
// needs what a destructive command takes; of a silent one, not.
func TestConfirmRequest_CountsTheDeviceThatLeaves(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(1, 60)
		all := f.sameSerial(1, "SN-1")
		by := f.may()
		f.token("t1")
		f.token("t2")
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "sn-1"))
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.code(fault.Refused, f.lost("t1", "k2", "SN-1"))
		f.code(fault.Refused, f.lost("t3", "k3", "SN-1"))
		requests := f.lostDevices()
		equal(f, "requests", len(requests), 1)
		equal(f, "in touch", requests[0].InTouch, true)
		f.code(fault.Forbidden, f.db.ConfirmRequest(f.Context(), f.company.ID, requests[0].ID,
			access.Replacement{UserID: by.UserID, Named: true}))
		f.code(fault.ConfirmationRequired,
			f.db.ConfirmRequest(f.Context(), f.company.ID, requests[0].ID, access.Replacement{UserID: by.UserID, MayDestroy: true}))
		f.code(fault.NotFound, f.db.ConfirmRequest(f.Context(), resource.NewID(), requests[0].ID, *by))
		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, requests[0].ID, *by))
		f.code(fault.NotFound, f.db.ConfirmRequest(f.Context(), f.company.ID, requests[0].ID, *by))
		equal(f, "devices that count", f.counting(1), 1)
		f.code(fault.Refused, f.lost("t1", "k2", "SN-1"))
		f.ok(f.lost("t1", "k1", "SN-1"))
		equal(f, "the asset's enrollment", f.asset(all[0].ID).Device.Epoch, 2)
		equal(f, "recorded", words(f.recorded(activity.EnrollmentAsked), f.recorded(activity.EnrollmentConfirmed),
			f.recorded(activity.AssetTakenOver)), "1 1 1")

		f.clock.Advance(25 * time.Hour)
		f.token("t4")
		f.is(agentdevice.ErrWaiting, f.lost("t4", "k4", "SN-1"))
		requests = f.lostDevices()
		equal(f, "in touch", requests[0].InTouch, false)
		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, requests[0].ID, access.Replacement{UserID: by.UserID}))
		equal(f, "devices that count", f.counting(1), 0)
	})
}

// What devices asked with a code ends with it: it waits no longer, and takes no place of other requests.
func TestRevokeCode_EndsRequests(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(1, 60)
		f.sameSerial(1, "SN-1")
		c, several := f.agentCode("t1", 1), f.agentCode("t2", 5)
		f.token("t3")
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.is(agentdevice.ErrWaiting, f.lost("t2", "k2", "SN-1"))
		f.is(agentdevice.ErrWaiting, f.lost("t2", "k3", "SN-1"))
		f.code(fault.RateLimited, f.lost("t3", "k4", "SN-1"))
		request := f.lostDevices()[0].ID
		for _, code := range []provisioning.Code{c, several} {
			_, err := f.db.RevokeCode(f.Context(), f.company.ID, nil, code.ID)
			f.ok(err)
		}
		equal(f, "requests", len(f.lostDevices()), 0)
		f.code(fault.NotFound, f.db.ConfirmRequest(f.Context(), f.company.ID, request, *f.may()))
		equal(f, "devices that count", f.counting(1), 0)
		f.code(fault.Refused, f.lost("t2", "k2", "SN-1"))
		f.is(agentdevice.ErrWaiting, f.lost("t3", "k4", "SN-1"))
		equal(f, "requests of others", len(f.lostDevices()), 1)
	})
}

// A confirmation that enrolls nothing does not count in the limit: programs before kept the requests of a code that was
// revoked.
func TestConfirmRequest_WithoutToken(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(1, 60)
		f.sameSerial(1, "SN-1")
		f.agentCode("t1", 1)
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.ok(f.db.DropAgentToken(f.Context(), sha256.Sum256([]byte("t1"))))
		request := f.onlyRequest()
		f.code(fault.Refused, f.db.ConfirmRequest(f.Context(), f.company.ID, request, *f.may()))
		equal(f, "devices that count", f.counting(1), 0)
		f.ok(f.db.DeclineRequest(f.Context(), f.company.ID, request))
		equal(f, "requests", len(f.lostDevices()), 0)
	})
}

// With a declined request its code for one device ends; one for several devices stays.
func TestDeclineRequest_EndsTheCode(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.sameSerial(1, "SN-1")
		want := map[string]provisioning.CodeStatus{}
		for n, status := range []provisioning.CodeStatus{provisioning.CodeActive, provisioning.CodeRevoked} {
			token := fmt.Sprint("t", n)
			want[f.agentCode(token, 2-n).ID] = status
			f.is(agentdevice.ErrWaiting, f.lost(token, token, "SN-1"))
			f.ok(f.db.DeclineRequest(f.Context(), f.company.ID, f.lostDevices()[0].ID))
		}
		all, err := f.db.Codes(f.Context(), f.company.ID, nil, 10)
		f.ok(err)
		got := map[string]provisioning.CodeStatus{}
		for _, c := range all {
			got[c.ID] = c.Status(f.clock.Now())
		}
		equal(f, "the codes", got, want)
	})
}

// A confirmation is taken back with its code, also after the time of the code.
func TestRevokeCode_OfConfirmedRequest(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.sameSerial(1, "SN-1")
		c, unused := f.agentCode("t1", 1), f.agentCode("t2", 1)
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, f.onlyRequest(), *f.may()))
		f.clock.Advance(provisioning.Lifetime)
		waitedFor := func() (ids []string) {
			all, err := f.db.Codes(f.Context(), f.company.ID, nil, 10)
			f.ok(err)
			for _, c := range all {
				if c.WaitedFor {
					ids = append(ids, c.ID)
				}
			}
			return ids
		}
		equal(f, "codes that devices wait for", waitedFor(), []string{c.ID})
		_, err := f.db.RevokeCode(f.Context(), f.company.ID, nil, unused.ID)
		f.code(fault.Unsupported, err)
		revoked, err := f.db.RevokeCode(f.Context(), f.company.ID, nil, c.ID)
		f.ok(err)
		equal(f, "status", revoked.Status(f.clock.Now()), provisioning.CodeRevoked)
		equal(f, "codes that devices wait for", len(waitedFor()), 0)
		f.code(fault.Refused, f.lost("t1", "k1", "SN-1"))
		_, err = f.db.RevokeCode(f.Context(), f.company.ID, nil, c.ID)
		f.code(fault.Unsupported, err)
	})
}

// requestFor is the request that waits for an asset.
func (f *fixture) requestFor(a asset.Asset) string {
	f.Helper()
	all, err := f.db.EnrollmentRequests(f.Context(), f.company.ID, a.ID)
	f.ok(err)
	equal(f, "requests for the asset", len(all), 1)
	return all[0].ID
}

// A request with a code for several devices binds its key, and not the code.
func TestEnrollmentRequests_CodeForSeveralDevices(t *testing.T) {
	withCompany(t, func(f *fixture) {
		first, second := f.sameSerial(1, "SN-1")[0], f.sameSerial(1, "SN-2")[0]
		c := f.agentCode("t1", 5)
		enrolls := func(key string) {
			f.Helper()
			f.ok(f.plain("t1", key, "SN-of-"+key))
		}
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		enrolls("k10")
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k2", "SN-2"))
		f.is(agentdevice.ErrWaiting, f.plain("t1", "k1", "SN-1")) // it does not get around the person

		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, f.requestFor(first), *f.may()))
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k2", "SN-2"))
		enrolls("k11")
		f.ok(f.lost("t1", "k1", "SN-1"))
		got := f.asset(first.ID)
		equal(f, "the asset's enrollment", got.Device.Epoch, 2)
		equal(f, "the asset's policy", got.Device.PolicyID, first.Device.PolicyID)

		f.ok(f.db.DeclineRequest(f.Context(), f.company.ID, f.requestFor(second)))
		f.code(fault.Refused, f.lost("t1", "k2", "SN-2"))
		f.code(fault.Refused, f.plain("t1", "k2", "SN-2"))
		equal(f, "requests", len(f.lostDevices()), 0)
		enrolls("k12")
		equal(f, "the other asset's enrollment", f.asset(second.ID).Device.Epoch, 1)
		equal(f, "devices", f.kept(c.ID).Devices, 4)

		f.is(agentdevice.ErrWaiting, f.lost("t1", "k3", "SN-2"))
		enrolls("k13") // the code is used up
		equal(f, "requests", len(f.lostDevices()), 0)
		f.code(fault.Refused, f.lost("t1", "k3", "SN-2"))
		equal(f, "recorded", words(f.recorded(activity.EnrollmentAsked), f.recorded(activity.EnrollmentConfirmed),
			f.recorded(activity.EnrollmentDeclined)), "3 1 1")
	})
}

// A device whose answer was lost gets the same device again for an hour: one that a person has confirmed, and one
// that claimed a serial number of no asset.
func TestEnrollAgent_RepeatedByLostDevice(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.sameSerial(1, "SN-1")[0]
		f.agentCode("t1", 5)
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, f.requestFor(a), *f.may()))
		for key, serial := range map[string]string{"k1": "SN-1", "k2": "SN-2"} {
			first, err := f.enrolls(f.Context(), f.db, "t1", key, serial, true)
			f.ok(err)
			f.clock.Advance(20 * time.Minute)
			again, err := f.enrolls(f.Context(), f.db, "t1", key, serial, true)
			f.ok(err)
			equal(f, "the device again", words(again.ID, again.AssetID, again.Epoch), words(first.ID, first.AssetID, first.Epoch))
		}
		equal(f, "requests", len(f.lostDevices()), 0)
		f.clock.Advance(time.Hour)
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
	})
}

// A device that asked in time comes back after the time of a code for several devices, unless the code is revoked.
func TestEnrollmentRequests_OutliveCodeForSeveralDevices(t *testing.T) {
	withCompany(t, func(f *fixture) {
		first, second := f.sameSerial(1, "SN-1")[0], f.sameSerial(1, "SN-2")[0]
		c := f.agentCode("t1", 5)
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k2", "SN-2"))
		f.clock.Advance(3 * provisioning.Lifetime)
		f.token("t2") // drops what ended
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		f.code(fault.Refused, f.lost("t1", "k3", "SN-1"))
		f.code(fault.Refused, f.plain("t1", "k3", "SN-3"))
		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, f.requestFor(first), *f.may()))
		f.ok(f.lost("t1", "k1", "SN-1"))
		equal(f, "the asset's enrollment", f.asset(first.ID).Device.Epoch, 2)
		f.ok(f.db.ConfirmRequest(f.Context(), f.company.ID, f.requestFor(second), *f.may()))
		_, err := f.db.RevokeCode(f.Context(), f.company.ID, nil, c.ID)
		f.ok(err)
		f.code(fault.Refused, f.lost("t1", "k2", "SN-2"))
		equal(f, "the other asset's enrollment", f.asset(second.ID).Device.Epoch, 1)
	})
}

// A request expires with its code, is swept, and one that was declined needs another code.
func TestEnrollmentRequests_End(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.sameSerial(1, "SN-1")
		for _, token := range []string{"t1", "t2", "t3", "t4"} {
			f.token(token)
		}
		for _, token := range []string{"t1", "t2", "t3"} {
			f.is(agentdevice.ErrWaiting, f.lost(token, token, "SN-1"))
		}
		f.code(fault.RateLimited, f.lost("t4", "t4", "SN-1"))
		f.ok(f.db.DeclineRequest(f.Context(), f.company.ID, f.lostDevices()[0].ID))
		f.code(fault.Refused, f.lost("t1", "t1", "SN-1"))
		f.is(agentdevice.ErrWaiting, f.lost("t4", "t4", "SN-1"))
		f.clock.Advance(agentdevice.RequestLifetime)
		equal(f, "requests", len(f.lostDevices()), 0)
		f.code(fault.Refused, f.lost("t2", "t2", "SN-1"))
		f.clock.Advance(time.Second)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		equal(f, "recorded", words(f.recorded(activity.EnrollmentAsked), f.recorded(activity.EnrollmentDeclined)), "4 1")
	})
}

// is fails unless an error is the one that is wanted.
func (f *fixture) is(want, err error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("got %v, want %v", err, want)
	}
}
