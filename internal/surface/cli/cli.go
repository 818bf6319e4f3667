// Package cli is the administration of Muster by command line. It works directly on the
// database (docs/operating.md), also while `muster serve` uses it.
//
// Every command prints text for people or, with -o json, one JSON value on
// standard output and nothing else. A failure is one line for standard error.
package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/webhook"
)

// Commands is the tree of administration commands.
type Commands struct {
	Company    CompanyCommands    `cmd:"" help:"Companies: the tenants of the service."`
	Key        KeyCommands        `cmd:"" help:"API keys of a company."`
	Policy     PolicyCommands     `cmd:"" help:"Policies of a company."`
	Asset      AssetCommands      `cmd:"" help:"Assets: the inventory of a company."`
	Enrollment EnrollmentCommands `cmd:"" help:"Codes with which devices enroll."`
	Job        JobCommands        `cmd:"" help:"Jobs: one command, or change of tags, for many devices of a company."`
	Webhook    WebhookCommands    `cmd:"" help:"Webhooks: addresses that get a company's events."`
	User       UserCommands       `cmd:"" help:"People who sign in to the portal."`
	Connection ConnectionCommands `cmd:"" help:"OAuth connections of a company."`
	Agent      AgentCommands      `cmd:"" help:"Versions of the agent, and their rollout to devices."`
	Approval   ApprovalCommands   `cmd:"" help:"What people approved with a passkey: export, and check without a database."`
	Activity   ActivityCommands   `cmd:"" help:"The record of who did what in a company."`
	Backup     Backup             `cmd:"" help:"Make an online copy of the embedded database."`
	Restore    Restore            `cmd:"" help:"Put a backup in the place of the embedded database."`
	Migrate    Migrate            `cmd:"" help:"Change an older database to this program's schema."`
	Copy       Copy               `cmd:"" help:"Copy a whole database into an empty one, from SQLite to PostgreSQL or back."`
	USB        USB                `cmd:"" name:"usb" help:"Provision devices of an AGENT policy, such as VR headsets, over USB."`
}

// Env is what commands run in.
type Env struct {
	Context context.Context
	In      io.Reader
	Out     io.Writer
	// Err takes what commands ask at a terminal, warnings and logs; nil: nothing is
	// asked, and there are none.
	Err io.Writer
	Now func() time.Time
	// User is the name of the operating system's user who runs the command.
	User string
	// ADB is the adb program of Android's developer tools; empty: adb in PATH.
	ADB string
	// Open opens a database that is at this program's schema.
	Open func(ctx context.Context, store config.Store, intent Intent) (*Admin, error)
	// Signer returns the keys of a key file; empty: of the file beside an embedded
	// database, and nil if there is no such file.
	Signer func(store config.Store, keyFile string) (activity.Signer, error)
	// Maintenance changes databases as a whole.
	Maintenance Maintenance
}

// errInterrupted ends a command that waits for input.
var errInterrupted = errors.New("interrupted: nothing was changed")

// Input opens a file to read; - is standard input, whose reading fails when the context ends.
func (e *Env) Input(path string) (io.ReadCloser, error) {
	if path != "-" {
		return os.Open(path)
	}
	out, in := io.Pipe()
	context.AfterFunc(e.Context, func() { _ = in.CloseWithError(errInterrupted) })
	go func() {
		_, err := io.Copy(in, e.In)
		_ = in.CloseWithError(err)
	}()
	return out, nil
}

// write writes a file to standard output, unless it could not be made.
func (e *Env) write(file []byte, err error) error {
	if err == nil {
		_, err = e.Out.Write(file)
	}
	return err
}

// warn writes a warning in a line of its own.
func (e *Env) warn(format string, args ...any) {
	if e.Err != nil {
		fmt.Fprintf(e.Err, "muster: "+format+"\n", args...)
	}
}

// Intent is what a command does with the database.
type Intent int

// The intents. Writes and Creates prove their entries of the activity log with the service's
// keys; Reads needs no keys. Only Creates sets up an empty database: Writes and Reads refuse one,
// and create no file.
const (
	Writes Intent = iota
	Reads
	Creates
)

// Common are the flags of every command.
type Common struct {
	config.Store
	Output string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
}

// OfCompany is Common for commands about one company.
type OfCompany struct {
	Common
	Company string `name:"company" required:"" placeholder:"SLUG" help:"The company's slug."`
}

// answer is what a command prints.
type answer struct {
	json any
	text func(w io.Writer)
}

// inCompany is work on one company.
type inCompany func(ctx context.Context, admin *Admin, owner company.Company) (answer, error)

