package platform

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
)

// The results of a notification. After failed the platform sends the notification again, and after Foreign too until the
// notification is as old as foreignFor. With all other results it is acknowledged.
const (
	applied   = "applied"
	ignored   = "ignored"   // it changes nothing: no known kind, nothing new, or no device or command of this service
	Foreign   = "foreign"   // about an enterprise that no company here has, or had
	malformed = "malformed" // cannot be decoded, or its observation is not valid
	failed    = "failed"    // by an error of the service
)

// Applied reports whether a notification with this result was applied, or had nothing to apply.
func Applied(result string) bool { return result == applied || result == ignored }

// consume applies one notification and returns its result. The error is for the log; it does not change the result.
func (p *Platform) consume(ctx context.Context, n *notification) (string, error) {
	if n.kind == kindOther {
		return ignored, nil
	}
	enterprise := enterpriseOf(n.subject())
	owner, err := p.store.Companies.CompanyByEnterprise(ctx, enterprise)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return p.consumeForeign(ctx, n, enterprise)
	case err != nil:
		return failed, err
	}
	switch n.kind {
	case kindCommand:
		return p.consumeOperation(ctx, owner, n.operation, n.published)
	case kindUsageLogs:
		return p.consumeUsage(ctx, owner, n)
	}
	seen := p.observation(owner, n.device)
	seen.Enrolling = n.kind == kindEnrollment && !seen.Gone
	seen.ObservedAt, seen.MessageID = n.published, n.id
	return p.observe(ctx, seen)
}

// observe applies an observation, and then settles commands by the policy that the device has applied. It does both for
// every report: after a crash between the two steps the next report does what is missing.
func (p *Platform) observe(ctx context.Context, o enrollment.Observation) (string, error) {
	change, err := p.store.Inventory.Observe(ctx, o)
	switch {
	case fault.CodeOf(err) == fault.InvalidArguments:
		return malformed, err
	case err != nil:
		return failed, err
	case !change.Applied:
		return ignored, nil
	case change.PolicyID == "" || change.Ended || o.AppliedPolicy == "":
		return applied, nil
	}
	at := cmp.Or(o.ReportedAt, o.ObservedAt)
	if err := p.store.Commands.PolicyApplied(ctx, change.AssetID, change.PolicyID, asset.Platform, at); err != nil {
		return failed, err
	}
	return applied, nil
}

// consumeOperation settles a command by its operation at the platform, if that is done. at is when the device reported the
// result. After a command that ends the management, such as a wipe, it also ends the device here.
func (p *Platform) consumeOperation(ctx context.Context, owner company.Company, o *operation, at time.Time) (string, error) {
	if !o.Done {
		return ignored, nil
	}
	settled, ok, err := p.settle(ctx, owner, o, at)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return ignored, nil // not sent by this service, or to an earlier enrollment
	case err != nil:
		return failed, err
	}
	if settled.State == command.Succeeded && settled.Type.Row().EndsManagement {
		if result, err := p.observe(ctx, goneObservation(owner, o.device(), at)); result == failed {
			return failed, err
		}
	}
	if !ok {
		return ignored, nil
	}
	return applied, nil
}

// goneObservation is the observation that a device is no longer managed.
func goneObservation(owner company.Company, device string, at time.Time) enrollment.Observation {
	return enrollment.Observation{CompanyID: owner.ID, Device: device, Management: asset.Platform, Gone: true, ObservedAt: at}
}

