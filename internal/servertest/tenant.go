package servertest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
)

// Tenant is a connected company with a policy, on an environment.
type Tenant struct {
	*Env
	Company company.Company
	Policy  policy.Policy
	serial  atomic.Int64 // of the latest device
}

// NewTenant makes a company, connects it and gives it a policy.
func (e *Env) NewTenant(slug string) *Tenant {
	e.TB.Helper()
	s := &Tenant{Env: e, Company: e.Company(slug, Everything())}
	s.Policy = e.Policy(s.Company, "Policy of "+slug, policy.Platform)
	s.Company = e.Connect(s.Company)
	return s
}

// Client returns a client with a new key: one with a whole budget.
func (t *Tenant) Client(r *Replica, permissions access.Permission) Client {
	t.TB.Helper()
	return r.As(t.Key(t.Company, permissions))
}

// Kind is a kind of managed device.
type Kind struct {
	Usage     string // personalUsage of the QR code
	Ownership string // as the emulator has it
}

// FullyManaged is a company's device, managed as a whole.
func FullyManaged() Kind { return Kind{"DISALLOWED", ""} }

// WorkProfile is a company's device with a work profile.
func WorkProfile() Kind { return Kind{"ALLOWED", ""} }

// Personal is a person's own device with a work profile.
func Personal() Kind { return Kind{"ALLOWED", emulator.PersonallyOwned} }

// Devices enrolls devices of a kind by a QR code.
func (t *Tenant) Devices(r *Replica, k Kind, count int) []Device {
	t.TB.Helper()
	code := t.Client(r, access.All).QRCode(t.Policy, map[string]any{"personalUsage": k.Usage})
	return t.Enroll(t.Company, emulator.Enrollment{EnrollmentToken: code, Count: count, Ownership: k.Ownership})
}

// Entry is one entry of a command history.
type Entry struct {
	Type, Status          string
	CreatedAt, FeedbackAt *time.Time
	Outcome               *string
}

// History reads a device's command history.
func (c Client) History(assetID string) []Entry {
	c.TB.Helper()
	var page struct{ Content []Entry }
	c.Get("/assets/"+assetID+"/commands?size=100").Want(c.TB, 200).JSON(c.TB, &page)
	return page.Content
}

// Settled waits until the device's newest command has reached a status.
func (t *Tenant) Settled(c Client, assetID, status string) Entry {
	t.TB.Helper()
	var newest Entry
	t.Eventually("the command of "+assetID+" ends "+status, func() error {
		history := c.History(assetID)
		if len(history) == 0 {
			return errors.New("there is no command")
		}
		if newest = history[0]; newest.Status != status {
			return fmt.Errorf("it is %s (%s)", newest.Status, deref(newest.Outcome))
		}
		return nil
	})
	return newest
}

func deref(text *string) string {
	if text == nil {
		return "no outcome"
	}
	return *text
}
