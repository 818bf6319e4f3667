package platform

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/outcome"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/googleapi"
)

const stateDeleted = "DELETED"

// deleted reports whether the vendor says that a device is no longer managed,
// in either of the two places where it may say so.
func deleted(d *androidmanagement.Device) bool {
	return d.State == stateDeleted || d.AppliedState == stateDeleted
}

// readDevice reads a device and as of when the answer is, by the vendor's own
// clock: notifications carry times of that clock, and the newer word wins.
func (p *Platform) readDevice(ctx context.Context, name string, r rank) (*androidmanagement.Device, time.Time, error) {
	d, err := ask(ctx, p, methodGetDevice, r, p.am.Enterprises.Devices.Get(name))
	if err == nil && (d == nil || d.Name == "") {
		err = &Failure{Method: methodGetDevice, Code: outcome.Unknown, Message: "the answer names no device"}
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return d, p.asOf(d.Header), nil
}

// asOf is when the vendor answered, by its clock; it is whole seconds, rounded
// down, so that nothing newer is ever taken for older.
func (p *Platform) asOf(header http.Header) time.Time {
	if at, err := http.ParseTime(header.Get("Date")); err == nil {
		return at.UTC()
	}
	return p.now().UTC()
}

// missingSince is a time by the vendor's clock after all that it said before it
// answered that something does not exist.
func (p *Platform) missingSince(err error) time.Time {
	if answer, ok := errors.AsType[*googleapi.Error](err); ok && answer.Header != nil {
		return p.asOf(answer.Header).Add(time.Second)
	}
	return p.now().UTC()
}

// observation is a device in the domain's words. Whatever the device did not
// report is left zero and changes nothing.
func (p *Platform) observation(c company.Company, d *androidmanagement.Device) enrollment.Observation {
	o := enrollment.Observation{
		CompanyID: c.ID, Device: d.Name, Previous: d.PreviousDeviceNames,
		Management: asset.Platform, Ownership: known(d.Ownership, asset.CompanyOwned, asset.PersonallyOwned),
		Mode:     known(d.ManagementMode, asset.FullyManaged, asset.WorkProfile),
		APILevel: int(d.ApiLevel), Gone: deleted(d), LostMode: lostMode(d.AppliedState, d.State),
		PolicyID:      policyID(c.Enterprise, d.PolicyName),
		AppliedPolicy: policyID(c.Enterprise, d.AppliedPolicyName),
		EnrolledAt:    instant(d.EnrollmentTime), ReportedAt: instant(d.LastStatusReportTime),
		Code:           enrolledBy(d),
		Specifications: specifications(d), StatusReport: statusReport(d), Apps: apps(d),
	}
	if h := d.HardwareInfo; h != nil {
		o.StableID, o.SerialNumber = oneLine(h.EnterpriseSpecificId), oneLine(h.SerialNumber)
		o.Brand, o.Model = oneLine(h.Brand), oneLine(h.Model)
	}
	if o.AppliedPolicy != "" {
		o.AppliedPush = d.AppliedPolicyVersion
	}
	return o
}

// known is the vendor's word if it is one of some, else empty.
func known[T ~string](vendor string, words ...T) T {
	if slices.Contains(words, T(vendor)) {
		return T(vendor)
	}
	return ""
}

// lostMode is known when one of the device's states is: the one that it applies, or the one that it is to apply.
// Administrators set ACTIVE and DISABLED alone, so that a lost device is LOST in the first, if not in both.
func lostMode(states ...string) *bool {
	if slices.Contains(states, "LOST") {
		return new(true)
	}
	if slices.Contains(states, "ACTIVE") || slices.Contains(states, "DISABLED") {
		return new(false)
	}
	return nil
}