// of returns work for the company with a slug. An unknown slug is an error.
func (work inCompany) of(slug string) func(ctx context.Context, admin *Admin) (answer, error) {
	return func(ctx context.Context, admin *Admin) (answer, error) {
		owner, err := admin.company(ctx, slug)
		if err != nil {
			return answer{}, err
		}
		return work(ctx, admin, owner)
	}
}

// on returns work on what find finds by a reference that a command names, such as an asset's name.
func on[T any](find func(a *Admin, ctx context.Context, owner company.Company, ref string) (T, error), ref string,
	work func(ctx context.Context, admin *Admin, owner company.Company, found T) (answer, error)) inCompany {
	return func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		found, err := find(admin, ctx, owner, ref)
		if err != nil {
			return answer{}, err
		}
		return work(ctx, admin, owner, found)
	}
}

// answerf is the answer that prints a text; as JSON, the view.
func answerf(view any, format string, args ...any) answer {
	return answer{view, func(w io.Writer) { fmt.Fprintf(w, format, args...) }}
}

// list is the answer that prints things: as JSON, the view of each; as text, a table.
func list[T, V any](things []T, view func(T) V, header []string, cells func(T) []string) answer {
	return answer{slice.Map(things, view), func(w io.Writer) {
		row(w, header...)
		for _, thing := range things {
			row(w, cells(thing)...)
		}
	}}
}

// missing turns fault.NotFound into an error that names the list command to use. kind is the name of a
// command group, such as webhook. Other errors are returned as they are.
func missing(err error, slug, kind, name string) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return fault.New(fault.NotFound, "company %[1]s has no %[2]s %[3]q: `muster %[2]s list --company %[1]s` shows those there are", slug,
		kind, name)
}

// run opens the admin for a command that writes, works on the company and prints the
// answer.
func (c OfCompany) run(env *Env, work inCompany) error {
	return c.open(env, Writes, work.of(c.Company))
}

// reading is run for a command that only reads, and so needs no keys (see Reads).
func (c OfCompany) reading(env *Env, work inCompany) error {
	return c.open(env, Reads, work.of(c.Company))
}

// operator is who acts in a company on the command line.
func (env *Env) operator(owner company.Company) access.Principal {
	actor := access.OperatorActor(env.User)
	return access.Principal{Kind: actor.Kind, ID: actor.ID, Name: actor.Name, CompanyID: owner.ID, CompanySlug: owner.Slug}
}

// open opens the admin, does the work and prints its answer.
func (c Common) open(env *Env, intent Intent, work func(ctx context.Context, admin *Admin) (answer, error)) (err error) {
	if err := c.Store.Check(); err != nil {
		return err
	}
	// What the command line changes is recorded as the operator's.
	ctx := access.WithActor(env.Context, access.OperatorActor(env.User), "")
	admin, err := env.Open(ctx, c.Store, intent)
	if err != nil {
		return err
	}
	if admin.Unproved != "" {
		env.warn("what this command records in the activity log has no proof, and `muster activity verify` will report it: %s; set "+
			"MUSTER_KEY_FILE to the service's key file", admin.Unproved)
	}
	result, err := work(ctx, admin)
	if closing := admin.Close(); err == nil {
		err = closing
	}
	if result.text == nil {
		return err // the work has written its own answer, or it failed
	}
	// An ExitError has an answer beside it, which is printed. Any other error takes its place.
	if _, exits := errors.AsType[*ExitError](err); err != nil && !exits {
		return err
	}
	return cmp.Or(Print(env.Out, c.Output, result.json, result.text), err)
}

// Print writes an answer in the chosen form. A text is made Visible; JSON is for programs.
func Print(w io.Writer, form string, value any, text func(w io.Writer)) error {
	if form == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	var out strings.Builder
	text(&out)
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, err := io.WriteString(table, Visible(out.String()))
	return cmp.Or(err, table.Flush())
}

