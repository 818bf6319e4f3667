package platform_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/provisioning"
)

func TestTokens_Create(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		for usage, want := range map[provisioning.PersonalUsage]string{
			provisioning.Unspecified: "ALLOW_PERSONAL_USAGE_UNSPECIFIED", provisioning.Allowed: "PERSONAL_USAGE_ALLOWED",
			provisioning.Disallowed: "PERSONAL_USAGE_DISALLOWED", provisioning.Userless: "PERSONAL_USAGE_DISALLOWED_USERLESS",
		} {
			b.emulator.ClearCalls()
			token, err := b.platform.Issue(b.Context(), b.company, b.saved(b.policy.ID),
				provisioning.Wanted{Usage: usage, Lifetime: provisioning.Lifetime})
			b.ok(err)
			b.equal("expires", token.ExpiresAt.Equal(time.Now().Add(24*time.Hour)), true)
			var payload map[string]any
			b.ok(json.Unmarshal(token.Payload, &payload))
			if payload["android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"] == nil {
				b.Errorf("payload %s", token.Payload)
			}
			var sent struct {
				PolicyName, Duration, AllowPersonalUsage, AdditionalData string
				OneTimeOnly                                              bool
			}
			b.ok(json.Unmarshal(b.emulator.Calls(0, "enrollmentTokens.create")[0].Body, &sent))
			b.equal("usage", sent.AllowPersonalUsage, want)
			b.equal("policy", sent.PolicyName, b.company.Enterprise+"/policies/"+b.policy.ID)
			b.equal("duration", sent.Duration, "86400s")
			b.equal("one-time", sent.OneTimeOnly, false)
			if len(sent.AdditionalData) > 60 || strings.Contains(sent.AdditionalData, b.policy.ID) ||
				strings.Contains(sent.AdditionalData, b.company.ID) {
				b.Errorf("additional data %q is not an opaque id", sent.AdditionalData)
			}
		}
	})
}

// A token needs its policy at the vendor: it is pushed, and pushed again if the
// vendor has lost it.
func TestTokens_MissingPolicyIsPushed(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		fresh := b.newPolicy("Fresh", `{}`)
		_, err := b.platform.Issue(b.Context(), b.company, fresh, provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: time.Hour})
		b.ok(err)
		for _, as404 := range []bool{false, true} {
			settings := b.emulator.Settings()
			settings.Quirks.MissingPolicyAs404 = as404
			b.ok(b.emulator.SetSettings(settings))
			lost := b.newPolicy("Lost "+fresh.ID[:3]+map[bool]string{true: "4", false: "0"}[as404], `{}`)
			b.ok(b.db.SetPushed(b.Context(), lost.ID, 1, 1, time.Now())) // or so we think
			_, err = b.platform.Issue(b.Context(), b.company, b.saved(lost.ID),
				provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: time.Hour})
			b.ok(err)
		}
	})
}

func TestTokens_FailuresAreTheProviders(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		for _, f := range []emulator.Fault{
			{Status: 400}, {Status: 401}, {Status: 403}, {Status: 404}, {Status: 409}, {Status: 429}, {Status: 500}, {Status: 503},
			{DropConnection: true}, {DropConnection: true, AfterEffect: true}, {Corrupt: "truncate", AfterEffect: true},
			{Corrupt: "html", Status: 200}, {DelayMS: 60_000},
		} {
			f.Method = "enrollmentTokens.create"
			b.fault(f)
			_, err := b.platform.Issue(b.Context(), b.company, b.saved(b.policy.ID),
				provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: time.Hour})
			b.equal("code", fault.CodeOf(err), fault.Provider)
			b.equal("retryable", fault.From(err).Retryable, true)
			b.emulator.ClearFaults()
		}
		bad := b.newPolicy("Bad", `{"cameraAccess":"NEVER"}`)
		_, err := b.platform.Issue(b.Context(), b.company, bad, provisioning.Wanted{Usage: provisioning.Unspecified, Lifetime: time.Hour})
		b.equal("a policy that cannot be pushed", fault.CodeOf(err), fault.Provider)
		b.equal("tokens asked for", len(b.emulator.Calls(0, "enrollmentTokens.create")), 13)
	})
}

// A token that the vendor no longer has counts as deleted, and deleting leaves a part
// of the quota to commands.
func TestTokens_Withdraw(t *testing.T) {
	on(t, func(b *bench) {
		b.connect()
		b.start(func(c *platform.Config) { c.Quota = 20 })
		token, err := b.platform.Issue(b.Context(), b.company, b.saved(b.policy.ID), provisioning.Wanted{Lifetime: time.Hour, Devices: 1})
		b.ok(err)
		b.ok(b.platform.Withdraw(b.Context(), token))
		b.ok(b.platform.Withdraw(b.Context(), token))
		b.equal("asked", b.calls("enrollmentTokens.delete"), 2)
		b.fault(emulator.Fault{Method: "enrollmentTokens.delete", Status: 503})
		if b.platform.Withdraw(b.Context(), token) == nil {
			b.Error("a deletion that failed counts as done")
		}
		for b.platform.Withdraw(b.Context(), token) == nil {
			continue // until it may spend no more
		}
		_, err = b.platform.Issue(b.Context(), b.company, b.saved(b.policy.ID), provisioning.Wanted{Lifetime: time.Hour})
		b.ok(err)
	})
}
