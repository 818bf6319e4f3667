package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/outcome"

	"google.golang.org/api/pubsub/v1"
)

// Grade is how good or bad a Finding is.
type Grade string

// The grades.
const (
	Fine    Grade = "ok"
	Warning Grade = "warning"
	Bad     Grade = "failed"
)

// Finding is the result of one check of the platform's set-up, in plain words.
type Finding struct {
	Check  string
	Grade  Grade
	Detail string
	Remedy string // empty if nothing is to be done
}

// ProbeCompanies looks whether notifications are delivered to our subscription, and at
// each company's enterprise. It needs the stores Companies and Enterprises.
func (p *Platform) ProbeCompanies(ctx context.Context) []Finding {
	notified, topic := p.probeSubscription(ctx)
	findings := []Finding{notified}
	owners, err := p.store.Companies.Companies(ctx)
	troubles := map[string]company.Trouble{}
	if err == nil {
		troubles, err = p.store.Enterprises.EnterpriseTroubles(ctx)
	}
	if err != nil {
		return append(findings, Finding{"enterprises", Bad, "the companies cannot be read: " + err.Error(), "check the database"})
	}
	for n, owner := range owners {
		var f Finding
		if begun := troubles[owner.ID].Disconnecting; begun.IsZero() {
			f = p.probeCompany(ctx, owner, topic)
		} else {
			f = Finding{"company " + owner.Slug, Bad,
				"it is being disconnected since " + begun.Format(time.RFC3339) + ", and that is not finished",
				"muster company disconnect --company " + owner.Slug + " --confirm " + owner.Slug}
		}
		if ctx.Err() != nil {
			return append(findings, Finding{"enterprises", Warning,
				fmt.Sprintf("there was no time to ask for %d of %d companies", len(owners)-n, len(owners)),
				"check how long the platform takes to answer: each company is asked for in turn"})
		}
		findings = append(findings, f)
	}
	return findings
}

// ProbeAPI looks whether the platform is reached and takes our credentials. It
// needs no store.
func (p *Platform) ProbeAPI(ctx context.Context) Finding {

	_, err := ask(ctx, p, methodListEnterprises, urgent, p.am.Enterprises.List().ProjectId(p.cfg.Project).PageSize(1))
	f := Finding{Check: "platform", Grade: Bad, Detail: plain(err)}
	switch codeOf(err) {
	case outcome.Done:
		return Finding{"platform", Fine, "reached, and it takes our credentials for project " + p.cfg.Project, ""}
	case outcome.NotSent:
		f.Remedy = "check the network, the proxy and MUSTER_PLATFORM_ENDPOINT"
	case outcome.Denied, outcome.Missing:
		f.Remedy = "check that the Android Management API is enabled in project " + p.cfg.Project +
			" and that the service account has the role Android Management User there"
	case outcome.Refused:
		f.Remedy = "check MUSTER_PLATFORM_PROJECT"
	default:
		f.Remedy = "try again in a minute"
	}
	return f
}

// probeSubscription also returns the topic to which enterprises should publish;
// empty if it is not known.
func (p *Platform) probeSubscription(ctx context.Context) (Finding, string) {
	const check = "notifications"
	s, err := p.subscription(ctx)
	switch codeOf(err) {
	case outcome.Done:
	case outcome.Missing:
		return Finding{check, Bad, "there is no subscription " + p.cfg.Subscription,
			"create it, never expiring, on a topic to which android-cloud-policy@system.gserviceaccount.com may publish; or set " +
				"MUSTER_PLATFORM_SUBSCRIPTION"}, p.cfg.Topic
	case outcome.Denied:
		return Finding{check, Bad, plain(err), "give the service account the role Pub/Sub Subscriber on " + p.cfg.Subscription}, p.cfg.Topic
	default:
		return Finding{check, Bad, plain(err), "try again in a minute"}, p.cfg.Topic
	}
	if p.cfg.Topic != "" && s.Topic != p.cfg.Topic {
		return Finding{check, Warning, fmt.Sprintf("subscription %s is on topic %s, but enterprises are told to publish to %s",
			p.cfg.Subscription, s.Topic, p.cfg.Topic),
			"subscribe to the topic to which the enterprises publish"}, p.cfg.Topic
	}
	return Finding{check, Fine, "subscription " + p.cfg.Subscription + " is on topic " + s.Topic, ""}, s.Topic
}

// subscription reads our subscription.
func (p *Platform) subscription(ctx context.Context) (*pubsub.Subscription, error) {
	return ask(ctx, p, methodGetSubscription, free, p.pubsub.Projects.Subscriptions.Get(p.cfg.Subscription))
}

// topic is where enterprises are to publish: as configured, else where our
// subscription listens.
func (p *Platform) topic(ctx context.Context) (string, error) {
	if p.cfg.Topic != "" {
		return p.cfg.Topic, nil
	}
	s, err := p.subscription(ctx)
	if err != nil {
		return "", err
	}
	return s.Topic, nil
}

func (p *Platform) probeCompany(ctx context.Context, owner company.Company, topic string) Finding {
	check := "company " + owner.Slug
	if !owner.Connected() {
		return Finding{check, Warning, "not connected to the platform", "muster company connect --company " + owner.Slug}
	}
	e, err := ask(ctx, p, methodGetEnterprise, urgent, p.am.Enterprises.Get(owner.Enterprise))
	switch {
	case codeOf(err) == outcome.Missing || codeOf(err) == outcome.Denied:
		return Finding{check, Bad, owner.Enterprise + " does not exist, or is not ours", disconnectRemedy(owner)}
	case err != nil:
		return Finding{check, Bad, plain(err), "try again in a minute"}
	case topic != "" && e.PubsubTopic != topic:
		return Finding{check, Bad, fmt.Sprintf("%s publishes to %q instead of %s: nothing of its devices is heard", owner.Enterprise,
			e.PubsubTopic, topic),
			"muster company connect --company " + owner.Slug}
	}
	for _, kind := range notificationTypes() {
		if !slices.Contains(e.EnabledNotificationTypes, kind) {
			return Finding{check, Bad, owner.Enterprise + " does not publish " + kind, "muster company connect --company " + owner.Slug}
		}
	}
	return Finding{check, Fine, "bound to " + owner.Enterprise, ""}
}

// plain is a failure in words for an operator.
func plain(err error) string {
	f, ok := errors.AsType[*Failure](err)
	switch {
	case err == nil:
		return ""
	case !ok:
		return "an unexpected error: " + err.Error()
	case f.Message != "" && f.Status != 0:
		return fmt.Sprintf("the platform answered %d: %s", f.Status, f.Message)
	case f.Message != "":
		return f.Message
	case f.Status != 0:
		return fmt.Sprintf("the platform answered %d", f.Status)
	case f.err != nil:
		return "the platform was not reached: " + f.err.Error()
	}
	return "the platform was not reached"
}
