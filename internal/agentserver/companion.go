package agentserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
)

// enrollCompanion ties an agent to the platform device that the token names. It
// joins nothing to the inventory: the device is there already, and is managed by
// the platform.
func (l *Server) enrollCompanion(ctx context.Context, r protocol.EnrollRequest, made agentdevice.Device) (protocol.EnrollAnswer, error) {
	d, err := l.Companions.RedeemCompanionToken(ctx, sha256.Sum256([]byte(r.Token)), made, made.EnrolledAt.Add(-redeemAgain))
	if fault.CodeOf(err) == fault.Refused {
		return protocol.EnrollAnswer{}, badToken()
	}
	if err != nil {
		return protocol.EnrollAnswer{}, err
	}
	return l.welcome(d, r)
}

// hearCompanion applies what a companion reports about its device. It says nothing of
// policies, and it does not decide whether the device is managed: the platform's
// notifications do. Once that device has ended, so has the companion. It reports
// whether a place was taken over.
func (l *Server) hearCompanion(ctx context.Context, d agentdevice.Device, r protocol.CheckinRequest,
	now time.Time) (located bool, err error) {
	report, err := l.companionReport(ctx, d, r, now)
	if err != nil {
		l.Log.WarnContext(ctx, "a companion's report that cannot be kept is dropped", "device", d.ID, "error", err)
		report = agentdevice.CompanionReport{SeenAt: now}
	}
	current, err := l.Companions.ReportCompanion(ctx, d, report)
	if err != nil || current {
		return current && report.Location != nil, err
	}
	if err := l.endCompanion(ctx, d); err != nil {
		return false, err
	}
	return false, l.tombstone(d, d.Signature)
}

// companionReport cleans what a companion reports as an enrolled device's words
// are cleaned.
func (l *Server) companionReport(ctx context.Context, d agentdevice.Device, r protocol.CheckinRequest,
	now time.Time) (agentdevice.CompanionReport, error) {
	o := enrollment.Observation{CompanyID: d.CompanyID, Device: d.ID, Management: asset.Agent, ReportedAt: now, ObservedAt: now}
	if r.Status != nil {
		o.StatusReport = statusReport(r.Status.Values, deviceTime(r.Status.At, now), companionMember)
	}
	o.Location = l.location(ctx, d, r.Location, now)
	o, err := o.Clean(now)
	if err != nil {
		return agentdevice.CompanionReport{}, err
	}
	report := agentdevice.CompanionReport{Status: o.StatusReport, SeenAt: now}
	if o.Location != nil {
		report.Location, err = json.Marshal(o.Location)
	}
	return report, err
}

// endCompanion ends a companion. Its device goes on without it.
func (l *Server) endCompanion(ctx context.Context, d agentdevice.Device) error {
	if err := l.Companions.SetPushToken(ctx, d, ""); err != nil {
		return err
	}
	_, err := l.end(ctx, d, agentdevice.Ending{How: agentdevice.Replaced})
	return err
}
