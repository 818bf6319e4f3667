package command_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/test/expect"
)

// strict is a policy whose difference from an empty one has high impact.
func (f *fixture) strict() policy.Policy {
	f.Helper()
	p := policy.Policy{ID: resource.NewID(), CompanyID: f.company.ID, CompanySlug: "acme", Name: "Strict",
		Type: policy.Platform, Version: 1,
		Document: []byte(`{"factoryResetDisabled":true}`), CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now()}
	f.ok(f.db.CreatePolicy(f.ctx(), p, policy.Author{Kind: "SYSTEM", ID: "operator", Name: "operator"}, ""))
	return p
}

// setControls changes the company's, and what the caller is let in by.
func (f *fixture) setControls(change func(*access.Controls)) {
	f.Helper()
	c, err := f.db.UpdateCompany(f.ctx(), f.company.ID, func(c *company.Company) error {
		change(&c.Settings.Controls)
		return nil
	})
	f.ok(err)
	f.company.Settings = c.Settings
}

func digest(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// What is foreseen is what sending is answered, and it sends and stores nothing.
func TestForesee(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.service.PublicURL, f.service.Digest, f.service.Verifier = "https://muster.test", digest, approvaltest.Verifier()
	strict := f.strict()
	office, field, kiosk := f.policies["Office"], f.policies["Field"], f.policies["Kiosk"]
	phone, agent := f.enroll(fullyManaged), f.enroll(agentManaged)
	silent := f.enroll(kind{asset.Platform, asset.CompanyOwned, asset.FullyManaged, false})
	approving := func(c *access.Controls) { c.ApplyApproval, c.DestructiveApproval = access.ApproveAll, true }
	none := func(*access.Controls) {}
	for _, c := range []struct {
		name         string
		controls     func(*access.Controls)
		kind         command.Type
		assetID      string
		body         any
		want         fault.Code // empty: it would be sent
		devices      int
		says         string // part of the effects
		impact       string
		irreversible bool
		typed        bool
	}{
		{"a lock", none, command.Lock, phone.PathName(), nil, "", 1, "", "", false, false},
		{"a wipe", none, command.WipeCompanyData, phone.PathName(), nil, "", 1, "", "", true, false},
		{"an unknown device", none, command.Lock, "none", nil, fault.NotFound, 0, "", "", false, false},
		{"what the device cannot", none, command.LaunchApp, phone.PathName(), f.body(command.LaunchApp), fault.Unsupported, 1,
			"", "", false, false},
		{"a message that cannot be pushed", none, command.NotificationMessage, silent.PathName(), f.body(command.NotificationMessage),
			fault.Unsupported, 1, "", "", false, false},
		{"a move", none, command.ChangePolicy, phone.PathName(), command.PolicyRef(field.PathName()), "", 1, `The other policy is "Field".`,
			"NORMAL", false, false},
		{"a move with high impact", none, command.ChangePolicy, phone.PathName(), command.PolicyRef(strict.PathName()), "", 1,
			`The other policy is "Strict".`, "HIGH", false, false},
		{"a move to its policy", none, command.ChangePolicy, phone.PathName(), command.PolicyRef(office.PathName()), fault.Unsupported, 1,
			"Office", "NORMAL", false, false},
		{"a move to an agent's policy", none, command.ChangePolicy, phone.PathName(), command.PolicyRef(kiosk.PathName()),
			fault.Unsupported, 1, "Kiosk", "HIGH", false, false},
		{"a move to no policy", none, command.ChangePolicy, phone.PathName(), command.PolicyRef("none"), fault.NotFound, 0,
			"", "", false, false},
		{"an agent's reboot", none, command.Reboot, agent.PathName(), nil, "", 1, "", "", false, false},
		{"a wipe that a person authorizes", approving, command.WipeCompanyData, phone.PathName(), nil, fault.Forbidden, 1,
			"", "", true, false},
		{"a move that a person authorizes", approving, command.ChangePolicy, phone.PathName(), command.PolicyRef(strict.PathName()),
			fault.Forbidden, 1, "Strict", "HIGH", false, true},
		{"a lock where persons authorize", approving, command.Lock, phone.PathName(), nil, "", 1, "", "", false, false},
		{"a wipe beyond the limit", func(c *access.Controls) {
			c.DestructiveLimit = access.DestructiveLimit{Devices: 1, Window: time.Hour}
		},
			command.WipeCompanyData, agent.PathName(), nil, fault.RateLimited, 1, "", "", true, false},
	} {
		f.setControls(func(k *access.Controls) {
			*k = access.Controls{}
			c.controls(k)
		})
		if c.want == fault.RateLimited { // the one device that the limit has room for
			f.sends(f.enroll(fullyManaged))
		}
		sent, _ := f.channel.sends()
		kept := len(f.history(phone)) + len(f.history(agent)) + len(f.history(silent))
		call, request := operation.Call{Principal: f.caller()}, command.Request{Type: c.kind, AssetID: c.assetID, Body: c.body}
		got, err := f.service.Foresee(f.ctx(), call, request)
		sentNow, _ := f.channel.sends()
		expect.Equal(t, c.name, expect.Values{"code": {fault.CodeOf(err), c.want}, "devices": {got.Devices, c.devices},
			"says": {strings.Contains(strings.Join(got.Effects, " "), c.says), true}, "impact": {got.Impact, c.impact},
			"irreversible": {got.Irreversible, c.irreversible}, "typed": {got.RequiresConfirmation, c.typed}, "sent": {sentNow, sent},
			"kept": {len(f.history(phone)) + len(f.history(agent)) + len(f.history(silent)), kept}})
		if c.want != "" { // else the device would have it
			_, err = f.service.Execute(f.ctx(), call, request)
			expect.Equal(t, c.name, expect.Values{"code when sent": {fault.CodeOf(err), c.want}})
		}
	}
}

// Of a policy that the caller may not see, and to which another move is under way, the forecast has neither the name nor the
// settings.
func TestForesee_MoveAfterAMoveToAForeignPolicy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	phone, strict, field := f.enroll(fullyManaged), f.strict(), f.policies["Field"]
	f.channel.answers(command.Receipt{Code: outcome.Unknown})
	_, err := f.service.Execute(f.ctx(), operation.Call{Principal: f.caller()},
		command.Request{Type: command.ChangePolicy, AssetID: phone.PathName(), Body: command.PolicyRef(strict.PathName())})
	f.ok(err)
	const another = "Another move of the device is under way."
	for name, policies := range map[string][]string{"of all": nil, "of the three": {f.policies["Office"].ID, field.ID, strict.ID},
		"of the two": {f.policies["Office"].ID, field.ID}} {
		by := f.caller()
		by.Policies = policies
		got, err := f.service.Foresee(f.ctx(), operation.Call{Principal: by},
			command.Request{Type: command.ChangePolicy, AssetID: phone.PathName(), Body: command.PolicyRef(field.PathName())})
		f.ok(err)
		says := strings.Join(got.Effects, " ")
		sees := len(policies) != 2
		expect.Equal(t, name, expect.Values{"impact": {got.Impact, "HIGH"}, "the name": {strings.Contains(says, "Strict"), sees},
			"the settings":     {strings.Contains(says, "Factory reset"), sees},
			"that it is there": {slices.Contains(got.Effects, another), !sees}})
	}
}

