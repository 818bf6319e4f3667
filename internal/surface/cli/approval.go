package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/signature"
)

// ApprovalCommands are about what people signed with their passkeys.
type ApprovalCommands struct {
	Export ApprovalExport `cmd:"" help:"Write what a person signed about a proposal, as one line of JSON that stands by itself."`
	Keys   ApprovalKeys   `cmd:"" help:"Write the service's public keys, and the passkeys of a company's people with their rights, for approval verify --trust."`
	Verify ApprovalVerify `cmd:"" help:"Check an exported approval, without a database. Exit code 1: a byte was changed, or the key is not trusted; 2: without --trust, which shows integrity only, or where the service has not countersigned it."`
}

// SignedStore finds what people signed.
type SignedStore interface {
	// SignedDocument returns the last document signed about a subject, or fault.NotFound.
	SignedDocument(ctx context.Context, companyID, subject string) (signature.Signed, error)
	// Passkeys returns a user's passkeys; none is no error.
	Passkeys(ctx context.Context, userID string) ([]account.Passkey, error)
	// Decider returns a user as one who may decide, or fault.NotFound.
	Decider(ctx context.Context, companyID, userID string) (access.Approver, error)
}

// Exit codes of commands, listed in docs/operating.md.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2 // a mistake on the command line, or a call that the service finds invalid
	ExitUnconfirmed = 3 // over the network: it is not known what came of it
)

// ExitError ends the program with a code of its own. An answer beside it is printed.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// ApprovalExport writes a signed document.
type ApprovalExport struct {
	OfCompany
	ID string `arg:"" help:"The proposal's id, prp_…, or what else was decided on."`
}

// Run writes the file to standard output.
func (c *ApprovalExport) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		signed, err := admin.Signed.SignedDocument(ctx, owner.ID, c.ID)
		if fault.CodeOf(err) == fault.NotFound {
			return answer{}, fmt.Errorf("no person of company %s has decided on %s", owner.Slug, c.ID)
		}
		if err != nil {
			return answer{}, err
		}
		return answer{}, env.write(signed.Export())
	})
}

// ApprovalKeys writes whose signatures count.
type ApprovalKeys struct {
	OfCompany
	KeyFile   string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's key file, whose public keys are written, former ones too; by default the one beside the SQLite file."`
	PublicURL string `name:"public-url" env:"MUSTER_PUBLIC_URL" placeholder:"URL" help:"Address of the service, which its passkeys belong to; by default the one with which it last started."`
}

// Run writes the file to standard output.
func (c *ApprovalKeys) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		keys, err := c.passkeys(ctx, admin)
		if err != nil {
			return answer{}, err
		}
		people, err := admin.Users.Users(ctx, owner.ID)
		if err != nil {
			return answer{}, err
		}
		trust := signature.Trust{Company: owner.Slug, Party: keys.Party()}
		if trust.Service, err = c.service(env); err != nil {
			return answer{}, err
		}
		for _, u := range people {
			who, err := admin.Signed.Decider(ctx, owner.ID, u.ID)
			if err != nil {
				return answer{}, err
			}
			theirs, err := admin.Signed.Passkeys(ctx, u.ID)
			if err != nil {
				return answer{}, err
			}
			trust.Keys = append(trust.Keys, trusted(env, keys, u, who, theirs)...)
		}
		return answer{}, env.write(trust.Export())
	})
}

// passkeys reads passkeys as the service does at its public URL. It does not guess one: with
// the keys of another address, no approval verifies.
func (c *ApprovalKeys) passkeys(ctx context.Context, admin *Admin) (approval.Passkeys, error) {
	if c.PublicURL != "" {
		keys, err := admin.Passkeys(c.PublicURL)
		if err != nil {
			return nil, &ExitError{Code: ExitUsage, Text: fmt.Sprintf("--public-url %q: %s", c.PublicURL, err)}
		}
		return keys, nil
	}
	recorded, err := admin.PublicURL(ctx)
	if err != nil {
		return nil, err
	}
	if recorded == "" {
		return nil, &ExitError{Code: ExitUsage, Text: "the address that passkeys belong to is not known, because the service never " +
			"started on this database: give --public-url"}
	}
	keys, err := admin.Passkeys(recorded)
	if err != nil {
		return nil, fmt.Errorf("the service last started with the address %s: %w; if people use another address, give --public-url",
			recorded, err)
	}
	return keys, nil
}

// service are the public keys of the service.
func (c *ApprovalKeys) service(env *Env) ([]string, error) {
	signer, err := env.Signer(c.Store, c.KeyFile)
	if err != nil {
		return nil, err
	}
	if signer == nil {
		env.warn("no key file was found: the keys prove who signed, not what the service accepted; give --key-file")
		return []string{}, nil
	}
	return signature.ServiceKeys(signer.PublicKeys()), nil
}

