package signature

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// The domains: what a signature can be about. A signature of one is none of another.
const (
	PolicyChange       = "muster/approval/1"
	DestructiveCommand = "muster/authorization/1" // or the move of a device to a policy
	LooseningDomain    = "muster/loosening/1"
)

// Person is a user of the portal in a document.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Decision is what the person decided.
type Decision string

// The decisions.
const (
	Approve Decision = "APPROVE"
	Decline Decision = "DECLINE"
)

// Head has the members that every document has.
type Head struct {
	Domain   string   `json:"domain"`
	Company  string   `json:"company"` // its slug
	Subject  string   `json:"subject"` // the id of what is decided on
	Approver Person   `json:"approver"`
	Decision Decision `json:"decision"`
	At       string   `json:"at"`      // when the document was shown, in RFC 3339
	Expires  string   `json:"expires"` // when what is decided on ends
	// Confirmation is the name that the person typed, where one is asked for.
	Confirmation string `json:"confirmation,omitempty"`
	// Reason is why the person declined, in their words.
	Reason string `json:"reason,omitempty"`
}

// Time is a time as documents have it.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Moved is a setting with the value that it has and the one that it gets.
type Moved struct {
	Setting string `json:"setting"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// Policy is a policy in a document. Version and SHA256, which is of the policy document in
// the form of RFC 8785, are absent where the document does not depend on them.
type Policy struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version int    `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// Change is the document of a change of a policy.
type Change struct {
	Head
	Kind           string   `json:"kind"`   // change, copy or rollback
	Policy         Policy   `json:"policy"` // of a copy: the source, with the new name
	Result         string   `json:"result"` // id of the policy that applying changes or makes
	BaseVersion    int      `json:"baseVersion"`
	Changes        []Moved  `json:"changes"` // in the order of the proposal
	DocumentSHA256 string   `json:"documentSha256"`
	Impact         string   `json:"impact"`
	Devices        int      `json:"devices"`
	Warnings       []string `json:"warnings"`
	Caller         Caller   `json:"caller"`
}

// Caller is the key or connection that proposed a change.
type Caller struct {
	Kind   string  `json:"kind"`
	ID     string  `json:"id"`
	Prefix string  `json:"prefix,omitempty"` // of a key
	Client string  `json:"client,omitempty"` // of a connection, with its
	User   *Person `json:"user,omitempty"`
}

// Call is the document of one command to one device.
type Call struct {
	Head
	Command      string     `json:"command"`
	Arguments    string     `json:"arguments"` // a keyed digest of all that the decision is bound to
	Device       Device     `json:"device"`
	Irreversible bool       `json:"irreversible"`
	Policies     *Move      `json:"policies,omitempty"` // of a change of policy
	Caller       CallCaller `json:"caller"`
	UseSeconds   int        `json:"useSeconds"` // after the decision
}

// CallCaller is the key or connection that called.
type CallCaller struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Prefix   string `json:"prefix,omitempty"`   // of a key
	Name     string `json:"name,omitempty"`     // of a key, or what a client calls itself
	User     string `json:"user,omitempty"`     // id of a connection's user, or of who made the key
	UserName string `json:"userName,omitempty"` // of that user
}

// Device is the device of a call, as the person saw it. What is not known is empty.
type Device struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Enrollment   int    `json:"enrollment"`
	SerialNumber string `json:"serialNumber"`
	Model        string `json:"model"`
	Policy       Policy `json:"policy"`
	User         string `json:"user"`
	UserEmail    string `json:"userEmail"`
	LastContact  string `json:"lastContact"`
	Lost         bool   `json:"lost"`
}

// Move is what differs between the policy that a device has and the one that it gets.
type Move struct {
	From     Policy   `json:"from"`
	To       Policy   `json:"to"`
	Changes  []Moved  `json:"changes"`
	Unnamed  []string `json:"unnamed"` // differences that no setting names, and those to policies of moves under way
	Warnings []string `json:"warnings"`
	Impact   string   `json:"impact"`
}

// Loosening is the document of a control that is loosened.
type Loosening struct {
	Head
	Control string `json:"control"`
	Before  string `json:"before"`
	After   string `json:"after"`
	AskedBy Person `json:"askedBy"`
	AskedAt string `json:"askedAt"`
}

// Read reads a document of a known domain, and nothing else: its members have exactly
// these names, none occurs twice, and none is unknown. The result is a *Change, *Call or
// *Loosening.
func Read(document []byte) (Head, any, error) {
	var first struct {
		Domain string `json:"domain"`
	}
	if err := json.Unmarshal(document, &first); err != nil {
		return Head{}, nil, fmt.Errorf("the document cannot be read: %w", err)
	}
	strict := json.RejectUnknownMembers(true)
	switch first.Domain {
	case PolicyChange:
		var c Change
		err := json.Unmarshal(document, &c, strict)
		return c.Head, &c, err
	case DestructiveCommand:
		var c Call
		err := json.Unmarshal(document, &c, strict)
		return c.Head, &c, err
	case LooseningDomain:
		var l Loosening
		err := json.Unmarshal(document, &l, strict)
		return l.Head, &l, err
	}
	return Head{}, nil, errors.New("the document is of no kind that is known here")
}
