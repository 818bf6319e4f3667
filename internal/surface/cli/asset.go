package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/slice"
)

// AssetCommands manage the inventory.
type AssetCommands struct {
	List    AssetList    `cmd:"" help:"List a company's assets."`
	Set     AssetSet     `cmd:"" help:"Change an asset's name, tags or assigned user."`
	Import  AssetImport  `cmd:"" help:"Import assets from a CSV file, all of its lines or none. An asset with a line's serial number is changed, not doubled."`
	Archive AssetArchive `cmd:"" help:"Archive assets that are not managed: no list shows them until they are restored, by this command, an enrollment or an import."`
	Restore AssetRestore `cmd:"" help:"Restore archived assets."`
	Delete  AssetDelete  `cmd:"" help:"Delete archived assets with their history, after an export of all of it."`
	// Companion is for devices that the platform manages.
	Companion AssetCompanion `cmd:"" help:"Make a one-time token for the companion app of one platform-managed device."`
	Token     AssetToken     `cmd:"" help:"Make a one-time token with which a device enrolls again as one asset."`
	Merge     AssetMerge     `cmd:"" help:"Make the device of one asset that of another, which is kept."`
}

// AssetImport reads a CSV file into the inventory.
type AssetImport struct {
	OfCompany
	File string `name:"file" required:"" placeholder:"FILE" help:"CSV with a header line: identification, serialNumber, model, manufacturer, brand, tags (separated by ;); any other column is custom data, such as user. - reads standard input."`
	Plan bool   `name:"plan" help:"Say what would change, and change nothing."`
}

// Run imports the file.
func (c *AssetImport) Run(env *Env) error {
	in, err := env.Input(c.File)
	if err != nil {
		return fault.Invalid(err.Error())
	}
	defer in.Close()
	lines, wrong, err := asset.ReadLines(in)
	if err != nil {
		return err
	}
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		done := asset.Imported{Errors: wrong}
		if len(wrong) == 0 {
			if done, err = admin.Assets.Import(ctx, owner.ID, lines, asset.ImportOptions{Dry: c.Plan}); err != nil {
				return answer{}, err
			}
		}
		if len(done.Errors) > 0 {
			err = &ExitError{Code: 1, Text: "nothing was imported: " + done.Failed()}
		}
		return answer{done, func(w io.Writer) {
			if len(done.Errors) == 0 {
				fmt.Fprintf(w, "%s made, %d changed, %d left as they were in %s.\n", phrase.Count(done.Made, "asset", "assets"),
					done.Changed, done.Left, owner.PathName())
			}
		}}, err
	})
}

// AssetList lists assets, as the API shows them.
type AssetList struct {
	OfCompany
	Status *string `name:"status" enum:"ACTIVE,INACTIVE,SYNCHRONIZING,PENDING,DELETED" placeholder:"STATUS" help:"Only assets of this status: ACTIVE, INACTIVE, SYNCHRONIZING, PENDING or DELETED."`
	Policy *string `name:"policy" placeholder:"POLICY" help:"Only assets under this policy."`
	Filter *string `name:"filter" placeholder:"QUERY" help:"Only assets that match, as in the API: 'tag=store-12&policyBehind=true'. Times may be durations: 'seenBefore=48h'. 'all=true' means all."`
	Limit  *int    `name:"limit" placeholder:"N" help:"At most so many; by default all."`
}

// Validate refuses a number that is none, and a policy that is empty, as a variable that a script
// has not set.
func (c *AssetList) Validate() error {
	if c.Policy != nil && *c.Policy == "" {
		return errors.New("--policy is empty; without it the assets of all policies are listed")
	}
	if c.Limit != nil && *c.Limit < 1 {
		return errors.New("--limit must be at least 1; without it all assets are listed")
	}
	return nil
}

// Run prints the list, by identification.
func (c *AssetList) Run(env *Env) error {
	args, err := c.filters(env)
	if err != nil {
		return err
	}
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		if err := admin.underPolicy(ctx, owner, &args); err != nil {
			return answer{}, err
		}
		if c.Policy != nil {
			under, err := admin.policy(ctx, owner, *c.Policy)
			if err != nil {
				return answer{}, err
			}
			args.Policy = under.ID
		}
		assets, err := admin.match(ctx, owner, args, deref(c.Limit))
		return answer{slice.Map(assets, asset.Asset.Public), func(w io.Writer) { listAssets(w, owner, assets) }}, err
	})
}

// filters are those of the flags. A filter that cannot be is a mistake on the command line.
func (c *AssetList) filters(env *Env) (args asset.FilterArgs, err error) {
	if c.Filter != nil {
		args, err = parseFilter(env, *c.Filter)
	}
	for flag, twice := range map[string]bool{
		"status": c.Status != nil && args.Status != "",
		"policy": c.Policy != nil && args.Policy != "",
	} {
		if twice && err == nil {
			err = &ExitError{Code: ExitUsage, Text: "--filter and --" + flag + " say the same: give one of them"}
		}
	}
	if c.Status != nil {
		args.Status = *c.Status
	}
	return args, err
}

