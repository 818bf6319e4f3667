package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
)

// CompanyCommands manage companies.
type CompanyCommands struct {
	Create     CompanyCreate     `cmd:"" help:"Create a company."`
	List       CompanyList       `cmd:"" help:"List the companies."`
	Show       CompanyShow       `cmd:"" help:"Show one company."`
	Set        CompanySet        `cmd:"" help:"Change a company's name and settings."`
	Stop       CompanyStop       `cmd:"" help:"Refuse every change by API keys and connections, at once."`
	Resume     CompanyResume     `cmd:"" help:"End a stop."`
	Connect    CompanyConnect    `cmd:"" help:"Connect a company to an enterprise at the vendor's platform, and push its policies."`
	Disconnect CompanyDisconnect `cmd:"" help:"Give up a company's enterprise: one that the platform no longer has, or one without devices, which is deleted there."`
	Delete     CompanyDelete     `cmd:"" help:"Delete a company with everything that belongs to it, after an export."`
	Domain     DomainCommands    `cmd:"" help:"Manage the e-mail domains of a company, whose people its identity provider signs in."`
}

// Switches turn a company's settings for AI agent access on and off.
type Switches struct {
	Enable  []string `name:"enable" placeholder:"SETTING,…" enum:"device-commands,destructive-commands,policy-changes,provisioning,oauth-connections" help:"Settings to turn on: device-commands, destructive-commands, policy-changes, provisioning, oauth-connections."`
	Disable []string `name:"disable" placeholder:"SETTING,…" enum:"device-commands,destructive-commands,policy-changes,provisioning,oauth-connections" help:"Settings to turn off."`
}

// apply changes settings. What a setting needs is the company's to check.
func (s Switches) apply(settings *access.Settings) {
	for _, setting := range s.Disable {
		settings.Switch(gateOf(setting), false)
	}
	for _, setting := range s.Enable {
		settings.Switch(gateOf(setting), true)
	}
}

// check refuses a setting that is both enabled and disabled.
func (s Switches) check() error {
	for _, setting := range s.Enable {
		if slices.Contains(s.Disable, setting) {
			return fault.Invalid("--enable and --disable both name " + setting)
		}
	}
	return nil
}

func gateOf(setting string) access.Gate {
	return map[string]access.Gate{"device-commands": access.DeviceCommands, "destructive-commands": access.DestructiveCommands,
		"policy-changes": access.PolicyChanges, "provisioning": access.ProvisioningGate, "oauth-connections": access.OAuthGate}[setting]
}

// CompanyCreate makes a company; all settings are off unless enabled.
type CompanyCreate struct {
	Common
	Switches
	KeyFile string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's key file, which signs the beginning of the activity log; without one the service does it when it runs."`

	Company string `arg:"" optional:"" name:"company" help:"The slug, instead of --slug."`
	Slug    string `name:"slug" help:"Short name in path names; it never changes: 1 to 40 lower-case letters, digits and inner hyphens."`
	Name    string `name:"name" help:"Name for people; by default the slug."`
}

// Validate wants the slug, one way or both alike, and what a company may have.
func (c *CompanyCreate) Validate() error {
	if _, err := oneOf("slug", c.Slug, c.Company); err != nil {
		return err
	}
	if err := c.Switches.check(); err != nil {
		return err
	}
	_, err := c.company(time.Time{})
	return err
}

// company is what the flags ask for.
func (c *CompanyCreate) company(now time.Time) (company.Company, error) {
	var settings access.Settings
	c.Switches.apply(&settings)
	slug := cmp.Or(c.Slug, c.Company)
	return company.New(slug, cmp.Or(strings.TrimSpace(c.Name), slug), settings, now)
}

// Run creates the company. It sets up an empty database.
func (c *CompanyCreate) Run(env *Env) error {
	made, err := c.company(env.Now())
	if err != nil {
		return err
	}
	return c.open(env, Creates, func(ctx context.Context, admin *Admin) (answer, error) {
		if err := admin.Companies.CreateCompany(ctx, made); err != nil {
			return answer{}, err
		}
		if chain, err := admin.Chain(ctx, c.Store, c.KeyFile); err == nil {
			if err := chain.Begin(ctx, made.ID); err != nil {
				return answer{}, fmt.Errorf("the company is created, but its activity log is not signed yet: %w", err)
			}
		}
		return showCompany("Created", made, company.Trouble{}), nil
	})
}

