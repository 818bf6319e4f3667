package command

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
)

// Eligible returns fault.Unsupported, saying why, for a device that cannot
// take a command of the type (contract 3.1, 4.2). It
// reads only the inventory: the platform would silently swallow a reboot
// of a personally owned device. companion says whether the service can push to
// companions on platform devices at all.
func Eligible(t Type, a asset.Asset, companion bool) error {
	d := a.Device
	if !a.Status.Enrolled() {
		return unsupported("the asset is not enrolled: its status is %s; commands need ACTIVE, INACTIVE or SYNCHRONIZING", a.Status)
	}
	if d == nil {
		return unsupported("the asset is not a managed device")
	}
	support := t.Row().on(d.Management)
	switch {
	case support == nil && d.Management == asset.Agent && t.Row().Instead != "":
		return unsupported("%s does not work on %s, and this is one: %s", t, managed(d.Management), t.Row().Instead)
	case support == nil:
		return unsupported("%s does not work on %s, and this is one", t, managed(d.Management))
	case support.Push && !(d.PushReachable && (companion || d.Management == asset.Agent)):
		return unsupported("%s", lacksPush(t, d.Management))
	case !support.Needs.met(*d):
		return unsupported("%s needs %s; %s", t, support.Needs, describe(*d))
	}
	return nil
}

// lacksPush says what a device needs for a command that is pushed to it.
func lacksPush(t Type, m asset.Management) string {
	if m == asset.Agent {
		return "the device has no valid push token: its agent must be installed and enrolled"
	}
	return fmt.Sprintf("the device has no valid push token: on a device of the Android platform %s needs Muster's companion app, and no "+
		"release of that app exists yet", t)
}

// Requirement is whose a device must be and how much of it must be managed, in
// words. What is not known is not met.
type Requirement string

// The requirements. The empty one is met by every device.
const (
	CompanyOwned       Requirement = "a company-owned device"
	FullyManaged       Requirement = "a fully managed device"
	CompanyWorkProfile Requirement = "a company-owned device with a work profile"
)

func (r Requirement) met(d asset.Device) bool {
	company := d.Ownership == asset.CompanyOwned
	switch r {
	case CompanyOwned:
		return company
	case FullyManaged:
		return company && d.Mode == asset.FullyManaged
	case CompanyWorkProfile:
		return company && d.Mode == asset.WorkProfile
	}
	return true
}

func describe(d asset.Device) string {
	owner, mode := "of unknown ownership", "of unknown mode"
	switch d.Ownership {
	case asset.CompanyOwned:
		owner = "company-owned"
	case asset.PersonallyOwned:
		owner = "personally owned"
	}
	switch d.Mode {
	case asset.FullyManaged:
		mode = "fully managed"
	case asset.WorkProfile:
		mode = "managed in a work profile"
	}
	return "this one is " + owner + " and " + mode
}

// managed are the devices that are managed in the same way, for people.
func managed(m asset.Management) string {
	if m == asset.Agent {
		return "devices with Muster's own agent"
	}
	return "devices that are managed through Google's Android Management API"
}

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, format, args...)
}

// Lifetime is how long a command of the type waits for its device; zero: forever.
func (t Type) Lifetime(m asset.Management) time.Duration {
	if support := t.Row().on(m); support != nil {
		return support.Waits
	}
	return 0
}

// ReleasedWithoutErasing is the outcome of an agent's wipe whose device left
// management otherwise. The device is still ordered to erase itself if it comes
// back.
const ReleasedWithoutErasing = "released without erasing"

// EndOfManagement is the state and the outcome in which an open command of the
// type ends when its device stops being managed. The platform removes a device
// because it was wiped or released. An agent's device may leave in other ways:
// its wipe has succeeded only if the device erased itself.
func (t Type) EndOfManagement(m asset.Management, erased bool) (State, string) {
	switch {
	case t == WipeCompanyData && erased:
		return Succeeded, "the device was erased and is no longer managed"
	case t == WipeCompanyData && m == asset.Agent:
		return Failed, ReleasedWithoutErasing
	case t.Row().EndsManagement:
		return Succeeded, "the device is no longer managed"
	}
	return Failed, "the device is no longer managed; the command can no longer be carried out"
}

// Situation is all that the decision about a command depends on, of what is known
// about its device: see Decide.
type Situation struct {
	Type      Type
	Asset     *asset.Asset // nil: none that the caller may see
	Moves     bool         // to another policy
	Policy    *policy.Policy
	Elsewhere bool // an open command may have moved the device to another policy than it is known to have
	Companion bool // the service can push to companions on platform devices
	// missing is the fault of an asset or a policy that is not there for the caller.
	missing error
}

