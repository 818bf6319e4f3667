package platform

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	androidmanagement "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/outcome"
)

// The methods of the vendor's API that the adapter uses, by the ids of its
// discovery document without the leading "androidmanagement.".
const (
	methodIssueCommand     = "enterprises.devices.issueCommand"
	methodGetDevice        = "enterprises.devices.get"
	methodListDevices      = "enterprises.devices.list"
	methodPatchDevice      = "enterprises.devices.patch"
	methodGetOperation     = "enterprises.devices.operations.get"
	methodListOperations   = "enterprises.devices.operations.list"
	methodCancelOperation  = "enterprises.devices.operations.cancel"
	methodGetEnterprise    = "enterprises.get"
	methodDeleteEnterprise = "enterprises.delete"
	methodNewEnterprise    = "enterprises.create"
	methodPatchEnterprise  = "enterprises.patch"
	methodListEnterprises  = "enterprises.list"
	methodNewToken         = "enterprises.enrollmentTokens.create"
	methodDropToken        = "enterprises.enrollmentTokens.delete"
	methodPatchPolicy      = "enterprises.policies.patch"
	methodGetPolicy        = "enterprises.policies.get"
	methodNewSignup        = "signupUrls.create"

	methodPull            = "pubsub.projects.subscriptions.pull"
	methodAcknowledge     = "pubsub.projects.subscriptions.acknowledge"
	methodModifyDeadline  = "pubsub.projects.subscriptions.modifyAckDeadline"
	methodGetSubscription = "pubsub.projects.subscriptions.get"
)

// Prepare implements command.Channel. An order of a job leaves part of the quota to callers who wait: one that finds no more
// than that is not begun. Its query is taken here, and not once more by Send, so that no other job can take it in between.
func (p *Platform) Prepare(ctx context.Context, o command.Order) (*agentdevice.Delivery, *command.Receipt) {
	if !o.Command.OfJob() {
		return nil, nil
	}
	if err := p.spend(ctx, methodIssueCommand, background); err != nil {
		r := receipt(err, false)
		r.Code = outcome.Throttled
		return nil, &r
	}
	return nil, nil
}

// rankOf is the rank of the call that carries out an order.
func rankOf(o command.Order) rank {
	if o.Command.OfJob() {
		return prepaid
	}
	return urgent
}

// Send implements command.Channel: one attempt, within the call's time limit,
// also when the caller goes away (contract 7.1). Only a change of policy may
// first bring the policy up to date, and a device that the vendor does not
// find is confirmed by asking for its enterprise.
func (p *Platform) Send(ctx context.Context, o command.Order) command.Receipt {
	ctx, cancel := p.detached(ctx)
	defer cancel()
	if o.Command.Type.Row().Vendor != "" {
		return p.issue(ctx, o)
	}
	switch o.Command.Type {
	case command.ChangePolicy:
		return p.movePolicy(ctx, o)
	case command.StatusReport:
		return p.refresh(ctx, o)
	default: // a command of the platform
	}
	return command.Receipt{
		Code:   outcome.Unreachable,
		Detail: "the platform cannot carry out this command; it needs the service's own agent on the device",
	}
}

// owner reads the company of an order, or says that nothing was sent without it.
func (p *Platform) owner(ctx context.Context, o command.Order, method string) (company.Company, *command.Receipt) {
	owner, err := p.store.Companies.CompanyByID(ctx, o.Command.CompanyID)
	if err != nil {
		r := receipt(notSent(method, "the company could not be read", err), false)
		return owner, &r
	}
	return owner, nil
}

// issue sends a command through the vendor's issueCommand.
func (p *Platform) issue(ctx context.Context, o command.Order) command.Receipt {
	request := vendorCommand(o)
	answer, err := ask(ctx, p, methodIssueCommand, rankOf(o), p.am.Enterprises.Devices.IssueCommand(o.Device.Name, request))
	if err == nil && (answer == nil || answer.Name == "") {
		err = &Failure{Method: methodIssueCommand, Code: outcome.Unknown, Message: "the answer names no operation"}
	}
	if err != nil {
		return p.failed(ctx, o, err)
	}
	op := readOperation(answer)
	if !op.Done {
		return command.Receipt{Code: outcome.Accepted, Ref: op.Name}
	}
	r := command.Receipt{Code: outcome.Done, Ref: op.Name, FeedbackAt: p.now()}
	var succeeded bool
	if succeeded, r.Outcome = op.settled(o.Command.Type); !succeeded {
		r.Code, r.Detail = outcome.Refused, "the command already failed: "+r.Outcome
	}
	return r
}

// movePolicy assigns another policy. The platform must hold its present
// version first, or the device would apply an old one, or none at all. What it does not find
// may be the policy: that is pushed again, and says nothing of the device.
func (p *Platform) movePolicy(ctx context.Context, o command.Order) command.Receipt {
	body, ok := o.Body.(command.ChangePolicyBody)
	if !ok {
		return receipt(errors.New("platform: change-policy without a policy"), false)
	}
	owner, unread := p.owner(ctx, o, methodPatchDevice)
	if unread != nil {
		return *unread
	}
	if refusal := p.pushBefore(ctx, owner, body.Policy); refusal != nil {
		return *refusal
	}
	name := policyName(owner.Enterprise, body.Policy.ID)
	patch := func(r rank) (*androidmanagement.Device, error) {
		return ask(ctx, p, methodPatchDevice, r,
			p.am.Enterprises.Devices.Patch(o.Device.Name, &androidmanagement.Device{PolicyName: name}).UpdateMask("policyName"))
	}
	answer, err := patch(rankOf(o))
	if code := codeOf(err); code == outcome.Missing || code == outcome.Refused {
		again, unsettled := p.pushedAgain(ctx, owner, body.Policy)
		switch {
		case again:
			answer, err = patch(urgent)
		case unsettled != nil && code == outcome.Missing:
			return unsure(err, unsettled)
		}
	}
	switch {
	case err != nil:
		return p.failed(ctx, o, err)
	case answer != nil && deleted(answer):
		return goneReceipt()
	}
	return command.Receipt{Code: outcome.Accepted}
}

