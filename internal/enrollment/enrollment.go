// Package enrollment applies to the inventory what channels observe of devices: that they
// enroll, report, or are no longer managed (contract 3.4).
package enrollment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
)

// Observation is what a channel observed of one device, in the terms of this package.
// Members that the device did not report are zero and change nothing.
type Observation struct {
	CompanyID string
	// Device is the device's name at its channel; Previous are names that the
	// same device had before it was enrolled again.
	Device     string
	Previous   []string
	Management asset.Management
	Ownership  asset.Ownership
	Mode       asset.Mode
	// Identity: the channel's own stable id if it has one, else brand and
	// serial number, else the device's name alone.
	StableID     string
	SerialNumber string
	Brand        string
	Model        string
	APILevel     int

	// AssetID is the asset that the device proved to be, by a token that was made
	// for the asset or by its former key, while the asset is at AssetEpoch.
	// Observe fails with fault.Refused if it no longer is. Empty: find it.
	AssetID    string
	AssetEpoch int

	// Code is the enrollment code that the device says it enrolled with; empty: unknown.
	Code string
	// Enrolling: the device has (again) joined; otherwise it only reports.
	Enrolling bool
	// Gone: the device is no longer managed.
	Gone bool
	// LostMode is nil when unknown.
	LostMode *bool

	PolicyID       string // the policy assigned at the channel
	AppliedPolicy  string // id of the policy that the device applied; empty: not reported, the stored value stays
	AppliedVersion int    // our version of it; 0: unknown
	AppliedPush    int64  // the platform's version of it, which is translated when the observation is applied; else 0

	Specifications map[string]string
	StatusReport   json.RawMessage
	// Compliance are members of a status report that replace those of the last
	// one, which otherwise stays.
	Compliance json.RawMessage
	Location   *asset.Location
	// Apps are all that the device reports; nil if it says nothing of them.
	Apps       []asset.App
	EnrolledAt time.Time
	ReportedAt time.Time // the device's own time of report
	// ObservedAt orders observations of one device: an older one than the last
	// applied is dropped.
	ObservedAt time.Time
	// MessageID drops a notification that was applied already; empty: none.
	MessageID string
}

// Change is what an observation did.
type Change struct {
	Applied bool // false: a duplicate, stale, or about a device that ended
	AssetID string
	Epoch   int
	// CodeGoesOn: other devices may enroll with its code, too.
	CodeGoesOn bool
	Ended      bool   // stopped being managed
	PolicyID   string // the policy that the device now has applied
}

// Store applies observations. Each method fails as the database does, and with the faults that it
// names. Concurrent use is safe.
type Store interface {
	// Observe applies one observation in one transaction: identity, asset,
	// device, counters, the message's id. A device that joins again gets a new
	// epoch, and open commands of the old one end ERROR. It fails with fault.NotFound if
	// the asset is gone, with fault.Refused if the device must not be the asset
	// AssetID, or if the policy to which it moves an agent was deleted, and with
	// fault.Unavailable if the device joins while assets of the company are imported.
	Observe(ctx context.Context, o Observation) (Change, error)
	// MarkInactive makes up to limit devices INACTIVE that have not been in touch since
	// silentSince, and returns how many.
	MarkInactive(ctx context.Context, companyID string, silentSince time.Time, limit int) (int, error)
}

// Service applies observations of channels. An agent's enrollment is applied by EnrollAgent, in the
// transaction that redeems its token. Concurrent use is safe.
type Service struct {
	Store Store
	// Companies lists the tenants whose devices may fall silent.
	Companies func(ctx context.Context) ([]company.Company, error)
	Now       func() time.Time
}

// Observe applies what Observation.Clean leaves of an observation. The adapter passes the Change of
// every report that is applied to the command service: if it crashes before that, the next report
// repeats it. Observe fails as Store.Observe does, and with fault.InvalidArguments for an observation
// that can never be applied: acknowledge it.
func (s *Service) Observe(ctx context.Context, o Observation) (Change, error) {
	clean, err := o.Clean(s.Now())
	if err != nil {
		return Change{}, err
	}
	return s.Store.Observe(ctx, clean)
}

const inactiveBatch = 500

// SweepInactive makes enrolled devices INACTIVE that have not been in touch for longer than their company
// allows (contract 3.4), and returns how many. If it fails for a company, it continues with the
// others, and returns the errors of all. Call it every few minutes. Several replicas can call it at
// the same time.
func (s *Service) SweepInactive(ctx context.Context) (int, error) {
	companies, err := s.Companies(ctx)
	if err != nil {
		return 0, err
	}
	total, now := 0, s.Now()
	for _, c := range companies {
		after := c.InactiveAfter
		if after <= 0 {
			after = company.DefaultInactiveAfter
		}
		for {
			n, failed := s.Store.MarkInactive(ctx, c.ID, now.Add(-after), inactiveBatch)
			total += n
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("company %s: %w", c.Slug, failed))
			}
			if failed != nil || n < inactiveBatch {
				break
			}
		}
	}
	return total, err
}
