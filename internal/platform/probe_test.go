package platform_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/platform"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/option"
)

// probe returns the finding of a check.
func (b *bench) probe(check string) platform.Finding {
	b.Helper()
	found := []platform.Finding{b.platform.ProbeAPI(b.Context())}
	if found[0].Grade == platform.Fine {
		found = append(found, b.platform.ProbeCompanies(b.Context())...)
	}
	for _, f := range found {
		if (f.Grade != platform.Fine) != (f.Remedy != "") {
			b.Errorf("%+v: a remedy belongs to trouble", f)
		}
		if f.Check == check {
			return f
		}
	}
	b.Fatalf("nothing is said of %q", check)
	return platform.Finding{}
}

func TestProbe(t *testing.T) {
	on(t, func(b *bench) {
		b.equal("not connected", b.probe("company acme").Grade, platform.Warning)
		b.connect()
		b.equal("platform", b.probe("platform").Grade, platform.Fine)
		b.equal("notifications", b.probe("notifications").Grade, platform.Fine)
		b.equal("company", b.probe("company acme").Grade, platform.Fine)

		for status, says := range map[int]string{400: "MUSTER_PLATFORM_PROJECT", 403: "enabled in project", 429: "again", 503: "again"} {
			b.fault(emulator.Fault{Method: "list", Status: status})
			f := b.probe("platform")
			b.equal("grade", f.Grade, platform.Bad)
			b.says("remedy", f.Remedy, says)
		}
		b.fault(emulator.Fault{Method: "get", Status: 404})
		b.says("an enterprise that is gone", b.probe("company acme").Detail, "does not exist")

		transport := &http.Transport{DialContext: b.network.dial}
		defer transport.CloseIdleConnections()
		vendor, err := androidmanagement.NewService(b.Context(), option.WithHTTPClient(&http.Client{Transport: transport}),
			option.WithEndpoint("http://vendor.test/"))
		b.ok(err)
		for _, e := range []*androidmanagement.Enterprise{
			{PubsubTopic: topic + "-other", EnabledNotificationTypes: []string{"ENROLLMENT", "STATUS_REPORT", "COMMAND", "USAGE_LOGS"}},
			{PubsubTopic: topic, EnabledNotificationTypes: []string{"COMMAND"}},
		} {
			_, err = vendor.Enterprises.Patch(b.company.Enterprise, e).UpdateMask("pubsubTopic,enabledNotificationTypes").Do()
			b.ok(err)
			f := b.probe("company acme")
			b.equal("an enterprise that is silent", f.Grade, platform.Bad)
			b.says("remedy", f.Remedy, "connect")
		}
		b.connect() // corrects it
		b.equal("corrected", b.probe("company acme").Grade, platform.Fine)

		b.start(func(c *platform.Config) { c.Subscription = "another" })
		settings := b.emulator.Settings()
		settings.StrictPubSub = true
		b.ok(b.emulator.SetSettings(settings))
		b.says("no subscription", b.probe("notifications").Detail, "there is no subscription")
	})
}

// A company that there was no time to ask for is not said to be in trouble.
func TestProbe_WithoutTime(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.fault(emulator.Fault{Method: "get", DelayMS: 60_000})
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
		defer cancel()
		found := b.platform.ProbeCompanies(ctx)
		last := found[len(found)-1]
		b.equal("grade", last.Grade, platform.Warning)
		b.says("detail", last.Detail, "no time to ask for 1 of 1")
	})
}

func TestProbe_Unreachable(t *testing.T) {
	t.Parallel()
	p := at(t, "http://nowhere.invalid", func(c *platform.Config) { c.CallTimeout = time.Second })
	f := p.ProbeAPI(t.Context())
	if f.Grade != platform.Bad || !strings.Contains(f.Remedy, "network") {
		t.Errorf("%+v", f)
	}
}

// Without credentials and endpoint the service runs, and calls nothing.
func TestPlatform_NotConfigured(t *testing.T) {
	on(t, func(b *bench) {
		b.start(func(c *platform.Config) { c.Endpoint = "" })
		b.run()
		b.pass(time.Hour)
		b.halt()
		b.equal("calls", len(b.emulator.Calls(0, "")), 0)
	})
}
