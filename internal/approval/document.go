package approval

import (
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/signature"
)

// Seen is what a person sees of an authorization beside it, as it now is: it is signed as
// well.
type Seen struct {
	Company    string      // its slug
	Device     asset.Asset // of no enrollment: it is not there any more
	CallerUser string      // name of the connection's user, or of the key's maker
	// From and To are the policies of a move; zero: one is not there any more.
	From, To policy.Policy
	// OnTheWay are the policies to which other moves may bring the device first.
	OnTheWay []policy.Policy
	// Irreversible: the command cannot be undone.
	Irreversible bool
}

// Contrast is what a move changes.
func (s Seen) Contrast() Contrast { return Compare(s.From, s.To, s.OnTheWay...) }

// Gone says why the authorization can never be used; nil: it can.
func (a Authorization) Gone(s Seen) error {
	d := s.Device.Device
	switch {
	case d == nil || d.Epoch != a.Epoch:
		return fault.New(fault.Refused, "the device is no longer enrolled as it was when this was asked for")
	case a.Moves() && (d.PolicyID != a.Move.From.ID || s.From.Version != a.Move.From.Version || s.To.Version != a.Move.To.Version ||
		s.To.Deleted):
		return fault.New(fault.Refused, "the device's policy or the new one has changed since this was asked for")
	}
	return nil
}

// Moves reports whether the call changes the device's policy and was compared for that.
func (a Authorization) Moves() bool { return a.Move != (Move{}) }

// Subject is what a person decides about, for a device that is enrolled.
func (a Authorization) Subject(s Seen) Subject {
	subject := Subject{Kind: CallKind, ID: a.ID, CompanyID: a.CompanyID, Company: s.Company, Domain: signature.DestructiveCommand,
		Expires: a.CreatedAt.Add(WaitFor), Document: func(h signature.Head, shown any) any { return a.document(s, h, shown) }}
	if s.Device.Device != nil {
		subject.Matter = a.Matter(s.Device.Device.PolicyID)
		for _, p := range s.OnTheWay {
			subject.Matter.Policies = append(subject.Matter.Policies, p.ID)
		}
	}
	if a.Moves() && s.Contrast().Impact == HighImpact {
		subject.Name = s.To.Name
	}
	return subject
}

// document is what a person signs. Its arguments are the digest that the authorization is
// bound to. The device's last contact, whether it is lost, and the name of the user behind
// the caller are as they were shown: they may change, or go, without another decision.
func (a Authorization) document(s Seen, h signature.Head, shown any) any {
	d := signature.Call{Head: h, Command: a.Command, Arguments: a.Digest, Device: deviceOf(a, s), Irreversible: s.Irreversible,
		Caller: signature.CallCaller{Kind: string(a.Caller.Kind), ID: a.Caller.ID, Prefix: a.Caller.Prefix, Name: a.Caller.Name,
			User: a.Caller.UserID, UserName: s.CallerUser},
		UseSeconds: int(UseWithin / time.Second)}
	if a.Moves() {
		c := s.Contrast()
		d.Irreversible = d.Irreversible || c.Irreversible()
		d.Policies = &signature.Move{From: policyOf(s.From, a.Move.From), To: policyOf(s.To, a.Move.To),
			Changes: c.Changes, Unnamed: c.Unnamed, Warnings: c.Warnings, Impact: c.Impact}
	}
	if was, ok := shown.(*signature.Call); ok {
		d.Device.LastContact, d.Device.Lost, d.Caller.UserName = was.Device.LastContact, was.Device.Lost, was.Caller.UserName
	}
	return d
}

func deviceOf(a Authorization, s Seen) signature.Device {
	d := signature.Device{ID: a.AssetID, Name: s.Device.Identification, Enrollment: a.Epoch,
		SerialNumber: s.Device.Specifications["serialNumber"],
		Model:        s.Device.Specifications["model"], User: s.Device.CustomData["user"], UserEmail: s.Device.CustomData["userEmail"]}
	if now := s.Device.Device; now != nil {
		d.Policy, d.Lost = signature.Policy{ID: now.PolicyID, Name: now.PolicyName}, now.LostMode
		if !now.LastSeenAt.IsZero() {
			d.LastContact = signature.Time(now.LastSeenAt)
		}
	}
	return d
}

// policyOf is a policy of a move, at the version that was compared.
func policyOf(p policy.Policy, at Policy) signature.Policy {
	return signature.Policy{ID: at.ID, Name: p.Name, Version: at.Version, SHA256: signature.Hash(p.Document)}
}