// Visible is a text without characters that a terminal obeys or that change the order of others, but for tabs and the ends
// of lines: what devices and people wrote is not trusted.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r)) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// row writes one line of a table.
func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// Message is an error as one line for an operator, who owns the database and
// may see causes.
func Message(err error) string {
	f := fault.From(err)
	parts := []string{f.Detail}
	if f.Code == fault.Internal && f.Err != nil {
		parts = []string{f.Err.Error()}
	} else if f.Err != nil && !errors.Is(f.Err, access.ErrStopped) {
		parts = append(parts, f.Err.Error())
	}
	for _, field := range f.Fields {
		if !strings.Contains(f.Detail, field.Message) { // the detail may already say it
			parts = append(parts, field.Field+": "+field.Message)
		}
	}
	return strings.Join(strings.FieldsFunc(strings.Join(parts, "; "), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// day formats a time to the minute, in UTC; "-" for the zero time.
func day(t time.Time) string {
	return phrase.Either(t.IsZero(), "-", t.UTC().Format("2006-01-02 15:04Z"))
}

// Admin is an open database and the services that commands use. Close it after use.
type Admin struct {
	Companies company.Store
	Keys      apikey.Store
	Assets    asset.Store
	Editor    asset.Editor
	Deleter   asset.Deleter
	// DeleteCompany deletes a company with everything that belongs to it, after all of it was
	// exported. It fails with fault.Refused while the company is connected or a device is
	// managed, with fault.NotFound without the company, and with the error of exporter. If it
	// fails with fault.Unavailable, the company may stay stopped.
	DeleteCompany func(ctx context.Context, id string, exporter durable.RowExporter) error
	// Enterprises says what is wrong with companies' enterprises, and who may decide
	// about requests.
	Enterprises Enterprises
	// Companions are the agents beside the platform's management.
	Companions agentdevice.CompanionStore
	Identity   Identity
	// AssetsNamed returns the ids of a company's assets with an identification, at most limit.
	AssetsNamed func(ctx context.Context, companyID, identification string, limit int) ([]string, error)
	Policies    policy.Service
	Users       account.UserStore
	Domains     account.DomainStore
	// Connections are the OAuth connections of people's applications.
	Connections oauth.ConnectionStore
	// Signed is what people signed with their passkeys.
	Signed SignedStore
	// PublicURL returns the public URL with which the service last started; empty: it was not started yet.
	PublicURL func(ctx context.Context) (string, error)
	// Passkeys reads passkeys as the service at a public address does.
	Passkeys func(publicURL string) (approval.Passkeys, error)
	// Activity is the record of who did what.
	Activity activity.Store
	// Chain makes the sealer of the record's chain, with the keys of a file;
	// empty: the file beside an embedded database.
	Chain func(ctx context.Context, store config.Store, keyFile string) (*activity.Sealer, error)
	// Backup makes an online copy of the database at a path that does not exist.
	Backup func(ctx context.Context, path string) error
	// Platform makes the way to the vendor's platform; publicURL is where the
	// running service is reached.
	Platform func(settings config.Platform, publicURL string) (Platform, error)
	// Provisioning makes enrollment tokens of a type of policy as the service with those
	// settings does. It refuses a key file that is not the database's.
	Provisioning func(ctx context.Context, settings config.Service, of policy.Type) (*provisioning.Service, error)
	Codes        provisioning.Codes
	Tokens       TokenFinder
	// Rollouts are the agent's versions.
	Rollouts rollout.Store
	Jobs     job.Service
	// Mail keeps which mail users get.
	Mail attention.ChoiceStore
	// Webhooks makes what works with webhooks, which may send to networks; seals: with the
	// service's keys, for secrets.
	Webhooks func(networks []netip.Prefix, seals bool) (webhook.Service, error)
	// Unproved says why the command's entries in the activity log have no proof; empty: they have one.
	Unproved string
	Close    func() error
}

// Enterprises reads what a company depends on. Each method fails as the database does.
type Enterprises interface {
	// EnterpriseTroubles returns what is wrong with companies' enterprises, by company.
	EnterpriseTroubles(ctx context.Context) (map[string]company.Trouble, error)
	// Approvers returns a company's users, with what decides whether they may approve requests.
	Approvers(ctx context.Context, companyID string) ([]access.Approver, error)
}

// Identity changes which device an asset is.
type Identity interface {
	agentdevice.AssetTokenStore
	// MergeAssets moves the device of the asset otherID to the asset keptID. It fails with
	// fault.NotFound for what is not the company's, and with fault.Refused, which says why the two
	// cannot be merged. If the asset keptID has a managed device, by decides whether that may
	// leave: its Refusal, or fault.RateLimited above the limit of destructive commands; nil: the
	// operator.
	MergeAssets(ctx context.Context, companyID, keptID, otherID string, by *access.Replacement) error
}

// TokenFinder finds devices with our own agent, or returns fault.NotFound.
type TokenFinder interface {
	// AgentOfToken finds the device that a token enrolled, once it has its asset.
	AgentOfToken(ctx context.Context, hash [sha256.Size]byte) (agentdevice.Device, error)
	// AgentDevice returns a device in any state, or fault.NotFound.
	AgentDevice(ctx context.Context, id string) (agentdevice.Device, error)
}
