package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
)

// PolicyCommands manage policies. Changes are saved at once, as by a person in
// the portal; scripts and assistants propose them over REST instead.
type PolicyCommands struct {
	Create    PolicyCreate    `cmd:"" help:"Create a policy."`
	List      PolicyList      `cmd:"" help:"List a company's policies."`
	Show      PolicyShow      `cmd:"" help:"Show one policy with its document."`
	Set       PolicySet       `cmd:"" help:"Change a policy's settings or name; saves a new version."`
	Settings  PolicySettings  `cmd:"" help:"Show a policy's settings with the values they may have."`
	Revisions PolicyRevisions `cmd:"" help:"List a policy's saved revisions, newest first."`
	Diff      PolicyDiff      `cmd:"" help:"Show what differs between two revisions of a policy."`
	Push      PolicyPush      `cmd:"" help:"Send a policy to the platform again, also a version that it refused."`
	Delete    PolicyDelete    `cmd:"" help:"Delete a policy that no device uses."`
}

// author is who saves policies by command line.
func author() policy.Author {
	return policy.Author{Kind: string(access.System), ID: "operator", Name: "operator"}
}

// SettingValues are settings to change.
type SettingValues struct {
	Set []string `name:"set" sep:"none" placeholder:"SETTING=VALUE" help:"A setting and its value, such as CAMERA=BLOCK; repeat for more. policy settings shows them all."`
}

// Validate refuses a flag that is not SETTING=VALUE of the catalog as bad usage.
func (v SettingValues) Validate() error {
	changes, err := v.changes()
	if err != nil {
		return err
	}
	return policy.Edit{Changes: changes}.Check()
}

func (v SettingValues) changes() ([]policy.Change, error) {
	var changes []policy.Change
	for _, text := range v.Set {
		setting, value, found := strings.Cut(text, "=")
		if !found || setting == "" || value == "" {
			return nil, fault.Invalid(fmt.Sprintf("--set %q is not SETTING=VALUE, such as CAMERA=BLOCK", text))
		}
		changes = append(changes, policy.Change{Setting: strings.TrimSpace(setting), Value: strings.TrimSpace(value)})
	}
	return changes, nil
}

// PolicyCreate makes a policy. It works before the company is connected to the
// platform; the policy is pushed then.
type PolicyCreate struct {
	OfCompany
	SettingValues
	PolicyContent
	PlatformFlags
	Name   string `name:"name" help:"Name for people: at most 50 characters, unique in the company."`
	Named  string `arg:"" optional:"" name:"policy" help:"The name, instead of --name."`
	Type   string `name:"type" enum:"PLATFORM,AGENT" default:"PLATFORM" help:"Whose devices it is for: PLATFORM (managed through the vendor's platform) or AGENT (managed by Muster's own agent)."`
	VROnly bool   `name:"vr-only" help:"For VR headsets only; they are provisioned over USB (AGENT policies)."`
}

// Validate refuses flags that do not go together as bad usage.
func (c *PolicyCreate) Validate() error {
	if c.VROnly && c.Type != string(policy.Agent) {
		return fault.Invalid("--vr-only needs --type AGENT")
	}
	name, err := oneOf("name", c.Name, c.Named)
	if err != nil {
		return err
	}
	changes, err := c.changes()
	if err != nil {
		return err
	}
	return policy.Edit{Name: &name, Changes: changes}.Check()
}

// Run creates the policy.
func (c *PolicyCreate) Run(env *Env) error {
	changes, document, err := c.read(env, c.SettingValues)
	if err != nil {
		return err
	}
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		made, err := admin.Policies.Create(ctx, policy.New{
			CompanyID: owner.ID, CompanySlug: owner.Slug, Name: cmp.Or(c.Name, c.Named),
			Type: policy.Type(c.Type), VROnly: c.VROnly, Changes: changes, Document: document,
			Description: deref(c.Description), Labels: c.Label, Group: deref(c.Group),
		}, author())
		if err != nil {
			return answer{}, err
		}
		made, note := c.push(ctx, admin, owner, made)
		return showPolicy("Created", made, note), nil
	})
}

// PolicyList lists policies.
type PolicyList struct{ OfCompany }

// Run prints the list.
func (c *PolicyList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		all, err := admin.policies(ctx, owner.ID)
		return list(all, viewPolicy, []string{"ID", "NAME", "TYPE", "VERSION", "AT PLATFORM", "DEVICES", "UPDATED"},
			func(p policy.Policy) []string {
				return []string{p.ID, p.Name, policyType(p), strconv.Itoa(p.Version), pushed(p),
					strconv.Itoa(p.DeviceCount), day(p.UpdatedAt)}
			}), err
	})
}

const policyPage = 500