// CompanyList lists every company.
type CompanyList struct{ Common }

// Run prints the list.
func (c *CompanyList) Run(env *Env) error {
	return c.open(env, Reads, func(ctx context.Context, admin *Admin) (answer, error) {
		all, err := admin.Companies.Companies(ctx)
		if err != nil {
			return answer{}, err
		}
		troubles, err := admin.Enterprises.EnterpriseTroubles(ctx)
		view := func(one company.Company) companyView { return viewCompany(one, troubles[one.ID]) }
		return list(all, view, []string{"SLUG", "NAME", "ENTERPRISE", "ENABLED"}, func(one company.Company) []string {
			return []string{one.Slug, one.Name, enterprise(one, troubles[one.ID]), enabled(one.Settings)}
		}), err
	})
}

// Named takes the company as a flag or as the argument.
type Named struct {
	Common
	Company string `name:"company" placeholder:"SLUG" help:"The company's slug."`
	Slug    string `arg:"" optional:"" name:"slug" help:"The company's slug, instead of --company."`
}

func (n Named) slug() string { return cmp.Or(n.Company, n.Slug) }

// confirmed wants the slug typed twice.
func (n Named) confirmed(again string) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if again != n.slug() {
		return fmt.Errorf("--confirm must repeat the company's slug, %s", n.slug())
	}
	return nil
}

// Validate wants the company named, one way or both alike.
func (n Named) Validate() error {
	if n.slug() == "" || n.Company != "" && n.Slug != "" && n.Company != n.Slug {
		return errors.New("name one company, by --company or as the argument")
	}
	return nil
}

func (n Named) run(env *Env, work inCompany) error { return n.open(env, Writes, work.of(n.slug())) }

// CompanyShow shows one company.
type CompanyShow struct{ Named }

// Run prints the company.
func (c *CompanyShow) Run(env *Env) error {
	return c.open(env, Reads, func(ctx context.Context, admin *Admin) (answer, error) {
		found, err := admin.company(ctx, c.slug())
		return admin.show(ctx, "Company", found, err)
	})
}

// show prints a company with what is wrong with its enterprise.
func (a *Admin) show(ctx context.Context, verb string, found company.Company, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	troubles, err := a.Enterprises.EnterpriseTroubles(ctx)
	return showCompany(verb, found, troubles[found.ID]), err
}

// CompanySet changes one company.
type CompanySet struct {
	Named
	Switches
	ControlFlags
	Name             string         `name:"name" help:"New name for people."`
	InactiveAfter    *time.Duration `name:"inactive-after" placeholder:"DURATION" help:"How long an enrolled device may be silent before it is INACTIVE, such as 30d."`
	KeepActivity     *time.Duration `name:"keep-activity" placeholder:"DURATION" help:"How long entries of the activity log are kept, such as 400d."`
	KeepCommands     *time.Duration `name:"keep-commands" placeholder:"DURATION" help:"How long commands are kept, in days, such as 400d. Open and UNCONFIRMED ones stay."`
	KeepPlaces       *time.Duration `name:"keep-places" placeholder:"DURATION" help:"How long it is kept where devices were, in days, such as 90d."`
	KeepEvents       *time.Duration `name:"keep-events" placeholder:"DURATION" help:"How long events can be read, in days, such as 30d."`
	LostMessage      *string        `name:"lost-message" placeholder:"TEXT" help:"What the portal's form for lost mode begins with; empty: nothing."`
	LostPhone        *string        `name:"lost-phone" placeholder:"NUMBER" help:"The same for the phone number."`
	LostOrganization *string        `name:"lost-organization" placeholder:"NAME" help:"The same for the organization."`
}

