package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
)

// EnrollmentCommands manage the codes with which devices enroll.
type EnrollmentCommands struct {
	Create EnrollmentCreate `cmd:"" help:"Make an enrollment token and show it, once."`
	List   EnrollmentList   `cmd:"" help:"List a company's enrollment codes, the newest first."`
	Revoke EnrollmentRevoke `cmd:"" help:"Revoke a code; the platform is asked to delete its token."`
}

// EnrollmentCreate makes a token.
type EnrollmentCreate struct {
	OfCompany
	PlatformFlags
	Policy     string   `name:"policy" required:"" placeholder:"POLICY" help:"The policy with which devices enroll: its name, id or path name."`
	MaxDevices *int     `name:"max-devices" placeholder:"N" help:"How many devices it enrolls, 1 to 100000; by default one of an AGENT policy, any number of a PLATFORM one."`
	Tag        []string `name:"tag" sep:"none" placeholder:"TAG" help:"A tag that each device gets; may be repeated, at most 10 times."`
	Usage      string   `name:"personal-usage" enum:"UNSPECIFIED,ALLOWED,DISALLOWED,USERLESS" default:"UNSPECIFIED" placeholder:"MODE" help:"Of a PLATFORM policy: ALLOWED (work profile on a personal device), DISALLOWED (fully managed), USERLESS (dedicated device)."`

	KeyFile        string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The running service's keys; by default beside the SQLite file. Of an AGENT policy."`
	AcceptLostKeys bool   `name:"accept-lost-keys" help:"Go on although the key file lacks keys that the database names."`
}

// Validate refuses a number that is none as bad usage.
func (c *EnrollmentCreate) Validate() error {
	if c.MaxDevices != nil && (*c.MaxDevices < 1 || *c.MaxDevices > provisioning.MaxDevices) {
		return &ExitError{Code: ExitUsage, Text: "--max-devices must be from 1 to 100000"}
	}
	return nil
}

// createdCode is the JSON of a new code.
type createdCode struct {
	ID string `json:"id"`
	tokenView
}

// Run makes the token. It is shown here once.
func (c *EnrollmentCreate) Run(env *Env) error {
	return c.run(env, on((*Admin).policy, c.Policy, func(ctx context.Context, admin *Admin, owner company.Company, under policy.Policy) (
		answer, error) {
		settings := config.Service{Store: c.Store, Platform: c.Platform, KeyFile: c.KeyFile, AcceptLostKeys: c.AcceptLostKeys}
		making, err := admin.Provisioning(ctx, settings, under.Type)
		if err != nil {
			return answer{}, err
		}
		wanted := provisioning.Request{PolicyID: under.ID, PersonalUsage: provisioning.PersonalUsage(c.Usage),
			Limits: provisioning.Limits{Tags: c.Tag, Devices: deref(c.MaxDevices)}}
		token, _, err := making.Issue(ctx, env.operator(owner), wanted)
		if err != nil {
			return answer{}, usage(err)
		}
		view := createdCode{token.Code, tokenView{token.Text, operation.Timestamp{Time: token.ExpiresAt}, under.PathName()}}
		return answerf(view, "Code %s of %s, until %s; the token is not shown again:\n\n%s\n", view.ID, under.Name, day(token.ExpiresAt),
			token.Text), nil
	}))
}

// codeView is the JSON of a code.
type codeView struct {
	ID         string                     `json:"id"`
	Status     provisioning.CodeStatus    `json:"status"`
	PolicyID   string                     `json:"policyId"`
	PolicyName string                     `json:"policyName"`
	Usage      provisioning.PersonalUsage `json:"personalUsage"`
	CreatedBy  string                     `json:"createdBy"`
	Tags       []string                   `json:"tags"`
	MaxDevices int                        `json:"maxDevices"` // 0: no limit
	Devices    int                        `json:"devices"`
	CreatedAt  operation.Timestamp        `json:"createdAt"`
	ExpiresAt  operation.Timestamp        `json:"expiresAt"`
	RevokedAt  *operation.Timestamp       `json:"revokedAt,omitempty"`
	Dropping   bool                       `json:"tokenStillValid,omitempty"` // at the platform
}

// viewCode is how a code is shown.
func viewCode(env *Env, owner company.Company, c provisioning.Code) codeView {
	return codeView{ID: c.ID, Status: c.Status(env.Now()), PolicyID: resource.Of(owner.Slug, resource.Policies, c.PolicyID),
		PolicyName: c.PolicyName, Usage: c.Usage, CreatedBy: c.Maker.Name, Tags: append([]string{}, c.Tags...),
		MaxDevices: c.MaxDevices, Devices: c.Devices, CreatedAt: operation.Timestamp{Time: c.CreatedAt},
		ExpiresAt: operation.Timestamp{Time: c.ExpiresAt}, RevokedAt: operation.TimestampOf(c.RevokedAt), Dropping: c.Dropping}
}

// EnrollmentList lists codes.
type EnrollmentList struct{ OfCompany }

const listedCodes = 1000

// Run prints the list.
func (c *EnrollmentList) Run(env *Env) error {
	return c.reading(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		all, err := admin.Codes.Codes(ctx, owner.ID, nil, listedCodes)
		return list(all, func(c provisioning.Code) codeView { return viewCode(env, owner, c) },
			[]string{"ID", "STATUS", "POLICY", "DEVICES", "TIME LEFT", "CREATED BY", "TAGS"}, func(c provisioning.Code) []string {
				v := viewCode(env, owner, c)
				return []string{v.ID, statusOf(v), orDash(c.PolicyName), usedOf(c), left(env, c), orDash(v.CreatedBy),
					orDash(strings.Join(c.Tags, ", "))}
			}), err
	})
}

// statusOf is where a code stands. The platform's token may outlast it.
func statusOf(v codeView) string {
	return string(v.Status) + phrase.Either(v.Dropping, ", its token not deleted yet", "")
}

// usedOf is how many devices enrolled, of how many.
func usedOf(c provisioning.Code) string {
	return phrase.Either(c.MaxDevices == 0, strconv.Itoa(c.Devices), fmt.Sprintf("%d of %d", c.Devices, c.MaxDevices))
}

// left is the time that an active code has left, or that a device waits to enroll with it.
func left(env *Env, c provisioning.Code) string {
	if !c.Revocable(env.Now()) {
		return "-"
	}
	if c.Status(env.Now()) != provisioning.CodeActive {
		return "a device waits"
	}
	return phrase.Span(c.ExpiresAt.Sub(env.Now()).Round(time.Minute))
}

// EnrollmentRevoke ends a code.
type EnrollmentRevoke struct {
	OfCompany
	ID string `arg:"" name:"code" help:"The code's id."`
}

// Run ends it.
func (c *EnrollmentRevoke) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		revoked, err := admin.Codes.RevokeCode(ctx, owner.ID, nil, c.ID)
		return answer{viewCode(env, owner, revoked), func(w io.Writer) {
			fmt.Fprintf(w, "Revoked %s. %s\n", revoked.ID, provisioning.AfterRevoke(1, revoked.Management))
			if revoked.Management == policy.Platform {
				fmt.Fprintln(w, "The running service asks it within seconds; muster enrollment list shows whether the token is deleted.")
			}
		}}, missing(err, owner.Slug, "enrollment", c.ID)
	})
}
