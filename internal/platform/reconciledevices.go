package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/googleapi"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
)

// Inventories compares each enterprise's devices with ours, until the context
// ends: a user who removes the work profile may leave without a word, and a
// notification of an enrollment may be lost. Over all replicas an enterprise is
// listed once in Schedule.Devices.
func (p *Platform) Inventories(ctx context.Context) error {
	// To look more often than that finds what another replica did not do.
	return p.every(ctx, p.cfg.Schedule.Devices/4, "listing devices", func(ctx context.Context) error {
		owners, err := p.store.Companies.Companies(ctx)
		if err != nil {
			return err
		}
		troubles, err := p.store.Enterprises.EnterpriseTroubles(ctx)
		if err != nil {
			return err
		}
		for _, owner := range owners {
			if !owner.Connected() || !troubles[owner.ID].LostSince.IsZero() {
				continue
			}
			if e := p.compareOnce(ctx, owner); e != nil {
				err = errors.Join(err, fmt.Errorf("company %s: %w", owner.Slug, e))
			}
		}
		return err
	})
}

// compareOnce compares unless some replica did lately. The lease is not given
// back: it says that this was done. But what failed may be tried again.
func (p *Platform) compareOnce(ctx context.Context, owner company.Company) error {
	lease, holder := "platform/devices/"+owner.ID, resource.NewLeaseHolder("platform")
	held, err := p.store.Leases.Lease(ctx, lease, holder, p.cfg.Schedule.Devices*9/10)
	if err != nil || !held {
		return err
	}
	if err = errors.Join(p.renameLater(ctx, owner), p.CompareDevices(ctx, owner)); err != nil {
		p.release(ctx, lease, holder)
	}
	return err
}

// CompareDevices lists a company's devices at the vendor: one that we do not
// know joins, one that the vendor no longer knows ends. Only a complete list
// says that a device is missing. A device that cannot be read keeps no other from
// being compared.
func (p *Platform) CompareDevices(ctx context.Context, owner company.Company) error {
	known, err := p.store.Records.DeviceNames(ctx, owner.ID)
	if err != nil {
		return err
	}
	listed, err := p.deviceNames(ctx, owner.Enterprise)
	if err != nil {
		return err
	}
	for name := range listed {
		if _, ok := known[name]; ok {
			delete(known, name)
			continue
		}
		if e := p.discover(ctx, owner, name); e != nil {
			if err = errors.Join(err, e); endsRound(e) {
				return err
			}
		}
	}
	// What is left was ours before the listing began, and is not in it. Each is
	// asked for by name, so that no fault of a list can end a device.
	for name := range known {
		if _, e := p.revisit(ctx, owner, name); e != nil {
			if err = errors.Join(err, e); endsRound(e) {
				return err
			}
		}
	}
	return err
}

// endsRound reports whether a call failed as the next one would.
func endsRound(err error) bool {
	return slices.Contains([]outcome.Code{outcome.NotSent, outcome.Throttled, outcome.Denied}, codeOf(err))
}

// deviceNames lists the names of an enterprise's devices, completely.
func (p *Platform) deviceNames(ctx context.Context, enterprise string) (map[string]bool, error) {
	names, token := map[string]bool{}, ""
	for {
		answer, err := ask(ctx, p, methodListDevices, background, p.am.Enterprises.Devices.List(enterprise).PageSize(100).PageToken(token).
			Fields(googleapi.Field("nextPageToken"), googleapi.Field("devices/name")))
		if err != nil {
			return nil, err
		}
		for _, d := range answer.Devices {
			if d != nil && isDevice(d.Name) {
				names[d.Name] = true
			}
		}
		if answer.NextPageToken == "" || answer.NextPageToken == token {
			return names, nil
		}
		token = answer.NextPageToken
	}
}

// discover takes up a device that the vendor has and we do not.
func (p *Platform) discover(ctx context.Context, owner company.Company, name string) error {
	d, asOf, err := p.readDevice(ctx, name, background)
	if codeOf(err) == outcome.Missing {
		return nil
	}
	if err != nil {
		return err
	}
	return p.see(ctx, owner, d, asOf, true)
}

// revisit reads a device again, and ends it if the vendor no longer has it: then
// the device is nil.
func (p *Platform) revisit(ctx context.Context, owner company.Company, name string) (*androidmanagement.Device, error) {
	d, asOf, err := p.readDevice(ctx, name, background)
	if codeOf(err) == outcome.Missing {
		if confirmed := p.enterpriseExists(ctx, owner.Enterprise); confirmed != nil {
			return nil, confirmed
		}
		_, err = p.observe(ctx, goneObservation(owner, name, p.missingSince(err)))
		return nil, err
	}
	if err == nil {
		err = p.see(ctx, owner, d, asOf, false)
	}
	if err != nil || deleted(d) {
		return nil, err
	}
	return d, nil
}

// see applies a device that was read. One that had ended in our inventory, but
// that the vendor has, begins again.
func (p *Platform) see(ctx context.Context, owner company.Company, d *androidmanagement.Device, asOf time.Time, joining bool) error {
	seen := p.observation(owner, d)
	seen.ObservedAt, seen.Enrolling = asOf, joining && !seen.Gone
	_, err := p.observe(ctx, seen)
	return err
}
