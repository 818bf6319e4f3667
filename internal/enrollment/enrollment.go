// Package enrollment is how devices join, report and leave: it turns what a
// channel observed into the inventory's state (contract 3.4).
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

// Observation is what a channel learned about one device, in our own words.
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
	AppliedPolicy  string // id of the policy that the device applied; empty: none yet
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

// Store applies observations.
type Store interface {
	// Observe applies one observation in one transaction: identity, asset,
	// device, counters, the message's id. A device that joins again gets a new
	// epoch, and open commands of the old one end ERROR.
	Observe(ctx context.Context, o Observation) (Change, error)
	// MarkInactive turns devices silent since before a time to INACTIVE, at
	// most limit of them, and says how many.
	MarkInactive(ctx context.Context, companyID string, silentSince time.Time, limit int) (int, error)
}

// Service is the one way in for what channels observe.
type Service struct {
	Store Store
	// Companies lists the tenants whose devices may fall silent.
	Companies func(ctx context.Context) ([]company.Company, error)
	Now       func() time.Time
}

// Observe applies what a channel learned of one device, after it was made fit
// to be kept: see Observation.Clean. The adapter tells the command service of
// the Change, on every report that is applied, so that a crash between the two
// is made good by the next. An observation that can never be applied is
// fault.InvalidArguments: acknowledge it.
func (s *Service) Observe(ctx context.Context, o Observation) (Change, error) {
	clean, err := o.Clean(s.Now())
	if err != nil {
		return Change{}, err
	}
	return s.Store.Observe(ctx, clean)
}

const inactiveBatch = 500

// SweepInactive turns enrolled devices that were silent for longer than their
// company allows to INACTIVE (contract 3.4), and says how many. One
// company's trouble does not keep the others from being swept. Call it every
// few minutes; any number of replicas may.
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