// settle makes the operation's command final. It finds the command by the operation's name or, if the answer with the name
// was lost, by device, type and time. It returns false for a command that was final already, and fault.NotFound for none.
func (p *Platform) settle(ctx context.Context, owner company.Company, o *operation, at time.Time) (command.Command, bool, error) {
	types := commandTypes(&o.Metadata)
	feedback := command.Feedback{Ref: o.Name, At: at}
	var kind command.Type
	if len(types) > 0 {
		kind = types[0]
	}
	feedback.Succeeded, feedback.Outcome = o.settled(kind)
	c, ok, err := p.store.Commands.Settle(ctx, feedback)
	if fault.CodeOf(err) != fault.NotFound || o.createdAt().IsZero() {
		return c, ok, err
	}
	assetID, missing := p.store.Records.AssetOfDevice(ctx, owner.ID, o.device())
	if missing != nil {
		return c, false, missing
	}
	for _, t := range types {
		feedback.Sighting = command.Observation{AssetID: assetID, Type: t, IssuedAt: o.createdAt()}
		if c, ok, err = p.store.Commands.Settle(ctx, feedback); fault.CodeOf(err) != fault.NotFound {
			return c, ok, err
		}
	}
	// While this looked by time, the sender may have stored the operation's name.
	feedback.Sighting = command.Observation{}
	return p.store.Commands.Settle(ctx, feedback)
}

// maxLocations is how many locations of one notification are applied: the newest ones.
const maxLocations = 100

// consumeUsage applies what the usage log of a device in lost mode says: that its user ended lost mode, and then the locations,
// the newest first. A device that is not known joins with that. The last one to be applied has the id of the message, so that
// after a crash all are applied again.
func (p *Platform) consumeUsage(ctx context.Context, owner company.Company, n *notification) (string, error) {
	result, all := ignored, []enrollment.Observation{}
	if slices.ContainsFunc(n.usage.UsageLogEvents, userEndedLostMode) {
		all = append(all, enrollment.Observation{LostMode: new(false), ReportedAt: n.published})
	}
	for _, location := range p.locations(n) {
		all = append(all, enrollment.Observation{Location: location})
	}
	for i, seen := range all {
		seen.CompanyID, seen.Device, seen.Management, seen.ObservedAt = owner.ID, n.usage.Device, asset.Platform, n.published
		if i == len(all)-1 {
			seen.MessageID = n.id
		}
		one, err := p.observe(ctx, seen)
		if err != nil {
			return one, err
		}
		if one == applied {
			result = applied
		}
	}
	return result, nil
}

// userEndedLostMode reports whether an event says that.
func userEndedLostMode(e *androidmanagement.UsageLogEvent) bool {
	return e != nil && e.StopLostModeUserAttemptEvent != nil && e.StopLostModeUserAttemptEvent.Status == "ATTEMPT_SUCCEEDED"
}

// locations returns the newest locations of a usage log that have a time and are on the globe, the newest first.
func (p *Platform) locations(n *notification) (all []*asset.Location) {
	for _, e := range n.usage.UsageLogEvents {
		if e == nil || e.LostModeLocationEvent == nil || e.LostModeLocationEvent.Location == nil {
			continue
		}
		at, where := instant(e.EventTime), e.LostModeLocationEvent.Location
		l := enrollment.CleanLocation(&asset.Location{Latitude: where.Latitude, Longitude: where.Longitude, ReportedAt: at}, at, p.now())
		if l != nil && !at.IsZero() {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b *asset.Location) int { return b.ReportedAt.Compare(a.ReportedAt) })
	return all[:min(len(all), maxLocations)]
}

// handle consumes one message, counts and logs its result, and returns after how long the platform is to send it again;
// zero: acknowledge it.
func (p *Platform) handle(ctx context.Context, d delivery) time.Duration {
	n, err := d.notification, d.err
	result := malformed
	if err == nil {
		result, err = p.consume(ctx, &n)
	}
	lag := time.Duration(0)
	if !n.published.IsZero() {
		lag = max(0, p.now().Sub(n.published))
	}
	p.seen.Notification(n.kind, result, lag)
	level := slog.LevelDebug
	if result == malformed || result == failed {
		level = slog.LevelWarn
	}
	p.log.LogAttrs(ctx, level, "platform notification", slog.String("kind", n.kind), slog.String("named", n.named),
		slog.String("message", n.id), slog.String("result", result), slog.Duration("lag", lag), slog.Any("error", err))
	return p.again(&n, result)
}