// parseFilter reads --filter.
func parseFilter(env *Env, query string) (asset.FilterArgs, error) {
	args, err := asset.ParseFilter(query, env.Now())
	if err != nil {
		return args, &ExitError{Code: ExitUsage, Text: "--filter: " + Message(err)}
	}
	return args, nil
}

// underPolicy puts the id of a filter's policy in the place of its name or path name. A policy
// that there is not is a mistake on the command line.
func (a *Admin) underPolicy(ctx context.Context, owner company.Company, args *asset.FilterArgs) error {
	if args.Policy == "" {
		return nil
	}
	under, err := a.policy(ctx, owner, args.Policy)
	if fault.CodeOf(err) == fault.NotFound {
		return &ExitError{Code: ExitUsage, Text: "--filter: " + Message(err)}
	}
	args.Policy = under.ID
	return err
}

// match reads the assets of a company that meet a filter, by identification; at most
// limit, 0: all.
func (a *Admin) match(ctx context.Context, owner company.Company, args asset.FilterArgs, limit int) ([]asset.Asset, error) {
	filter, findable := args.Filter(access.Principal{CompanyID: owner.ID, CompanySlug: owner.Slug}, true)
	if !findable {
		return nil, nil
	}
	ids, err := a.Assets.AssetIDs(ctx, filter, asset.ByIdentification, false)
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		ids = ids[:min(len(ids), limit)]
	}
	return a.Assets.AssetsByID(ctx, owner.ID, ids)
}

func listAssets(w io.Writer, owner company.Company, assets []asset.Asset) {
	row(w, "ID", "IDENTIFICATION", "STATUS", "POLICY", "SERIAL NUMBER", "SYNCED")
	for _, a := range assets {
		policyName := "-"
		if a.Device != nil {
			policyName = orDash(a.Device.PolicyName)
		}
		row(w, a.ID, a.Identification, string(a.Status), policyName, orDash(a.Specifications["serialNumber"]), day(a.SyncedAt))
	}
	fmt.Fprintf(w, "%s of %s\n", phrase.Count(len(assets), "asset", "assets"), owner.PathName())
}

// AssetToken makes a token with which a device enrolls as one asset, live or not.
type AssetToken struct {
	OfCompany
	Asset  string `arg:"" help:"The asset's name, id or path name."`
	Policy string `name:"policy" placeholder:"POLICY" help:"The AGENT policy with which the device enrolls; by default that of the asset."`
}

// tokenView is the JSON of a new enrollment token.
type tokenView struct {
	Token     string              `json:"token"`
	ExpiresAt operation.Timestamp `json:"expiresAt"`
	PolicyID  string              `json:"policyId"`
}

// Run makes the token. It is shown here once.
func (c *AssetToken) Run(env *Env) error {
	return c.run(env, on((*Admin).asset, c.Asset, func(ctx context.Context, admin *Admin, owner company.Company, id string) (
		answer, error) {
		policyID := ""
		if c.Policy != "" {
			under, err := admin.policy(ctx, owner, c.Policy)
			if err != nil {
				return answer{}, err
			}
			policyID = under.ID
		}
		text, made, err := agentdevice.AssetTokens{Store: admin.Identity, Now: env.Now}.Issue(ctx, owner.ID, id, policyID, nil)
		view := tokenView{text, operation.Timestamp{Time: made.ExpiresAt}, resource.Of(owner.Slug, resource.Policies, made.PolicyID)}
		return answerf(view, "Token for %s, valid once and until %s; it is not shown again:\n\n%s\n", c.Asset, day(made.ExpiresAt),
			text), err
	}))
}

// AssetMerge merges two assets.
type AssetMerge struct {
	OfCompany
	Kept string `arg:"" help:"The asset that is kept, with its history: its name, id or path name."`
	New  string `arg:"" help:"The asset whose device it becomes."`
}

// Run merges.
func (c *AssetMerge) Run(env *Env) error {
	return c.run(env, on((*Admin).asset, c.Kept, func(ctx context.Context, admin *Admin, owner company.Company, kept string) (
		answer, error) {
		other, err := admin.asset(ctx, owner, c.New)
		if err != nil {
			return answer{}, err
		}
		view := map[string]string{"kept": resource.Of(owner.Slug, resource.Assets, kept),
			"merged": resource.Of(owner.Slug, resource.Assets, other)}
		err = admin.Identity.MergeAssets(ctx, owner.ID, kept, other, nil)
		return answerf(view, "%s has the device of %s now.\n", view["kept"], view["merged"]), err
	}))
}
