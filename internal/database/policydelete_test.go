package database_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
)

// deleted deletes a policy and returns how many codes ended.
func (f *fixture) deleted(policyID string) int {
	f.Helper()
	codes, err := f.db.DeletePolicy(f.Context(), f.company.ID, policyID, f.clock.Now())
	f.ok(err)
	return codes
}

// No device enrolls under a policy that was deleted: its codes and tokens end with it.
func TestDeletePolicy_EndsAgentCodes(t *testing.T) {
	withCompany(t, func(f *fixture) {
		c, other := f.agentCode("t1", 5), f.agentCode("t2", 1)
		equal(f, "codes", f.deleted(c.PolicyID), 1)
		equal(f, "status", f.kept(c.ID).Status(f.clock.Now()), provisioning.CodeRevoked)
		_, err := f.redeem(agentdevice.Token{Hash: sha256.Sum256([]byte("t1"))}, "SN-1")
		f.code(fault.Refused, err)
		_, err = f.redeem(agentdevice.Token{Hash: sha256.Sum256([]byte("t2"))}, "SN-2")
		f.ok(err)
		equal(f, "code of another policy", f.kept(other.ID).Devices, 1)
		equal(f, "recorded", words(f.recorded(activity.ProvisioningRevoked), f.recorded(activity.PolicyDeleted)), "1 1")
		c.ID = resource.NewID()
		f.code(fault.Refused, f.db.CreateCode(f.Context(), c))
		f.ok(f.db.CreateAgentToken(f.Context(), agentdevice.Token{Hash: sha256.Sum256([]byte("t3")), CompanyID: f.company.ID,
			PolicyID: c.PolicyID, ExpiresAt: c.ExpiresAt})) // another replica had looked before
		_, err = f.redeem(agentdevice.Token{Hash: sha256.Sum256([]byte("t3"))}, "SN-3")
		f.code(fault.Refused, err)
	})
}

// A device that waits to be enrolled again with a code of the policy waits no longer, and a
// token for one asset ends.
func TestDeletePolicy_EndsRequestsAndAssetTokens(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.setLimit(1, 60)
		all := f.sameSerial(1, "SN-1")
		c := f.agentCode("t1", 1)
		f.is(agentdevice.ErrWaiting, f.lost("t1", "k1", "SN-1"))
		token := agentdevice.Token{Hash: sha256.Sum256([]byte("t2")), CompanyID: f.company.ID, PolicyID: c.PolicyID, AssetID: all[0].ID,
			ExpiresAt: f.clock.Now().Add(time.Hour)}
		_, err := f.db.CreateAssetToken(f.Context(), token, nil)
		f.ok(err)
		equal(f, "ended", f.deleted(c.PolicyID), 2)
		equal(f, "requests", len(f.lostDevices()), 0)
		f.code(fault.Refused, f.lost("t1", "k1", "SN-1"))
		_, err = f.redeem(token, "SN-1")
		f.code(fault.Refused, err)
	})
}

// The platform's tokens are deleted there; a device that enrolls before that is marked.
func TestDeletePolicy_EndsPlatformCodes(t *testing.T) {
	withCompany(t, func(f *fixture) {
		c, vendor := f.enrollmentCode(0), &issuer{fail: errors.New("not now")}
		equal(f, "codes", f.deleted(c.PolicyID), 1)
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "marked", strings.Join(f.enrollsWith(c, "d1").Tags, ","), provisioning.OverLimit)
		vendor.fail = nil
		f.clock.Advance(2 * time.Minute)
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "deleted at the platform", fmt.Sprint(vendor.dropped), "[tokens/"+c.ID+"]")
	})
}

// A code is made for a policy, or the policy is deleted and the code ends: no order of the two
// leaves a code with which devices enroll.
func TestDeletePolicy_RacesWithCodes(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for n := range 5 {
			p := f.agentPolicy(fmt.Sprint("Policy ", n))
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					err := f.db.CreateCode(f.Context(), provisioning.Code{ID: resource.NewID(), CompanyID: f.company.ID, PolicyID: p.ID,
						Management: p.Type, MaxDevices: 1, CreatedAt: f.clock.Now(), ExpiresAt: f.clock.Now().Add(time.Hour)})
					if err != nil && fault.CodeOf(err) != fault.Refused {
						f.Error(err)
					}
				})
			}
			all.Go(func() {
				if err := f.deletePolicy(f.Context(), f.company.ID, p.ID, f.clock.Now()); err != nil {
					f.Error(err)
				}
			})
			all.Wait()
		}
		codes, err := f.db.Codes(f.Context(), f.company.ID, nil, 100)
		f.ok(err)
		for _, c := range codes {
			equal(f, "status", c.Status(f.clock.Now()), provisioning.CodeRevoked)
		}
	})
}

