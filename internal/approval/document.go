package approval

import (
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/signature"
)

// Seen is what a person sees of an authorization beside it: it is signed as well.
type Seen struct {
	Company    string // its slug
	DeviceName string
	// FromName and ToName are the names of the policies of a change of policy.
	FromName, ToName string
}

// document is what a person signs. Its arguments are the digest that the authorization
// is bound to.
type document struct {
	signature.Head
	Device     deviceText    `json:"device"`
	Command    string        `json:"command"`
	Arguments  string        `json:"arguments"`
	Policies   *policiesText `json:"policies,omitempty"`
	Caller     callerText    `json:"caller"`
	UseSeconds int           `json:"useSeconds"` // after the decision
}

type deviceText struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Enrollment int    `json:"enrollment"`
}

type policyText struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version int    `json:"version"`
}

type policiesText struct {
	From policyText `json:"from"`
	To   policyText `json:"to"`
}

type callerText struct {
	Kind   access.Kind `json:"kind"`
	ID     string      `json:"id"`
	Prefix string      `json:"prefix,omitempty"` // of a key
	Name   string      `json:"name,omitempty"`   // of a key or client
	User   string      `json:"user,omitempty"`   // of a connection, or the maker of a key
}

// Document is the canonical document of a decision. at is when it was shown.
func (a Authorization) Document(s Seen, approver signature.Person, decision signature.Decision, at string) ([]byte, error) {
	d := document{
		Head: signature.Head{Domain: signature.DestructiveCommand, Company: s.Company, Subject: a.ID, Approver: approver,
			Decision: decision, At: at, Expires: signature.Time(a.CreatedAt.Add(WaitFor))},
		Device:  deviceText{a.AssetID, s.DeviceName, a.Epoch},
		Command: a.Command, Arguments: a.Digest,
		Caller:     callerText{a.Caller.Kind, a.Caller.ID, a.Caller.Prefix, a.Caller.Name, a.Caller.UserID},
		UseSeconds: int(UseWithin / time.Second),
	}
	if a.Move != (Move{}) {
		d.Policies = &policiesText{policyText{a.Move.From.ID, s.FromName, a.Move.From.Version}, policyText{a.Move.To.ID, s.ToName, a.Move.To.Version}}
	}
	return signature.Canonical(d)
}
