package provisioning

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// issueLimit is how long one call of an Issuer may take.
const issueLimit = 30 * time.Second

// Catalog finds policies and companies.
type Catalog interface {
	// Policy returns a policy, also a deleted one, or fault.NotFound.
	Policy(ctx context.Context, companyID, id string) (policy.Policy, error)
	// CompanyByID returns a company, or fault.NotFound.
	CompanyByID(ctx context.Context, id string) (company.Company, error)
}

// Service makes enrollment tokens, and QR codes that hold them. Concurrent use is safe.
type Service struct {
	Catalog Catalog
	// Issuers has the Issuer of each type of policy. Without one for a type, calls fail with fault.Provider, as when the
	// vendor does not answer.
	Issuers map[policy.Type]Issuer
	// Codes stores the codes, without their tokens' text.
	Codes Codes
	// Records records that a caller makes a code, before the token is made and without its content. If recording fails, the
	// code is not made.
	Records activity.Recorder
	// Stands returns access.ErrMoved if the caller's permit, in the context, is no longer valid; nil: this is not checked.
	// A token that was made for a caller who may not have it any more is deleted.
	Stands    func(ctx context.Context) error
	Log       *slog.Logger // nil: silent
	PublicURL string       // without a closing slash
	Now       func() time.Time
}

// Result is a provisioning QR code (contract 2.7).
type Result struct {
	PolicyID      string              `json:"policyId" doc:"Path name of the policy with which devices enroll."`
	PolicyName    string              `json:"policyName" doc:"Its display name." example:"Warehouse"`
	PersonalUsage PersonalUsage       `json:"personalUsage" enum:"UNSPECIFIED|ALLOWED|DISALLOWED|USERLESS" doc:"The personal-use mode of the enrollment token."`
	ExpiresAt     operation.Timestamp `json:"expiresAt" doc:"When the code stops enrolling devices."`
	WifiSSID      string              `json:"wifiSsid,omitempty" doc:"The network that devices join, if one was given." example:"Acme Guest"`
	Image         Image               `json:"image" doc:"The code. It holds the Wi-Fi password: treat it as a secret."`
	PortalURL     string              `json:"portalUrl" doc:"The policy in the portal."`

	link string
}

// Link is an address that adds a work profile to a phone in use, if the phone opens it. Empty: the code is only for new
// and reset devices. Like the code, the link is a secret.
func (r Result) Link() string { return r.link }

// Image is a picture. Its text form leaves out the data, which may contain a password.
type Image struct {
	MimeType string `json:"mimeType" enum:"image/png" doc:"Always image/png."`
	Data     []byte `json:"data" doc:"The bytes of the PNG, in base64." example:"\"iVBORw0KGgo=\""`
}

// String keeps the picture out of logs.
func (i Image) String() string { return "[" + i.MimeType + "]" }

// Request asks for a code.
type Request struct {
	PolicyID      string // path name or short id
	PersonalUsage PersonalUsage
	Wifi          Wifi
	Limits
}

// Limits limit a code, and say what its devices get.
type Limits struct {
	Devices int      // how many enroll with it; 0: one on an agent, any number on the platform
	Tags    []string // each device gets these
}

// check checks the limits of callers that do not come through an operation, whose rules check them too.
func (l Limits) check() error {
	switch {
	case l.Devices < 0 || l.Devices > MaxDevices:
		return fault.InvalidField("maxDevices", "must be 1 to 100000")
	case len(l.Tags) > MaxTags:
		return fault.InvalidField("tags", "must have at most 10 entries")
	case len(l.Tags) == 0:
		return nil
	}
	return asset.Edit{Tags: l.Tags}.Check()
}

// Create makes a QR code with a new enrollment token that lasts for Lifetime. It fails with the error codes of contract
// 7.4. After an error no token is handed out.
func (s *Service) Create(ctx context.Context, p access.Principal, r Request) (Result, error) {
	var picture []byte
	target, token, err := s.token(ctx, p, asked{r.PolicyID, r.PersonalUsage, byCode, r.Limits},
		activity.Event{Action: activity.ProvisioningIssued,
			Changes: activity.Differences(activity.Change{Field: "personalUsage", After: string(r.PersonalUsage)},
				activity.Change{Field: "wifiSsid", After: r.Wifi.SSID})}, func(t Token) error {
			payload, err := Merge(t.Payload, r.Wifi)
			if err != nil {
				return notIssued(err)
			}
			if t.Short {
				if payload, err = Shorten(payload); err != nil {
					return notIssued(err)
				}
			}
			picture, err = Draw(ascii(payload))
			return err
		})
	if err != nil {
		return Result{}, err
	}
	return Result{
		PolicyID: target.PathName(), PolicyName: target.Name, PersonalUsage: r.PersonalUsage,
		ExpiresAt: operation.Timestamp{Time: token.ExpiresAt}, WifiSSID: r.Wifi.SSID,
		Image:     Image{MimeType: "image/png", Data: picture},
		PortalURL: strings.TrimSuffix(s.PublicURL, "/") + "/policies/" + target.ID,
		link:      token.Link,
	}, nil
}