// trusted are the passkeys of a person that can sign documents.
func trusted(env *Env, keys approval.Passkeys, u account.User, who access.Approver, theirs []account.Passkey) []signature.TrustedKey {
	var all []signature.TrustedKey
	for _, p := range theirs {
		public, err := keys.PublicKey(p.Credential)
		if err != nil {
			env.warn("a passkey of %s cannot sign approvals: %s", u.Email, err)
			continue
		}
		all = append(all, signature.NewTrustedKey(p.ID, public, signature.Person{ID: u.ID, Name: u.Name}, u.Email,
			who.Rights(), p.CreatedAt))
	}
	return all
}

// ApprovalVerify checks an exported approval.
type ApprovalVerify struct {
	Output string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
	File   string `arg:"" type:"path" help:"What approval export wrote."`
	Trust  string `name:"trust" type:"path" placeholder:"KEYS" help:"What approval keys wrote."`
}

// verifiedView is what verify reports.
type verifiedView struct {
	Trusted  bool            `json:"trusted"`
	Accepted bool            `json:"accepted"` // the service countersigned it
	Document json.RawMessage `json:"document"`
}

// Run prints who decided what, and when.
func (c *ApprovalVerify) Run(env *Env) error {
	file, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("cannot read the approval: %w", err)
	}
	var trust *signature.Trust
	if c.Trust != "" {
		text, err := os.ReadFile(c.Trust)
		if err != nil {
			return fmt.Errorf("cannot read the keys: %w", err)
		}
		known, err := signature.ParseTrust(text)
		if err != nil {
			return fmt.Errorf("cannot read the keys in %s: %w", c.Trust, err)
		}
		trust = &known
	}
	signed, err := signature.Verify(file, trust)
	if err != nil {
		return fmt.Errorf("%s does not verify: %w", c.File, err)
	}
	accepted := trust != nil && signed.Countersignature != nil
	err = Print(env.Out, c.Output, verifiedView{trust != nil, accepted, signed.Document}, func(w io.Writer) {
		showSigned(w, signed, accepted)
	})
	switch {
	case err != nil:
		return err
	case trust == nil:
		return &ExitError{2, "integrity only: the file is whole, but whose key signed it is not known; give --trust with what `muster " +
			"approval keys` wrote"}
	case !accepted:
		return &ExitError{2, "signed, acceptance not proved: a trusted key signed it, but the service has not countersigned it, so it " +
			"may never have been decided on there"}
	}
	return nil
}

// showSigned says who decided what and when.
func showSigned(w io.Writer, s signature.Signed, accepted bool) {
	head, document, err := signature.Read(s.Document)
	if err != nil { // it was verified
		fmt.Fprintln(w, string(s.Document))
		return
	}
	word := map[signature.Decision]string{signature.Approve: "approved", signature.Decline: "declined"}[head.Decision]
	if !accepted {
		word = "signed the word " + string(head.Decision) + " about"
	}
	fmt.Fprintf(w, "%q (user %s) %s %s of company %s, shown at %s.\n", head.Approver.Name, head.Approver.ID, word, head.Subject,
		head.Company, moment(head.At))
	if c := s.Countersignature; accepted {
		fmt.Fprintf(w, "The service accepted it at %s; the person's rights: %s.\n", moment(c.At), strings.Join(c.Rights, ", "))
	}
	if head.Confirmation != "" {
		fmt.Fprintf(w, "Typed: %q.\n", head.Confirmation)
	}
	if head.Reason != "" {
		fmt.Fprintf(w, "Reason: %q.\n", head.Reason)
	}
	if c, ok := document.(*signature.Change); ok {
		showChange(w, c)
		return
	}
	fmt.Fprintln(w, string(s.Document))
}

func moment(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "an unknown time"
	}
	return day(at)
}

func showChange(w io.Writer, c *signature.Change) {
	fmt.Fprintf(w, "A %s of policy %q (%s) from version %d; impact %s, %s. Document: SHA-256 %s.\n",
		c.Kind, c.Policy.Name, c.Policy.ID, c.BaseVersion, c.Impact, phrase.Count(c.Devices, "device", "devices"), c.DocumentSHA256)
	for _, v := range c.Changes {
		fmt.Fprintf(w, "  %q: from %q to %q\n", v.Setting, v.From, v.To)
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(w, "  Warning: %s\n", warning)
	}
	asked := c.Caller.Prefix
	if c.Caller.User != nil {
		asked = fmt.Sprintf("%q for %q", c.Caller.Client, c.Caller.User.Name)
	}
	fmt.Fprintf(w, "Proposed by %s %s (%s). Expires %s.\n", c.Caller.Kind, asked, c.Caller.ID, c.Expires)
}
