package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/phrase"
)

// ActivityCommands read the activity log.
type ActivityCommands struct {
	List   ActivityList   `cmd:"" help:"Show a company's newest entries."`
	Export ActivityExport `cmd:"" help:"Write a company's entries, newest first, as CSV or NDJSON."`
	Verify ActivityVerify `cmd:"" help:"Check a company's chain of entries; exit code 1 if it is broken."`

	Restart ActivityRestart `cmd:"" help:"Begin a broken chain again with the entries that there are now."`
}

// ActivityVerify checks a company's chain, in the database or in an export.
type ActivityVerify struct {
	Common
	Company string `name:"company" placeholder:"SLUG" help:"The company's slug; not with --export."`
	KeyFile string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's key file; by default the one beside the SQLite file. Without one, --export checks no proofs."`
	Export  string `name:"export" type:"path" placeholder:"FILE" help:"Check what activity export wrote as NDJSON, without a database."`
	Heads   string `name:"heads" type:"path" placeholder:"FILE" help:"With --export: lines of the service's log whose heads the export must continue."`
}

// Validate wants a chain.
func (c *ActivityVerify) Validate() error {
	switch {
	case (c.Company == "") == (c.Export == ""):
		return errors.New("give --company, or --export")
	case c.Heads != "" && c.Export == "":
		return errors.New("--heads goes with --export")
	}
	return nil
}

// chainView is what verify reports about a chain.
type chainView struct {
	Sound   bool   `json:"sound"`
	Checked int64  `json:"checked"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Hash    string `json:"hash"`
	// ProvedFrom is the first place whose entry must have a proof: the chain alone
	// covers entries before it.
	ProvedFrom int64  `json:"provedFrom"`
	Broken     int64  `json:"broken"` // the place where it is broken; 0: it is not
	Why        string `json:"why"`
}

func viewChain(v activity.Verification) chainView {
	return chainView{v.Sound(), v.Checked, v.Head.First, v.Head.Last, v.Head.Hash, v.Head.ProvedFrom, v.Broken, v.Why}
}

// Run prints the verdict. A broken chain is printed too, and is a failure.
func (c *ActivityVerify) Run(env *Env) error {
	if c.Export != "" {
		return c.offline(env)
	}
	return OfCompany{c.Common, c.Company}.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		sealer, err := admin.Chain(ctx, c.Store, c.KeyFile)
		if err != nil {
			return answer{}, err
		}
		v, err := sealer.Check(ctx, owner.ID)
		if err == nil && !v.Sound() {
			err = &ExitError{1, fmt.Sprintf("the chain of company %s is broken at entry %d: %s", owner.Slug, v.Broken, v.Why)}
		}
		return answer{viewChain(v), func(w io.Writer) {
			if v.Sound() {
				fmt.Fprintf(w, "%s an unbroken chain. Its head, %s, is signed by this service.\n",
					covered(v.Checked, v.Head.First, v.Head.Last), v.Head.Hash)
				unproved(w, v)
			}
		}}, err
	})
}

// covered says which entries form a chain.
func covered[N int | int64](n N, first, last int64) string {
	return phrase.Either(n == 1, fmt.Sprintf("1 entry, %d, forms", first), fmt.Sprintf("%d entries, from %d to %d, form", n, first, last))
}

// unproved warns of entries that the chain alone covers.
func unproved(w io.Writer, v activity.Verification) {
	if n := v.Unproved(); n > 0 {
		fmt.Fprintf(w, "Warning: the entries up to %d need no proof. They are from before entries had proofs, or a restart of the chain "+
			"took them in: the chain shows that they did not change since, not who wrote them.\n", n)
	}
}

// offlineView is what verify reports about an export.
type offlineView struct {
	chainView
	From     int64  `json:"from"`
	Unsealed int    `json:"unsealed"`
	Key      string `json:"key"`
	Proofs   bool   `json:"proofs"`
	Compared int    `json:"headsCompared"`
	Older    int    `json:"headsOlder"`
	// NotCovered are members of entries that no hash covers.
	NotCovered []string `json:"notCovered"`
}

func (c *ActivityVerify) offline(env *Env) error {
	signer, err := env.Signer(c.Store, c.KeyFile)
	if err != nil {
		return err
	}
	export, err := os.Open(c.Export)
	if err != nil {
		return fmt.Errorf("cannot read the export: %w", err)
	}
	defer export.Close()
	var heads io.Reader
	if c.Heads != "" {
		file, err := os.Open(c.Heads)
		if err != nil {
			return fmt.Errorf("cannot read the heads: %w", err)
		}
		defer file.Close()
		heads = file
	}
	o, err := activity.VerifyExport(export, heads, signer)
	if err != nil {
		return fmt.Errorf("cannot verify %s: %w", c.Export, err)
	}
	view := offlineView{viewChain(o.Verification), o.From, o.Unsealed, o.Key, o.Proofs, o.Compared, o.Older, []string{}}
	if o.Devices {
		view.NotCovered = append(view.NotCovered, "device")
	}
	err = Print(env.Out, c.Output, view, func(w io.Writer) { showOffline(w, o, c.Heads != "") })
	if err == nil && !o.Sound() {
		err = fmt.Errorf("the chain of the export is broken at entry %d: %s", o.Broken, o.Why)
	}
	return err
}

func showOffline(w io.Writer, o activity.Offline, heads bool) {
	if !o.Sound() {
		return
	}
	fmt.Fprintf(w, "%s an unbroken chain. Its head, %s, is signed.\n", covered(o.Checked, o.From, o.Head.Last), o.Head.Hash)
	if o.Proofs {
		fmt.Fprintln(w, "The key file has the key of the signature, and proves the entries.")
		unproved(w, o.Verification)
	} else {
		fmt.Fprintf(w, "The key is the one that the export names, %s: compare it, or give --key-file, which also checks each "+
			"entry's proof.\n", o.Key)
	}
	if o.Devices {
		fmt.Fprintln(w, "Not covered: the member device, which is what a device was called when the log was exported.")
	}
	if o.Unsealed > 0 {
		fmt.Fprintf(w, "%s had no place in the chain yet.\n", phrase.Count(o.Unsealed, "entry", "entries"))
	}
	if heads {
		fmt.Fprintf(w, "The chain continues %s. Older than the export, and not compared: %d.\n",
			phrase.Count(o.Compared, "noted head", "noted heads"), o.Older)
	}
}

// ActivityRestart begins a broken chain again.
type ActivityRestart struct {
	OfCompany
	KeyFile string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's key file; by default the one beside the SQLite file."`
	Reason  string `name:"reason" required:"" help:"What broke the chain; it is recorded."`
}