// Bundle makes a new enrollment token for one device that is provisioned over USB, and returns it with the policy. The
// token's Payload is the text that a QR code would hold. The policy must be an AGENT policy, VR-only or not. It fails with
// the error codes of contract 7.4.
func (s *Service) Bundle(ctx context.Context, p access.Principal, policyID string) (Token, policy.Policy, error) {
	target, token, err := s.token(ctx, p, asked{policyID, Unspecified, byUSB, Limits{Devices: 1}},
		activity.Event{Action: activity.ProvisioningHanded},
		func(Token) error { return nil })
	return token, target, err
}

// Issue makes an enrollment token without a QR code, for a person or a script that gives it to devices. It ignores r.Wifi.
// It fails with the error codes of contract 7.4.
func (s *Service) Issue(ctx context.Context, p access.Principal, r Request) (Token, policy.Policy, error) {
	target, token, err := s.token(ctx, p, asked{r.PolicyID, r.PersonalUsage, byHand, r.Limits},
		activity.Event{Action: activity.ProvisioningIssued,
			Changes: activity.Differences(activity.Change{Field: "personalUsage", After: string(r.PersonalUsage)})},
		func(Token) error { return nil })
	return token, target, err
}

// Provisionable returns the policy if Bundle would make a token for it now, and otherwise the error of Bundle.
func (s *Service) Provisionable(ctx context.Context, p access.Principal, policyID string) (policy.Policy, error) {
	found, _, err := s.find(ctx, p, policyID, byUSB)
	return found, err
}

// token makes an enrollment token of a policy, and passes it to use. It records e first. If a later step fails, if use
// returns an error, or if the caller may not have the token any more, it deletes the token and records that e failed.
func (s *Service) token(ctx context.Context, p access.Principal, a asked, e activity.Event,
	use func(Token) error) (policy.Policy, Token, error) {
	target, owner, err := s.find(ctx, p, a.policyID, a.way)
	if err == nil {
		err = a.limits.check()
	}
	if err != nil {
		return target, Token{}, err
	}
	e.Target = activity.Target{Kind: activity.Policy, ID: target.ID, Name: target.Name}
	if err := s.Records.RecordActivity(ctx, target.CompanyID, e); err != nil {
		return target, Token{}, err
	}
	recorded := access.Settling(context.WithoutCancel(ctx))
	token, err := s.keep(recorded, p, owner, target, a)
	if err != nil {
		return target, Token{}, errors.Join(err, s.failed(recorded, target, e))
	}
	if err = use(token); err == nil && s.Stands != nil {
		err = s.Stands(context.WithoutCancel(ctx)) // not canceled with the request: a caller may repeat it to get the answer
	}
	if err != nil {
		s.withdraw(recorded, target, token)
		return target, Token{}, errors.Join(err, s.failed(recorded, target, e))
	}
	return target, token, nil
}

// asked is what a caller asks of token.
type asked struct {
	policyID string
	usage    PersonalUsage
	way      way
	limits   Limits
}

// keep stores the code, makes its token, and stores the token's name. If the code cannot be stored, no token is made; if
// the name cannot, the token is deleted.
func (s *Service) keep(ctx context.Context, p access.Principal, owner company.Company, target policy.Policy, a asked) (Token, error) {
	now := s.Now()
	c := Code{ID: resource.NewID(), CompanyID: owner.ID, PolicyID: target.ID, Management: target.Type, Usage: a.usage, Maker: p.Actor(),
		Tags: a.limits.Tags, MaxDevices: a.limits.Devices, CreatedAt: now, ExpiresAt: now.Add(Lifetime)}
	if target.Type == policy.Agent && c.MaxDevices == 0 {
		c.MaxDevices = 1
	}
	if err := s.Codes.CreateCode(ctx, c); err != nil {
		return Token{}, err
	}
	token, err := s.issue(ctx, owner, target, Wanted{Usage: a.usage, Lifetime: Lifetime, Code: c.ID, Devices: c.MaxDevices})
	if err != nil {
		return token, errors.Join(err, s.Codes.DropCode(ctx, c.CompanyID, c.ID))
	}
	ref := ""
	if target.Type == policy.Platform { // an agent token's Ref is a secret, which is not stored
		ref = token.Ref
	}
	if token.Code = c.ID; s.Codes.IssueCode(ctx, c.CompanyID, c.ID, ref, token.ExpiresAt) != nil {
		s.withdraw(ctx, target, token)
		err = notIssued(errors.New("the code could not be written"))
	}
	return token, err
}

// failed records e again, as failed: the token that e announced does not exist.
func (s *Service) failed(ctx context.Context, p policy.Policy, e activity.Event) error {
	e.Outcome = activity.Failed
	return s.Records.RecordActivity(ctx, p.CompanyID, e)
}

