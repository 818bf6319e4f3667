package database_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
)

// code adds a code of the platform with its token.
func (f *fixture) enrollmentCode(devices int, tags ...string) provisioning.Code {
	f.Helper()
	p := f.newPolicy(words("Policy", resource.NewID()))
	c := provisioning.Code{ID: resource.NewID(), CompanyID: f.company.ID, PolicyID: p.ID, Management: policy.Platform,
		Usage: provisioning.Disallowed,
		Maker: access.OperatorActor("ada"), Tags: tags, MaxDevices: devices, CreatedAt: f.clock.Now(),
		ExpiresAt: f.clock.Now().Add(provisioning.Lifetime)}
	f.ok(f.db.CreateCode(f.Context(), c))
	f.ok(f.db.IssueCode(f.Context(), c.CompanyID, c.ID, "tokens/"+c.ID, c.ExpiresAt))
	return f.kept(c.ID)
}

// kept is a code as it is listed.
func (f *fixture) kept(id string) provisioning.Code {
	f.Helper()
	all, err := f.db.Codes(f.Context(), f.company.ID, nil, 100)
	f.ok(err)
	for _, c := range all {
		if c.ID == id {
			return c
		}
	}
	f.Fatalf("no code %s is listed", id)
	return provisioning.Code{}
}

// enrollsWith enrolls a device of the platform with a code.
func (f *fixture) enrollsWith(c provisioning.Code, device string) asset.Asset {
	f.Helper()
	o := f.joined(device, c.PolicyID)
	o.Code = c.ID
	return f.asset(f.observe(o).AssetID)
}

// issuer is a platform that deletes tokens, or does not.
type issuer struct {
	provisioning.Issuer
	fail    error
	dropped []string
}

func (i *issuer) Withdraw(_ context.Context, t provisioning.Token) error {
	if i.fail == nil {
		i.dropped = append(i.dropped, t.Ref)
	}
	return i.fail
}

func (f *fixture) dropper(i *issuer) provisioning.Dropper {
	return provisioning.Dropper{Codes: f.db, Issuer: i, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}
}

func TestEnrollmentCode_CountsItsDevices(t *testing.T) {
	withCompany(t, func(f *fixture) {
		c, vendor := f.enrollmentCode(2, "store-12", "loaner"), &issuer{}
		a := f.enrollsWith(c, "d1")
		equal(f, "tags", strings.Join(a.Tags, ","), "store-12,loaner")
		again := f.joined("d1", c.PolicyID)
		again.Code, again.Enrolling = c.ID, false
		f.observe(again) // a report names the code, too
		equal(f, "devices", f.kept(c.ID).Devices, 1)
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "dropped while it is active", len(vendor.dropped), 0)
		f.enrollsWith(c, "d2")
		equal(f, "status", f.kept(c.ID).Status(f.clock.Now()), provisioning.CodeUsed)
		vendor.fail = errors.New("not now")
		f.ok(f.dropper(vendor).Round(f.Context()))
		late := f.enrollsWith(c, "d3") // before the platform has deleted its token
		equal(f, "marked", strings.Join(late.Tags, ","), "store-12,loaner,"+provisioning.OverLimit)
		equal(f, "devices beyond the limit", f.kept(c.ID).Devices, 3)
		vendor.fail = nil
		f.clock.Advance(2 * time.Minute)
		f.ok(f.dropper(vendor).Round(f.Context()))
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "deleted at the platform", fmt.Sprint(vendor.dropped), fmt.Sprint([]string{"tokens/" + c.ID}))

		other := f.newCompany("other")
		foreign := f.joined("d4", c.PolicyID)
		foreign.CompanyID, foreign.Code = other.ID, c.ID
		f.observe(foreign)
		equal(f, "devices of others", f.kept(c.ID).Devices, 3)
		f.clock.Advance(provisioning.Lifetime + provisioning.KeepCodes + time.Hour)
		f.ok(f.db.Sweep(f.Context(), f.clock.Now()))
		all, err := f.db.Codes(f.Context(), f.company.ID, nil, 10)
		f.ok(err)
		equal(f, "kept after their time", len(all), 0)
	})
}

// The platform ends a one-time token itself: nothing is deleted after its device.
func TestEnrollmentCode_OneTime(t *testing.T) {
	withCompany(t, func(f *fixture) {
		c, unused, vendor := f.enrollmentCode(1), f.enrollmentCode(1), &issuer{}
		f.enrollsWith(c, "d1")
		equal(f, "status", f.kept(c.ID).Status(f.clock.Now()), provisioning.CodeUsed)
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "deleted after its device", len(vendor.dropped), 0)
		_, err := f.db.RevokeCode(f.Context(), f.company.ID, nil, unused.ID)
		f.ok(err)
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "deleted as it was revoked", len(vendor.dropped), 1)
	})
}