// Decide returns why the device cannot get the command now, or nil: first what is not
// found, then what the device cannot do (contract 5.10).
func (s Situation) Decide() error {
	if s.missing != nil {
		return s.missing
	}
	if err := Eligible(s.Type, *s.Asset, s.Companion); err != nil || !s.Moves {
		return err
	}
	switch to, d := s.Policy, s.Asset.Device; {
	case string(to.Type) != string(d.Management):
		return unsupported("the policy is for %s, and this is not one", managed(asset.Management(to.Type)))
	case s.stays() && !s.Elsewhere:
		return unsupported("the device already uses this policy")
	}
	return nil
}

// stays reports whether the device is known to have the policy that it is to be moved to.
func (s Situation) stays() bool {
	return s.Asset.Device != nil && s.Asset.Device.PolicyID == s.Policy.ID
}

// targets finds assets as commands need them.
type targets struct{ in Inventory }

func (t targets) Asset(ctx context.Context, companyID, id string) (asset.Asset, error) {
	return t.in.CommandTarget(ctx, companyID, id)
}

// look reads the situation of a request. The error is of what could not be read.
func (s *Service) look(ctx context.Context, p access.Principal, r Request) (Situation, error) {
	now := Situation{Type: r.Type, Companion: s.Push != nil}
	a, err := asset.Find(ctx, targets{s.Inventory}, p, r.AssetID)
	if err != nil {
		return now.without(err)
	}
	now.Asset = &a
	ref, moves := r.Body.(PolicyRef)
	if now.Moves = moves; !moves {
		return now, nil
	}
	target, err := policy.Find(ctx, s.Inventory, p, string(ref))
	if err != nil {
		return now.without(err)
	}
	if now.Policy = &target; now.stays() {
		moving, err := s.Store.OnTheWay(ctx, a.ID, target.ID)
		now.Elsewhere = len(moving) > 0
		return now, err
	}
	return now, nil
}

func (s Situation) without(err error) (Situation, error) {
	if fault.CodeOf(err) != fault.NotFound {
		return s, err
	}
	s.missing = err
	return s, nil
}

// Foresee says what Execute would do now, by the same decisions, as far as it does not
// depend on the vendor. It sends and stores nothing. Its error is Execute's refusal;
// any other means that it could not be found out.
func (s *Service) Foresee(ctx context.Context, call operation.Call, r Request) (operation.Forecast, error) {
	now, err := s.look(ctx, call.Principal, r)
	if err != nil {
		return operation.Forecast{}, err
	}
	forecast := now.forecast()
	if now.Policy != nil && now.Asset.Device != nil {
		contrast, err := s.contrast(ctx, call.Principal.CompanyID, now.Asset.ID, now.Asset.Device.PolicyID, *now.Policy)
		if err != nil {
			return operation.Forecast{}, err
		}
		foreseeMove(&forecast, contrast, call.Principal)
	}
	if err := now.Decide(); err != nil {
		return forecast, err
	}
	order, err := s.order(ctx, call, now, r.Body)
	if err != nil {
		return forecast, err
	}
	held, prepared := s.prepareDelivery(ctx, &order)
	if held != nil && held.Place != nil {
		held.Place.Leave() // nothing is sent
	}
	if prepared != nil && prepared.failed() {
		if prepared.Code == outcome.NotSent && prepared.Cause != nil {
			return forecast, prepared.Cause // it is not the call that would fail
		}
		if prepared.Code == outcome.Unreachable { // before anything is counted
			return forecast, prepared.fault()
		}
	}
	refused, err := s.Store.WhyNot(ctx, order.Command)
	if err != nil {
		return forecast, err
	}
	if refused != nil {
		if r, waits := errors.AsType[*approval.Refusal](refused); waits && r.Verdict != approval.Refused {
			forecast.RequiresConfirmation = forecast.Impact == approval.HighImpact
		}
		return forecast, s.refusal(refused)
	}
	if prepared != nil && prepared.failed() {
		return forecast, fault.From(prepared.fault())
	}
	return forecast, nil
}

// forecast describes what the command does to its device.
func (s Situation) forecast() operation.Forecast {
	if s.missing != nil {
		return operation.Forecast{}
	}
	row := s.Type.Row()
	effects := slices.Clone(row.EffectsOn(s.Asset.Device))
	if s.Policy != nil {
		effects = append(effects, "The other policy is "+strconv.Quote(s.Policy.Name)+".")
	}
	return operation.Forecast{Devices: 1, Effects: effects, Irreversible: row.Irreversible}
}