// withdraw deletes a token that is not handed out, and its code. If that fails, it writes the error to the log, for the
// operator.
func (s *Service) withdraw(ctx context.Context, p policy.Policy, t Token) {
	ctx, cancel := context.WithTimeout(ctx, issueLimit)
	defer cancel()
	err := s.Issuers[p.Type].Withdraw(ctx, t)
	if err == nil && t.Code != "" {
		err = s.Codes.DropCode(ctx, p.CompanyID, t.Code)
	}
	if err != nil && s.Log != nil {
		s.Log.ErrorContext(ctx, "an enrollment token that was not handed out could not be deleted; it ends by itself", "policy", p.ID,
			"expires", t.ExpiresAt, "error", err)
	}
}

// way is how a device is provisioned.
type way int

const (
	byCode way = iota // by a QR code
	byUSB             // by muster usb
	byHand            // by a person or a script that has the token
)

// refuse returns fault.Unsupported if devices of the policy cannot be provisioned in the way w.
func (w way) refuse(p policy.Policy) error {
	switch {
	case w == byCode && p.VROnly:
		return fault.New(fault.Unsupported, "VR-only policies cannot be provisioned by QR code: use the USB tool, muster usb")
	case w == byUSB && p.Type != policy.Agent:
		return fault.New(fault.Unsupported, "only devices with the service's own agent are provisioned over USB: take an AGENT policy, "+
			"or make a QR code for this one")
	}
	return nil
}

// find returns the policy and its company, if a token can be made for it: 404,
// then 409, then 422 (contract 5.10).
func (s *Service) find(ctx context.Context, p access.Principal, ref string, w way) (policy.Policy, company.Company, error) {
	missing := policy.Missing()
	id, ok := resource.Short(p.CompanySlug, resource.Policies, ref)
	if !ok || !p.MaySee(id) {
		return policy.Policy{}, company.Company{}, missing
	}
	found, err := s.Catalog.Policy(ctx, p.CompanyID, id)
	if fault.CodeOf(err) == fault.NotFound {
		return found, company.Company{}, missing
	}
	if err != nil {
		return found, company.Company{}, err
	}
	owner, err := s.Catalog.CompanyByID(ctx, p.CompanyID)
	refused := w.refuse(found)
	switch {
	case err != nil:
	case refused != nil:
		err = refused
	case found.Type == policy.Platform && !owner.Connected():
		err = fault.New(fault.Unsupported, "the company has not finished its enterprise enrollment: an administrator can connect it "+
			"under company settings")
	case found.Deleted:
		err = PolicyDeleted()
	}
	return found, owner, err
}

// PolicyDeleted is the fault of a code for a policy that was deleted.
func PolicyDeleted() error { return fault.New(fault.Refused, "the policy was deleted") }

// issue asks the Issuer for a token. It returns fault.Unsupported and fault.Refused as they are, and all other errors as
// notIssued. A token without an expiry ends Lifetime after the request.
func (s *Service) issue(ctx context.Context, owner company.Company, p policy.Policy, w Wanted) (Token, error) {
	issuer := s.Issuers[p.Type]
	if issuer == nil {
		return Token{}, notIssued(nil)
	}
	ctx, cancel := context.WithTimeout(ctx, issueLimit)
	defer cancel()
	asked := s.Now()
	token, err := issuer.Issue(ctx, owner, p, w)
	if code := fault.CodeOf(err); err != nil && code != fault.Unsupported && code != fault.Refused {
		return Token{}, notIssued(err)
	}
	token.ExpiresAt = cmp.Or(token.ExpiresAt, asked.Add(Lifetime))
	return token, err
}

// notIssued returns the error for contract 7.4's status 502: there is no token, and a retry may help. It keeps the text of a
// cause that is fault.Provider already; nil: no cause is known.
func notIssued(cause error) error {
	f := &fault.Error{Code: fault.Provider, Retryable: true, Err: cause,
		Detail: "no enrollment token was created, and so no QR code: try again"}
	if failure := fault.From(cause); cause != nil && failure.Code == fault.Provider {
		f.Detail, f.Err = failure.Detail, failure.Err
	}
	return f
}

// foresee forecasts the effects of Create, or returns the error with which it would fail. It does not call the vendor.
func (s *Service) foresee(ctx context.Context, p access.Principal, policyID string) (operation.Forecast, error) {
	target, _, err := s.find(ctx, p, policyID, byCode)
	f := operation.Forecast{Effects: []string{"Makes a code with which new or factory-reset devices enroll under the policy " +
		strconv.Quote(target.Name) + " for " + strconv.Itoa(int(Lifetime/time.Hour)) + " hours. No device changes by that."}}
	if err == nil && s.Issuers[target.Type] == nil {
		err = notIssued(nil)
	}
	return f, err
}