func TestEnrollmentCode_Revoked(t *testing.T) {
	withCompany(t, func(f *fixture) {
		c, vendor := f.enrollmentCode(0), &issuer{}
		_, err := f.db.RevokeCode(f.Context(), f.newCompany("other").ID, nil, c.ID)
		f.code(fault.NotFound, err)
		revoked, err := f.db.RevokeCode(f.Context(), f.company.ID, nil, c.ID)
		f.ok(err)
		equal(f, "status", revoked.Status(f.clock.Now()), provisioning.CodeRevoked)
		_, err = f.db.RevokeCode(f.Context(), f.company.ID, nil, c.ID)
		f.code(fault.Unsupported, err)
		var all sync.WaitGroup
		for range 4 { // replicas
			all.Go(func() {
				if err := f.dropper(&issuer{fail: errors.New("not now")}).Round(f.Context()); err != nil {
					f.Error(err)
				}
			})
		}
		all.Wait()
		equal(f, "not deleted yet", f.kept(c.ID).Dropping, true)
		f.clock.Advance(2 * time.Minute)
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "deleted", len(vendor.dropped), 1)
		equal(f, "deleted by then", f.kept(c.ID).Dropping, false)
		equal(f, "marked", strings.Join(f.enrollsWith(c, "d1").Tags, ","), provisioning.OverLimit)
		equal(f, "recorded", f.recorded(activity.ProvisioningRevoked), 1)
		late := provisioning.Code{ID: resource.NewID(), CompanyID: f.company.ID, PolicyID: c.PolicyID, Management: policy.Platform,
			CreatedAt: f.clock.Now(), ExpiresAt: f.clock.Now().Add(time.Hour)}
		f.ok(f.db.CreateCode(f.Context(), late)) // revoked while the platform makes its token
		_, err = f.db.RevokeCode(f.Context(), f.company.ID, nil, late.ID)
		f.ok(err)
		f.ok(f.db.IssueCode(f.Context(), late.CompanyID, late.ID, "tokens/late", late.ExpiresAt))
		f.ok(f.dropper(vendor).Round(f.Context()))
		equal(f, "deleted late", fmt.Sprint(vendor.dropped[1:]), "[tokens/late]")
		agents := late
		agents.ID, agents.Management = resource.NewID(), policy.Agent
		f.ok(f.db.CreateCode(f.Context(), agents))
		_, err = f.db.RevokeCode(f.Context(), f.company.ID, nil, agents.ID)
		f.ok(err)
		f.ok(f.db.IssueCode(f.Context(), agents.CompanyID, agents.ID, "", agents.ExpiresAt))
		equal(f, "to delete at the platform, of an agent's code", f.kept(agents.ID).Dropping, false)
	})
}

// A company that is disconnected from the platform has no codes of the platform, and their tokens are not deleted: the
// platform does not answer for the enterprise. Codes that ended before, and those of agents, stay as they are.
func TestEnrollmentCode_Disconnected(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.connect("enterprises/a")
		active, revoked, used := f.enrollmentCode(0), f.enrollmentCode(0), f.enrollmentCode(1)
		_, err := f.db.RevokeCode(f.Context(), f.company.ID, nil, revoked.ID)
		f.ok(err)
		f.enrollsWith(used, "d1")
		agents := provisioning.Code{ID: resource.NewID(), CompanyID: f.company.ID, PolicyID: f.agentPolicy("Kiosk").ID,
			Management: policy.Agent, CreatedAt: f.clock.Now(), ExpiresAt: f.clock.Now().Add(provisioning.Lifetime)}
		f.ok(f.db.CreateCode(f.Context(), agents))
		now := f.clock.Now()
		f.ok(f.db.BeginDisconnection(f.Context(), f.company.ID, "enterprises/a", true, now))
		f.ok(f.db.FinishDisconnection(f.Context(), f.company.ID, "enterprises/a", now))
		for what, c := range map[string]struct {
			id   string
			want provisioning.CodeStatus
		}{"active": {active.ID, provisioning.CodeRevoked}, "revoked": {revoked.ID, provisioning.CodeRevoked},
			"used": {used.ID, provisioning.CodeUsed}, "of agents": {agents.ID, provisioning.CodeActive}} {
			equal(f, what, f.kept(c.id).Status(now), c.want)
		}
		due, err := f.db.DueDrops(f.Context(), now.Add(time.Minute), now.Add(time.Hour), 10)
		f.ok(err)
		equal(f, "tokens that the platform is to delete", len(due), 0)
	})
}