// policies reads all policies of a company, by name.
func (d *Admin) policies(ctx context.Context, companyID string) (all []policy.Policy, err error) {
	for {
		page, total, err := d.Policies.Store.Policies(ctx, policy.Query{
			CompanyID: companyID, Order: policy.ByName, Offset: len(all), Limit: policyPage,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) == 0 || int64(len(all)) >= total {
			return all, nil
		}
	}
}

// OfPolicy is OfCompany for commands about one policy.
type OfPolicy struct {
	OfCompany
	Policy string `arg:"" placeholder:"POLICY" help:"The policy's name, id or path name."`
}

// with finds the policy and works on it.
func (c OfPolicy) with(env *Env, work onPolicy) error {
	return c.reading(env, on((*Admin).policy, c.Policy, work))
}

// changing is with for a command that writes.
func (c OfPolicy) changing(env *Env, work onPolicy) error {
	return c.run(env, on((*Admin).policy, c.Policy, work))
}

// onPolicy is work on the policy that a command names.
type onPolicy func(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (answer, error)

// PolicyShow shows one policy.
type PolicyShow struct{ OfPolicy }

// Run prints the policy.
func (c *PolicyShow) Run(env *Env) error {
	return c.with(env, func(_ context.Context, _ *Admin, _ company.Company, p policy.Policy) (answer, error) {
		view := policyDetail{viewPolicy(p), p.Description, append([]string{}, p.Labels...), p.Group, operation.TimestampOf(p.CreatedAt),
			p.Document}
		return answer{view, func(w io.Writer) { printDetail(w, p) }}, nil
	})
}

// PolicySet saves a new version.
type PolicySet struct {
	OfPolicy
	SettingValues
	PolicyContent
	PlatformFlags
	SystemUpdate string `name:"system-update" placeholder:"FILE" help:"When devices of an AGENT policy install updates of their system, as JSON in the form of the platform's systemUpdate: type, startMinutes, endMinutes, freezePeriods. {} removes it. - reads standard input."`
	NoLabels     bool   `name:"no-labels" help:"Remove all labels."`
	Name         string `name:"name" help:"New name for people."`
	Version      *int   `name:"version" placeholder:"N" help:"Save only if the policy still is at this version."`
}

// Validate wants a version that there can be, and labels or none.
func (c *PolicySet) Validate() error {
	if c.NoLabels && c.Label != nil {
		return fault.Invalid("--label and --no-labels do not go together: give one of them")
	}
	return atLeastOne("version", c.Version)
}

// Run saves the change.
func (c *PolicySet) Run(env *Env) error {
	changes, document, err := c.read(env, c.SettingValues)
	if err != nil {
		return err
	}
	edit := policy.Edit{Changes: changes, Document: document, Description: c.Description, Group: c.Group}
	if edit.SystemUpdate, err = c.systemUpdate(env); err != nil {
		return err
	}
	if c.Name != "" {
		edit.Name = &c.Name
	}
	if c.Label != nil || c.NoLabels {
		edit.Labels = &c.Label
	}
	return c.changing(env, func(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (answer, error) {
		if c.Name != "" && c.Name != p.Name { // a name from before the rules of names may stay
			if err := (policy.Edit{Name: &c.Name}).Check(); err != nil {
				return answer{}, usage(err)
			}
		}
		saved, err := admin.Policies.Save(ctx, owner.ID, p.ID, cmp.Or(deref(c.Version), p.Version), edit, author())
		if err != nil {
			return answer{}, err
		}
		verb := phrase.Either(saved.Version == p.Version, "Nothing to change in", "Saved")
		saved, note := c.push(ctx, admin, owner, saved)
		return showPolicy(verb, saved, note), nil
	})
}

// PolicyDelete deletes a policy.
type PolicyDelete struct{ OfPolicy }

// Run deletes the policy.
func (c *PolicyDelete) Run(env *Env) error {
	return c.changing(env, func(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (answer, error) {
		codes, err := admin.Policies.Delete(ctx, owner.ID, p.ID)
		return answerf(map[string]any{"pathName": p.PathName(), "deleted": true, "codesRevoked": codes}, "Deleted %s (%s).%s\n",
			p.PathName(), p.Name, provisioning.Ended(codes, p.Type)), err
	})
}

// PolicyPush sends a policy to the platform now.
type PolicyPush struct {
	OfPolicy
	PlatformFlags
}

// Run pushes the policy.
func (c *PolicyPush) Run(env *Env) error {
	return c.changing(env, func(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (answer, error) {
		if p.Type != policy.Platform {
			return answer{}, fault.New(fault.Unsupported, "the policy %q is not one of the platform's: agents fetch it themselves", p.Name)
		}
		platform, err := admin.Platform(c.Platform, "")
		if err != nil {
			return answer{}, err
		}
		if err := platform.PushPolicy(ctx, owner.ID, p.ID); err != nil {
			return answer{}, fault.New(fault.CodeOf(err), "the policy was not pushed: %s", fault.From(err).Detail).Because(err)
		}
		p, err = admin.Policies.Current(ctx, owner.ID, p.ID)
		return showPolicy("Pushed", p, ""), err
	})
}