// Validate wants something to change, within what a company may have.
func (c *CompanySet) Validate() error {
	between := func(flag string, d *time.Duration, least, most time.Duration) error {
		if d != nil && (*d < least || *d > most) {
			return fmt.Errorf("--%s must be from %s to %s", flag, phrase.Span(least), phrase.Span(most))
		}
		return nil
	}
	kept := func(flag string, d *time.Duration) error {
		if d != nil && company.KeepError(*d) != "" {
			return fmt.Errorf("--%s %s", flag, company.KeepError(*d))
		}
		return nil
	}
	if strings.TrimSpace(c.Name) == "" && c.InactiveAfter == nil && c.KeepActivity == nil && c.KeepCommands == nil &&
		c.KeepPlaces == nil && c.KeepEvents == nil && c.LostMessage == nil && c.LostPhone == nil && c.LostOrganization == nil &&
		len(c.Enable)+len(c.Disable) == 0 && !c.ControlFlags.given() {
		return errors.New("nothing to change: give --name, --enable, --disable, --inactive-after, --keep-activity, --keep-commands, " +
			"--keep-places, --keep-events, --lost-message or a limit such as --destructive-limit")
	}
	return cmp.Or(c.Named.Validate(), c.Switches.check(), c.ControlFlags.check(),
		between("inactive-after", c.InactiveAfter, company.MinInactiveAfter, company.MaxInactiveAfter),
		between("keep-activity", c.KeepActivity, company.MinKeepActivity, company.MaxKeepActivity),
		kept("keep-commands", c.KeepCommands), kept("keep-places", c.KeepPlaces), kept("keep-events", c.KeepEvents), possible(c.apply))
}

// possible refuses a change that no company can have.
func possible(change func(*company.Company)) error {
	some, err := company.New("some", "some", access.Settings{DeviceCommands: true}, time.Time{})
	if err != nil {
		return err
	}
	return company.Change(change)(&some)
}

// apply changes a company as the flags say.
func (c *CompanySet) apply(to *company.Company) {
	to.Name = cmp.Or(strings.TrimSpace(c.Name), to.Name)
	to.InactiveAfter = cmp.Or(deref(c.InactiveAfter), to.InactiveAfter)
	to.Settings.KeepActivity = cmp.Or(deref(c.KeepActivity), to.Settings.KeepActivity)
	to.KeepCommands = cmp.Or(deref(c.KeepCommands), to.KeepCommands)
	to.KeepPlaces = cmp.Or(deref(c.KeepPlaces), to.KeepPlaces)
	to.KeepEvents = cmp.Or(deref(c.KeepEvents), to.KeepEvents)
	for text, given := range map[*string]*string{&to.Lost.Message: c.LostMessage, &to.Lost.PhoneNumber: c.LostPhone,
		&to.Lost.Organization: c.LostOrganization} {
		if given != nil {
			*text = strings.TrimSpace(*given)
		}
	}
	c.Switches.apply(&to.Settings)
	c.ControlFlags.apply(&to.Settings.Controls)
}

// Run saves the change.
func (c *CompanySet) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, found company.Company) (answer, error) {
		changed, err := admin.Companies.UpdateCompany(ctx, found.ID, company.Change(c.apply))
		if err != nil {
			return answer{}, err
		}
		people, err := admin.Enterprises.Approvers(ctx, changed.ID)
		if err != nil {
			return answer{}, err
		}
		for _, rule := range company.Undecidable(changed, people, env.Now()) {
			env.warn("%s", rule)
		}
		return admin.show(ctx, "Changed", changed, nil)
	})
}

// company finds a company by its slug.
func (d *Admin) company(ctx context.Context, slug string) (company.Company, error) {
	found, err := d.Companies.CompanyBySlug(ctx, slug)
	if fault.CodeOf(err) == fault.NotFound {
		return found, fault.New(fault.NotFound, "there is no company %q: `muster company list` shows those there are", slug)
	}
	return found, err
}