// refresh answers status-report: the platform cannot be asked for a new report,
// so the last one is read again (contract 4.2).
func (p *Platform) refresh(ctx context.Context, o command.Order) command.Receipt {
	owner, unread := p.owner(ctx, o, methodGetDevice)
	if unread != nil {
		return *unread
	}
	device, asOf, err := p.readDevice(ctx, o.Device.Name, rankOf(o))
	if err != nil {
		return p.failed(ctx, o, err)
	}
	if deleted(device) {
		return goneReceipt()
	}
	seen := p.observation(owner, device)
	seen.ObservedAt = asOf
	if _, err := p.observe(ctx, seen); err != nil {
		return receipt(err, false)
	}
	return command.Receipt{Code: outcome.Done, Outcome: lastReport(seen.ReportedAt)}
}

func lastReport(at time.Time) string {
	const limits = "the platform cannot be asked for a new one"
	if at.IsZero() {
		return "the device has not reported yet; " + limits
	}
	return "the asset shows the device's last report, of " + at.UTC().Format(time.RFC3339) + "; " + limits
}

// failed is the receipt of a call that did not succeed. What the vendor does
// not find is gone if the enterprise itself is there.
func (p *Platform) failed(ctx context.Context, o command.Order, err error) command.Receipt {
	if codeOf(err) != outcome.Missing {
		return receipt(err, false)
	}
	owner, unread := p.store.Companies.CompanyByID(ctx, o.Command.CompanyID)
	if unread != nil {
		return unsure(err, unread)
	}
	confirmed := p.enterpriseExists(ctx, owner.Enterprise)
	switch codeOf(confirmed) {
	case outcome.Done:
		return receipt(err, true)
	case outcome.Missing, outcome.Denied:
		return receipt(err, false)
	default:
		return unsure(err, confirmed)
	}
}

func goneReceipt() command.Receipt {
	return receipt(&Failure{Method: methodGetDevice, Code: outcome.Missing, Message: "the device is in state DELETED"}, true)
}

// enterpriseExists asks the vendor for an enterprise.
func (p *Platform) enterpriseExists(ctx context.Context, name string) error {
	_, err := ask(ctx, p, methodGetEnterprise, urgent, p.am.Enterprises.Get(name).Fields("name"))
	return err
}

// commandTypes are our types that a command of the vendor may be. One that locks with a new password is not one
// that removes the password.
func commandTypes(v *androidmanagement.Command) []command.Type {
	var types []command.Type
	for _, row := range command.Catalog() {
		removes := row.Type == command.ResetScreenLock && len(v.ResetPasswordFlags) > 0
		if row.Vendor == v.Type && v.Type != "" && !removes {
			types = append(types, row.Type)
		}
	}
	return types
}

// vendorCommand is the request for an order. Type and parameters are always
// both given, although the vendor infers the type: a wipe without wipeParams is
// refused. So is the time for which the vendor tries to deliver it: its own
// default is ten minutes.
func vendorCommand(o command.Order) *androidmanagement.Command {
	v := &androidmanagement.Command{Type: o.Command.Type.Row().Vendor, Duration: seconds(o.Command.Type.Lifetime(asset.Platform))}
	switch o.Command.Type {
	case command.StartLostMode:
		body, _ := o.Body.(command.LostModeBody)
		v.StartLostModeParams = &androidmanagement.StartLostModeParams{
			LostMessage: userMessage(body.Message), LostPhoneNumber: userMessage(body.PhoneNumber),
			LostEmailAddress: *cmp.Or(body.Email, new(string)), LostStreetAddress: userMessage(body.StreetAddress),
			LostOrganization: userMessage(body.Organization),
		}
	case command.StopLostMode:
		v.StopLostModeParams = &androidmanagement.StopLostModeParams{}
	case command.ClearAppData:
		body, _ := o.Body.(command.ClearAppDataBody)
		v.ClearAppsDataParams = &androidmanagement.ClearAppsDataParams{PackageNames: body.PackageNames}
	case command.WipeCompanyData:
		v.WipeParams = &androidmanagement.WipeParams{}
	case command.ChangeScreenLockPassword:
		body, _ := o.Body.(command.PasswordBody)
		v.NewPassword = body.NewPassword
		v.ResetPasswordFlags = []string{"LOCK_NOW"}
	default: // the type says it all
	}
	return v
}

// userMessage is a text for people; nil if there is none, so that it is left out.
func userMessage(text string) *androidmanagement.UserFacingMessage {
	if text == "" {
		return nil
	}
	return &androidmanagement.UserFacingMessage{DefaultMessage: text}
}

// seconds writes a duration as the vendor reads it.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) + "s" }

// Cancel implements command.Canceler. The vendor's word alone says whether the
// device has received the command: it is asked for, and may come later.
func (p *Platform) Cancel(ctx context.Context, c command.Command) error {
	_, err := ask(ctx, p, methodCancelOperation, upkeep, p.am.Enterprises.Devices.Operations.Cancel(c.Ref))
	if err != nil {
		return err
	}
	return p.resolve(ctx, c)
}

const expired = "the command expired before the device came back; the device never received it"
