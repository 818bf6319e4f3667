package platform

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
)

// Issue implements provisioning.Issuer: a new enrollment token of the policy.
// A token always names its policy, or its devices would be reset minutes after
// they enrolled. If the vendor does not have the policy, it is pushed and the
// token asked for again.
func (p *Platform) Issue(ctx context.Context, c company.Company, of policy.Policy, w provisioning.Wanted) (provisioning.Token, error) {
	if of.Push.Version == 0 {
		if r := p.Push(ctx, c, of.ID); r.Code != outcome.Done {
			return provisioning.Token{}, noToken(errors.Join(errors.New(r.Detail), r.Cause))
		}
	}
	token, err := p.newToken(ctx, c, of, w)
	if codeOf(err) == outcome.Missing || codeOf(err) == outcome.Refused {
		if again, _ := p.pushedAgain(ctx, c, of); again {
			token, err = p.newToken(ctx, c, of, w)
		}
	}
	if err != nil {
		return provisioning.Token{}, noToken(err)
	}
	return token, nil
}

// Withdraw implements provisioning.Issuer. A token that the vendor no longer has,
// such as a one-time token that was used, is withdrawn.
func (p *Platform) Withdraw(ctx context.Context, t provisioning.Token) error {
	_, err := ask(ctx, p, methodDropToken, upkeep, p.am.Enterprises.EnrollmentTokens.Delete(t.Ref))
	if codeOf(err) == outcome.Missing {
		return nil
	}
	return err
}

// noToken is the one error of this operation (contract 7.4).
func noToken(cause error) error {
	return (&fault.Error{
		Code: fault.Provider, Retryable: true,
		Detail: "the device-management platform did not create the enrollment token; no QR code was made, ask for one again",
	}).Because(cause)
}

// pushedAgain pushes a policy if the vendor says that it does not have it. With an error it is not known that the
// vendor has it.
func (p *Platform) pushedAgain(ctx context.Context, c company.Company, of policy.Policy) (bool, error) {
	_, err := ask(ctx, p, methodGetPolicy, urgent, p.am.Enterprises.Policies.Get(policyName(c.Enterprise, of.ID)).Fields("name"))
	if codeOf(err) != outcome.Missing {
		return false, err
	}
	if r := p.Push(ctx, c, of.ID); r.Code != outcome.Done {
		return false, errors.Join(errors.New(r.Detail), r.Cause)
	}
	return true, nil
}

func (p *Platform) newToken(ctx context.Context, c company.Company, of policy.Policy, w provisioning.Wanted) (provisioning.Token, error) {
	request := &androidmanagement.EnrollmentToken{
		PolicyName: policyName(c.Enterprise, of.ID), Duration: seconds(w.Lifetime),
		AllowPersonalUsage: personalUsage(w.Usage),
		OneTimeOnly:        w.Devices == 1,
		// It comes back with the device, through the device's own hands: no more
		// than an id that means nothing elsewhere.
		AdditionalData: `{"t":"` + cmp.Or(w.Code, resource.NewID()) + `"}`,
	}
	issued := p.now()
	answer, err := ask(ctx, p, methodNewToken, urgent, p.am.Enterprises.EnrollmentTokens.Create(c.Enterprise, request))
	if err != nil {
		return provisioning.Token{}, err
	}
	if answer == nil || !json.Valid([]byte(answer.QrCode)) {
		return provisioning.Token{}, &Failure{Method: methodNewToken, Code: outcome.Unknown, Message: "the answer holds no QR code"}
	}
	token := provisioning.Token{Payload: []byte(answer.QrCode), ExpiresAt: instant(answer.ExpirationTimestamp),
		Ref: answer.Name, Text: answer.Value}
	if w.Usage == provisioning.Allowed && answer.Value != "" {
		token.Link = enrollmentLink + url.QueryEscape(answer.Value)
	}
	token.ExpiresAt = cmp.Or(token.ExpiresAt, issued.Add(w.Lifetime))
	return token, nil
}

// enrolledBy is the enrollment code that a device says it enrolled with; empty: none.
func enrolledBy(d *androidmanagement.Device) string {
	var data struct {
		Code string `json:"t"`
	}
	if json.Unmarshal([]byte(d.EnrollmentTokenData), &data) != nil || len(data.Code) > maxCode {
		return ""
	}
	return data.Code
}

// maxCode bounds the id of an enrollment code, in bytes.
const maxCode = 64

// enrollmentLink is the vendor's page that adds a work profile to the phone that opens it.
const enrollmentLink = "https://enterprise.google.com/android/enroll?et="

func personalUsage(u provisioning.PersonalUsage) string {
	switch u {
	case provisioning.Allowed:
		return "PERSONAL_USAGE_ALLOWED"
	case provisioning.Disallowed:
		return "PERSONAL_USAGE_DISALLOWED"
	case provisioning.Userless:
		return "PERSONAL_USAGE_DISALLOWED_USERLESS"
	default:
		return "ALLOW_PERSONAL_USAGE_UNSPECIFIED"
	}
}