type companyView struct {
	Slug          string               `json:"slug"`
	PathName      string               `json:"pathName"`
	Name          string               `json:"name"`
	Settings      access.Settings      `json:"settings"`
	Controls      controlsView         `json:"controls"`
	Stop          *stopView            `json:"stop"`
	InactiveAfter string               `json:"inactiveAfter"`
	KeepActivity  string               `json:"keepActivity"`
	KeepCommands  string               `json:"keepCommands"`
	KeepPlaces    string               `json:"keepPlaces"`
	KeepEvents    string               `json:"keepEvents"`
	Connected     bool                 `json:"connected"`
	Enterprise    *string              `json:"enterprise"`
	LostSince     *operation.Timestamp `json:"enterpriseLostSince"` // null: the platform has the enterprise
	Disconnecting *operation.Timestamp `json:"disconnectingSince"`  // null: no disconnection is under way
	Lost          lostView             `json:"lostMode"`            // what the form for it begins with
	CreatedAt     *operation.Timestamp `json:"createdAt"`
}

type lostView struct {
	Message      string `json:"message"`
	PhoneNumber  string `json:"phoneNumber"`
	Organization string `json:"organization"`
}

func viewCompany(c company.Company, trouble company.Trouble) companyView {
	view := companyView{
		Slug: c.Slug, PathName: c.PathName(), Name: c.Name, Settings: c.Settings, Controls: viewControls(c.Settings.Controls),
		Stop: viewStop(c.Settings.Stop), InactiveAfter: c.InactiveAfter.String(), KeepActivity: c.Settings.KeepActivity.String(),
		KeepCommands: c.KeepCommands.String(), KeepPlaces: c.KeepPlaces.String(), KeepEvents: c.KeepEvents.String(),
		Connected: c.Connected(), CreatedAt: operation.TimestampOf(c.CreatedAt), LostSince: operation.TimestampOf(trouble.LostSince),
		Disconnecting: operation.TimestampOf(trouble.Disconnecting), Lost: lostView(c.Lost),
	}
	if c.Connected() {
		view.Enterprise = &c.Enterprise
	}
	return view
}

// enterprise is a company's enterprise, and what is wrong with it.
func enterprise(c company.Company, trouble company.Trouble) string {
	switch {
	case !trouble.Disconnecting.IsZero():
		return c.Enterprise + ", whose disconnection is not finished: run it again"
	case !trouble.LostSince.IsZero():
		return c.Enterprise + ", which the platform does not have since " + day(trouble.LostSince)
	}
	return orDash(c.Enterprise)
}

func showCompany(verb string, c company.Company, trouble company.Trouble) answer {
	return answer{viewCompany(c, trouble), func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s)\n", verb, c.PathName(), c.Name)
		row(w, "  enabled", enabled(c.Settings))
		controls := viewControls(c.Settings.Controls)
		row(w, "  destructive limit", controls.DestructiveLimit)
		row(w, "  destructive approval", controls.DestructiveApproval)
		row(w, "  apply approval", string(controls.ApplyApproval))
		row(w, "  second person", controls.SecondPerson)
		row(w, "  approver age", phrase.Span(c.Settings.Controls.ApproverAge))
		row(w, "  require reason", string(controls.RequireReason))
		row(w, "  inactive after", phrase.Span(c.InactiveAfter))
		row(w, "  activity kept", phrase.Span(c.Settings.KeepActivity))
		row(w, "  commands kept", phrase.Span(c.KeepCommands))
		row(w, "  places kept", phrase.Span(c.KeepPlaces))
		row(w, "  events kept", phrase.Span(c.KeepEvents))
		if c.Lost != (company.LostContact{}) {
			row(w, "  lost mode", strings.Join([]string{c.Lost.Message, c.Lost.PhoneNumber, c.Lost.Organization}, " · "))
		}
		row(w, "  enterprise", enterprise(c, trouble))
		if stop := c.Settings.Stop; stop.On() {
			who := phrase.Either(stop.All, "API keys, connections and the portal", "API keys and connections")
			row(w, "  stopped", who+": "+stop.Reason)
		}
	}}
}

func enabled(s access.Settings) string {
	all := []string{"device-commands", "destructive-commands", "policy-changes", "provisioning", "oauth-connections"}
	on := slices.DeleteFunc(all, func(setting string) bool { return !s.On(gateOf(setting)) })
	return orDash(strings.Join(on, ","))
}

func orDash(text string) string { return cmp.Or(text, "-") }