// A policy to which the platform may move a device, or may have moved it, is in use.
func TestDeletePolicy_MoveUnderWay(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, q := f.newPolicy("First"), f.newPolicy("Second")
		a := f.enroll("d1", p.ID)
		move := f.moveTo(a, q.ID)
		_, begun, err := f.db.Begin(f.Context(), move, nil)
		f.ok(err)
		equal(f, "begun", begun, true)
		_, _, err = f.db.Advance(f.Context(), move.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Unconfirmed})
		f.ok(err)
		f.code(fault.Refused, f.deletePolicy(f.Context(), f.company.ID, q.ID, f.clock.Now()))
		_, _, err = f.db.Advance(f.Context(), move.ID, command.Transition{From: []command.State{command.Unconfirmed}, To: command.Failed})
		f.ok(err)
		f.ok(f.deletePolicy(f.Context(), f.company.ID, q.ID, f.clock.Now()))
	})
}

// The outcome of a move stays unknown after a disconnection, but the device gets the policy by no other enterprise.
func TestDeletePolicy_MoveInAFormerEnterprise(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, q := f.newPolicy("First"), f.newPolicy("Second")
		a := f.enroll("d1", p.ID)
		_, _, err := f.db.Begin(f.Context(), f.moveTo(a, q.ID), nil)
		f.ok(err)
		f.code(fault.Refused, f.deletePolicy(f.Context(), f.company.ID, q.ID, f.clock.Now()))
		f.ok(f.db.BeginDisconnection(f.Context(), f.company.ID, f.company.Enterprise, true, f.clock.Now()))
		f.ok(f.db.FinishDisconnection(f.Context(), f.company.ID, f.company.Enterprise, f.clock.Now()))
		f.ok(f.deletePolicy(f.Context(), f.company.ID, q.ID, f.clock.Now()))
	})
}

// moveTo is the intent to move a device, of a request that has found the policy.
func (f *fixture) moveTo(a asset.Asset, policyID string) command.Command {
	move := f.intent(a, command.ChangePolicy)
	move.PolicyID = policyID
	return move
}

// A move begins before the deletion of its policy is decided, which is then refused, or not at all.
func TestDeletePolicy_RacesWithMoves(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("First").ID)
		for n := range 12 {
			p := f.newPolicy(fmt.Sprint("Policy ", n))
			move := f.moveTo(a, p.ID)
			var begun, deleted error
			var both sync.WaitGroup
			both.Go(func() { _, _, begun = f.db.Begin(f.Context(), move, nil) })
			both.Go(func() { deleted = f.deletePolicy(f.Context(), f.company.ID, p.ID, f.clock.Now()) })
			both.Wait()
			if begun == nil {
				f.code(fault.Refused, deleted)
				continue
			}
			f.code(fault.NotFound, begun)
			f.ok(deleted)
		}
		gone := f.newPolicy("Gone")
		f.deleted(gone.ID)
		_, _, err := f.db.Begin(f.Context(), f.moveTo(a, gone.ID), nil)
		f.code(fault.NotFound, err)
	})
}

// A policy to which a job moves devices is deleted once the job has ended, and no job moves devices
// to a policy that is not there.
func TestDeletePolicy_JobThatMoves(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.fleetOf(2)
		r := f.jobReplica(f.db, &sender{sent: map[string]int{}}, nil)
		_, p := f.jobMaker()
		to := f.newPolicy("Stores")
		create := func(maker access.Principal) (job.Job, error) {
			return r.service.Create(f.Context(), maker, job.Spec{Command: "change-policy", Filter: asset.Filter{CompanyID: f.company.ID},
				Arguments: json.RawMessage(`{"policyId": "` + resource.Of("acme", resource.Policies, to.ID) + `"}`)})
		}
		j, err := create(p)
		f.ok(err)
		_, err = f.db.MoveJob(f.Context(), f.company.ID, j.ID, job.Paused, job.ByPerson+"Ada")
		f.ok(err)
		err = f.deletePolicy(f.Context(), f.company.ID, to.ID, f.clock.Now())
		f.code(fault.Refused, err)
		equal(f, "names the job", strings.Contains(err.Error(), "the job “"+j.Title()+"” ("+j.ID+")"), true)
		_, err = f.db.MoveJob(f.Context(), f.company.ID, j.ID, job.Canceled, "")
		f.ok(err)
		limited := p
		limited.Policies = []string{f.newPolicy("Other").ID}
		_, err = create(limited)
		f.code(fault.Refused, err)
		f.deleted(to.ID)
		_, err = create(p)
		f.code(fault.Refused, err)
	})
}