// Run restarts the chain.
func (c *ActivityRestart) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		sealer, err := admin.Chain(ctx, c.Store, c.KeyFile)
		if err != nil {
			return answer{}, err
		}
		v, err := sealer.Restart(ctx, owner.ID, activity.Target{Kind: activity.Company, ID: owner.ID, Name: owner.Name}, c.Reason)
		view := map[string]any{"company": owner.Slug, "broken": v.Broken, "why": v.Why}
		return answerf(view, "The chain of company %s begins again with the entries that it has now. Before: %s (entry %d).\n",
			owner.Slug, v.Why, v.Broken), err
	})
}

// within are the filters of both.
type within struct {
	OfCompany
	Last time.Duration `name:"last" default:"30d" placeholder:"DURATION" help:"How far back; by default 30d."`
	Area *string       `name:"area" placeholder:"AREA" help:"Only command, proposal, policy, provisioning, signin, identity, user, key, connection, company, asset, authorization, job or webhook."`
}

// Validate wants a time to look back, and an area that there is.
func (c within) Validate() error {
	if c.Last <= 0 {
		return errors.New("--last must be a positive duration, such as 24h")
	}
	if c.Area != nil && !slices.Contains(activity.Areas(), *c.Area) {
		return fmt.Errorf("--area must be one of %s", strings.Join(activity.Areas(), ", "))
	}
	return nil
}

func (c within) filter(owner company.Company, now time.Time) activity.Filter {
	return activity.Filter{CompanyID: owner.ID, Area: deref(c.Area), From: now.Add(-c.Last), To: now.Add(time.Minute)}
}

// ActivityList lists entries.
type ActivityList struct {
	within
	Limit int `name:"limit" default:"50" help:"How many entries, at least 1; more than 200 is 200."`
}

// Validate wants at least one.
func (c *ActivityList) Validate() error {
	return cmp.Or(c.within.Validate(), atLeastOne("limit", &c.Limit))
}

// Run prints the list.
func (c *ActivityList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		entries, err := admin.Activity.Activity(ctx, c.filter(owner, env.Now()), activity.Cursor{}, c.Limit)
		return answer{activity.Lines(entries), func(w io.Writer) {
			row(w, "AT", "KIND", "WHO", "DID", "OUTCOME", "TICKET", "REASON")
			for _, e := range entries {
				row(w, day(e.At), string(e.Actor.Kind), orDash(who(e.Actor)), sentence(e), string(e.Outcome), orDash(e.Note.Ticket),
					orDash(e.Note.Reason))
			}
		}}, err
	})
}

// sentence is an entry's sentence, with a mark of what loosens a control.
func sentence(e activity.Entry) string {
	s := command.Sentence(e)
	return s.String() + phrase.Either(s.Loosens, " (LOOSENS)", "")
}

// who is an actor's name and, of a key, what its text begins with.
func who(a access.Actor) string {
	return phrase.Either(a.Prefix == "", a.Name, strings.TrimSpace(a.Name+" ("+a.Prefix+"…)"))
}

// ActivityExport writes entries as they are read.
type ActivityExport struct {
	within
	Format  string `name:"format" enum:"csv,ndjson" default:"ndjson" help:"csv or ndjson. NDJSON without --area ends with the signed head of the chain, for activity verify --export."`
	KeyFile string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's key file, whose public keys go into the NDJSON; by default the one beside the SQLite file."`
}

// Run writes the export to standard output and nothing else.
func (c *ActivityExport) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		filter := c.filter(owner, env.Now())
		var failed error
		if c.Format == string(activity.NDJSON) && c.Area == nil {
			keys, err := env.Signer(c.Store, c.KeyFile)
			if err != nil {
				return answer{}, err
			}
			failed = activity.ExportChain(ctx, admin.Activity, filter.CompanyID, filter.From, keys, env.Out)
		} else {
			failed = activity.Export(ctx, admin.Activity, filter, activity.Format(c.Format), env.Out)
		}
		if failed != nil {
			failed = fmt.Errorf("the export broke off: %w", failed)
		}
		return answer{}, failed
	})
}
