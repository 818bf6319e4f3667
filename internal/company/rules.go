package company

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// MaxName is the limit of a company's name, in characters.
const MaxName = 100

// The shortest and the longest inactivity period.
const (
	MinInactiveAfter = time.Minute
	MaxInactiveAfter = 3650 * 24 * time.Hour
)

// The shortest and the longest time that the activity log is kept.
const (
	MinKeepActivity = 30 * 24 * time.Hour
	MaxKeepActivity = 3650 * 24 * time.Hour
)

// New makes a company, not yet connected to the platform. It fails with
// fault.InvalidArguments for a slug, a name or settings that cannot be.
func New(slug, displayName string, settings access.Settings, now time.Time) (Company, error) {
	if settings.Controls == (access.Controls{}) {
		settings.Controls = access.DefaultControls()
	}
	c := Company{
		ID: resource.NewID(), Slug: slug, Name: displayName, Settings: settings,
		InactiveAfter: DefaultInactiveAfter, KeepActivity: DefaultKeepActivity, CreatedAt: now.UTC().Truncate(time.Millisecond),
	}
	return c, c.Check()
}

// Check returns fault.InvalidArguments, naming every field at fault, for a
// company that may not be saved. Command line and portal both ask it, inside
// Store.UpdateCompany's change as well.
func (c Company) Check() error {
	var faults []fault.Field
	must := func(kept bool, field, message string) {
		if !kept {
			faults = append(faults, fault.Field{Field: field, Message: message})
		}
	}
	must(resource.IsSlug(c.Slug), "slug", "must be 1 to 40 lower-case letters, digits and inner hyphens")
	must(resource.IsLabel(c.Name, MaxName), "name", "must have 1 to 100 printable characters and no spaces around them")
	must(c.InactiveAfter >= MinInactiveAfter && c.InactiveAfter <= MaxInactiveAfter, "inactiveAfter",
		"must be between one minute and ten years")
	must(c.KeepActivity >= MinKeepActivity && c.KeepActivity <= MaxKeepActivity, "keepActivity",
		"must be between 30 days and ten years")
	must(c.Settings.DeviceCommands || !c.Settings.DestructiveCommands, "destructiveCommands",
		"needs deviceCommands: turn that on as well")
	must(!c.Settings.Stop.On() || resource.IsLabel(c.Settings.Stop.Reason, access.MaxStopReason), "reason",
		"must have 1 to 200 printable characters and no spaces around them")
	wrong := c.Settings.Controls.Wrong()
	for _, field := range slices.Sorted(maps.Keys(wrong)) {
		must(false, field, wrong[field])
	}
	if len(faults) > 0 {
		return fault.Invalid(faults[0].Field+" "+faults[0].Message, faults...)
	}
	return nil
}

// Change returns a change for Store.UpdateCompany that runs edit and refuses
// what Check refuses. The slug is part of every path name and stays.
func Change(edit func(*Company)) func(*Company) error {
	return func(c *Company) error {
		slug := c.Slug
		edit(c)
		if c.Slug != slug {
			return fault.Invalid("a company's slug never changes", fault.Field{Field: "slug", Message: "never changes"})
		}
		return c.Check()
	}
}