// sends wipes a device.
func (f *fixture) sends(a asset.Asset) {
	f.Helper()
	_, err := f.execute(a, command.WipeCompanyData)
	f.ok(err)
}

// place counts how often it was given back.
type place struct{ used, left int }

func (p *place) Use()   { p.used++ }
func (p *place) Leave() { p.left++ }

// A forecast gives back the place that the command would have on the device's stream.
func TestForesee_KeepsNoPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(agentManaged)
	service, h := f.holding(f.db)
	h.place = &place{}
	for n := range 2 {
		_, err := service.Foresee(f.ctx(), operation.Call{Principal: f.caller()},
			command.Request{Type: command.Reboot, AssetID: a.PathName()})
		f.ok(err)
		expect.Equal(t, "after a forecast", expect.Values{"given back": {h.place.left, n + 1}, "used": {h.place.used, 0}})
	}
}

// Where a command cannot be prepared, it is foreseen that it fails as it would; where it is the
// forecast that cannot be made, that is its error.
func TestForesee_WhatCannotBePrepared(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(agentManaged)
	service, _ := f.holding(f.db)
	cause := fault.New(fault.Internal, "the keys cannot be read")
	for name, c := range map[string]struct {
		receipt command.Receipt
		want    fault.Code
		cause   bool // the error has the words of the cause
	}{
		"it fails inside the service": {command.Receipt{Code: outcome.NotSent, Cause: cause}, fault.Internal, true},
		"there is no connection":      {command.Receipt{Code: outcome.NotSent}, fault.Unavailable, false},
		"it is not let in":            {command.Receipt{Code: outcome.Denied, Cause: cause}, fault.Provider, false},
		"it cannot be reached":        {command.Receipt{Code: outcome.Unreachable, Cause: cause}, fault.Unsupported, false},
	} {
		f.channel.answers(c.receipt)
		_, err := service.Foresee(f.ctx(), operation.Call{Principal: f.caller()},
			command.Request{Type: command.Reboot, AssetID: a.PathName()})
		expect.Equal(t, name, expect.Values{"code": {fault.CodeOf(err), c.want},
			"the cause": {fault.From(err).Detail == cause.Detail, c.cause}})
	}
}