// foreseeMove says what a move to another policy changes on the device. Of a policy on the way that the caller may not see,
// only the impact counts.
func foreseeMove(f *operation.Forecast, c contrasted, by access.Principal) {
	f.Impact, f.Irreversible = c.Impact, f.Irreversible || c.Irreversible()
	if slices.ContainsFunc(c.onTheWay, func(p approval.Policy) bool { return !by.MaySee(p.ID) }) {
		c.Contrast = approval.Compare(c.has, c.to)
		f.Effects = append(f.Effects, "Another move of the device is under way.")
	}
	for _, m := range c.Changes {
		f.Effects = append(f.Effects, fmt.Sprintf("%s: %s, now %s.", m.Setting, m.To, m.From))
	}
	for _, one := range c.Unnamed {
		f.Effects = append(f.Effects, "Differs, too: "+one+".")
	}
	for _, warning := range c.Warnings {
		f.Effects = append(f.Effects, "Warning: "+warning)
	}
}

// ask is what a person would have to authorize of a command; nil for one of a person, and
// for one that needs no authorization whatever the company's settings become.
func (s *Service) ask(ctx context.Context, p access.Principal, c Command, d asset.Device, body any) (*approval.Ask, error) {
	if !p.Kind.Automated() {
		return nil, nil
	}
	ask := &approval.Ask{Difference: approval.NoMove, Call: approval.Call{
		CompanyID: c.CompanyID, AssetID: c.AssetID, Epoch: c.Epoch, Command: string(c.Type), Note: c.Note,
		Caller: approval.Caller{Actor: p.Actor()},
	}}
	switch change, moves := body.(ChangePolicyBody); {
	case moves && p.Settings.Controls.ApplyApproval.On():
		contrast, err := s.contrast(ctx, c.CompanyID, c.AssetID, d.PolicyID, change.Policy)
		if err != nil {
			return nil, err
		}
		ask.Difference, ask.Move, ask.OnTheWay = contrast.Difference, contrast.move, contrast.onTheWay
	case !c.Type.Destructive():
		return nil, nil
	}
	ask.Needed = approval.Needed(p.Kind, p.Settings.Controls, c.Type.Destructive(), ask.Difference)
	ask.Digest, ask.Verifier = s.digest(ask.Call, body), s.Verifier
	return ask, nil
}

// contrasted is what a move changes on a device, with the policies as they were compared.
type contrasted struct {
	approval.Contrast
	has, to  policy.Policy
	move     approval.Move
	onTheWay []approval.Policy
}

// contrast is what a device that has one policy meets with another, or with those to which
// open commands may bring it first.
func (s *Service) contrast(ctx context.Context, companyID, assetID, from string, to policy.Policy) (c contrasted, err error) {
	c.to = to
	if c.has, err = s.compared(ctx, companyID, from); err != nil {
		return c, err
	}
	c.move = approval.Move{From: approval.Policy{ID: from, Version: c.has.Version}, To: approval.Policy{ID: to.ID, Version: to.Version}}
	moving, err := s.Store.OnTheWay(ctx, assetID, to.ID)
	if err != nil {
		return c, err
	}
	var others []policy.Policy
	for _, m := range moving {
		p, err := s.compared(ctx, companyID, m.ID)
		if err != nil {
			return c, err
		}
		others, c.onTheWay = append(others, p), append(c.onTheWay, approval.Policy{ID: m.ID, Version: p.Version})
	}
	c.Contrast = approval.Compare(c.has, to, others...)
	return c, nil
}

// compared is a policy to compare, or none if it is not there any more.
func (s *Service) compared(ctx context.Context, companyID, id string) (policy.Policy, error) {
	p, err := s.Inventory.Policy(ctx, companyID, id)
	if fault.CodeOf(err) == fault.NotFound {
		return policy.Policy{}, nil
	}
	return p, err
}

// digest is the keyed digest of all that an authorization is bound to. The arguments may
// hold a password: without the key nothing can be guessed from it.
func (s *Service) digest(c approval.Call, body any) string {
	if s.Digest == nil {
		return "" // the store refuses it
	}
	arguments := map[string]any{}
	switch b := body.(type) {
	case PasswordBody:
		arguments["newPassword"] = b.NewPassword
	case ChangePolicyBody:
		arguments["policyId"] = b.Policy.ID
	}
	// texts and numbers: it cannot fail
	text, _ := json.Marshal([]any{c.CompanyID, c.AssetID, c.Epoch, c.Command, c.Caller.Kind, c.Caller.ID, c.Move, arguments})
	return hex.EncodeToString(s.Digest(text))
}

// refusal makes what the store refused fit for the caller.
func (s *Service) refusal(err error) error {
	if r, ok := errors.AsType[*approval.Refusal](err); ok {
		return r.Fault(s.PublicURL)
	}
	return unavailable(err, notDispatched)
}
