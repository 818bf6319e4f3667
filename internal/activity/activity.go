// Package activity is the one record of who did what: commands, proposals,
// policies, sign-ins, users, keys, connections and settings (contract 1.6).
//
// An entry is written in the transaction of the change that it reports, and
// the service never changes it. Entries of a company form a chain of hashes
// whose head the service signs with a key that is not in the database. The
// service checks that signature before it extends or prunes the chain, and never
// signs a head that is missing or wrong without an operator's command.
//
// Each entry has a proof by a key of the key file, too, so that one which was
// added or altered before it was sealed is found.
//
// What this detects: an entry that was altered, removed or added behind the
// signed head, one that no holder of the keys wrote, and a head that this service
// has not signed. What it does not detect: an entry removed in the seconds before
// it is sealed, and a head that
// was put back together with the entries of its time while no replica ran (see
// ADR 0012). Nothing in an entry is secret.
package activity

import (
	"context"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Action says what was done, as area.verb.
type Action string

// The actions. Those of commands are Command of their type.
const (
	ProposalMade       Action = "proposal.made"
	ProposalApplied    Action = "proposal.applied"
	ProposalApproved   Action = "proposal.approved"
	ProposalDeclined   Action = "proposal.declined"
	ApprovalVoid       Action = "proposal.approval_void" // what would be applied is not what was approved
	PolicyCreated      Action = "policy.created"
	PolicySaved        Action = "policy.saved"
	PolicyDeleted      Action = "policy.deleted"
	PolicyPushAsked    Action = "policy.push_asked" // a person has it sent to the platform again
	SignedIn           Action = "signin.opened"
	SignInRefused      Action = "signin.refused"
	IdentityProved     Action = "signin.proved"
	SessionEnded       Action = "signin.ended"
	UserCreated        Action = "user.created"
	UserChanged        Action = "user.changed"
	UserInvited        Action = "user.invited"
	UserDeleted        Action = "user.deleted"
	IdentityLinked     Action = "identity.linked" // a user was linked to an account of the company's provider
	PasskeyAdded       Action = "user.passkey_added"
	PasskeyRemoved     Action = "user.passkey_removed"
	RecoveryRenewed    Action = "user.recovery_renewed"
	KeyCreated         Action = "key.created"
	KeyRevoked         Action = "key.revoked"
	ConnectionGranted  Action = "connection.granted"
	ConnectionChanged  Action = "connection.changed"
	ConnectionRevoked  Action = "connection.revoked"
	CompanyCreated     Action = "company.created"
	CompanyChanged     Action = "company.changed"
	RetentionAnnounced Action = "company.retention_announced" // what will be deleted, and from when
	RetentionApplied   Action = "company.retention_applied"   // what was deleted
	CompanyStopped     Action = "company.stopped"             // what its callers change
	CompanyResumed     Action = "company.resumed"
	LooseningAsked     Action = "company.loosening_asked" // a change that loosens a control waits
	LooseningConfirmed Action = "company.loosening_confirmed"
	LooseningApplied   Action = "company.loosening_applied" // it has waited long enough
	LooseningCanceled  Action = "company.loosening_canceled"
	// A person is asked to authorize a call, and decides.
	AuthorizationAsked    Action = "authorization.asked"
	AuthorizationApproved Action = "authorization.approved"
	AuthorizationDeclined Action = "authorization.declined"
	AuthorizationVoid     Action = "authorization.void" // it was approved, and does not count any more
	CompanyConnected      Action = "company.connected"
	CompanyDisconnected   Action = "company.disconnected"
	ChainRestarted        Action = "company.chain_restarted"
	SignInSetUp           Action = "company.signin_changed"
	CompanyDomains        Action = "company.domains_changed"
	AssetsImported        Action = "asset.imported"
	AssetChanged          Action = "asset.changed"
	AssetEnrolled         Action = "asset.enrolled"
	AssetTakenOver        Action = "asset.taken_over" // by another device, which enrolled as it
	AssetMerged           Action = "asset.merged"
	AssetArchived         Action = "asset.archived"
	AssetRestored         Action = "asset.restored"
	AssetDeleted          Action = "asset.deleted" // with its history
	// A device that lost its key asks to be enrolled again as the asset, and a person decides.
	EnrollmentAsked     Action = "asset.enrollment_asked"
	EnrollmentConfirmed Action = "asset.enrollment_confirmed"
	EnrollmentDeclined  Action = "asset.enrollment_declined"
	AssetEnded          Action = "asset.ended" // its management
	// A job does one thing to many devices.
	JobCreated  Action = "job.created"
	JobPaused   Action = "job.paused"
	JobResumed  Action = "job.resumed"
	JobCanceled Action = "job.canceled"
	JobEnded    Action = "job.ended" // every device has a result
	// A webhook sends events to an address.
	WebhookCreated  Action = "webhook.created"
	WebhookRotated  Action = "webhook.rotated" // it got a new secret
	WebhookFinished Action = "webhook.rotation_finished"
	WebhookReplayed Action = "webhook.replayed"
	WebhookDisabled Action = "webhook.disabled" // by the service
	WebhookEnabled  Action = "webhook.enabled"
	WebhookMissed   Action = "webhook.missed" // events were deleted before they were sent
	WebhookDeleted  Action = "webhook.deleted"

	ProvisioningIssued  Action = "provisioning.issued"  // a QR code
	ProvisioningRevoked Action = "provisioning.revoked" // a code
	ProvisioningHanded  Action = "provisioning.handed"  // to a device over USB
)

// Command is the action of a command of a type such as LOCK.
func Command(commandType string) Action { return Action("command." + strings.ToLower(commandType)) }

// Area is the part of the action that lists filter by.
func (a Action) Area() string { area, _, _ := strings.Cut(string(a), "."); return area }

// Areas lists every area, for filters.
func Areas() []string {
	return []string{"command", "proposal", "policy", "provisioning", "signin", "identity", "user", "key", "connection", "company", "asset",
		"authorization", "job", "webhook"}
}

// Outcome is how what was done ended. A command's entry reports that it was
// taken on; one that then fails, or whose outcome is unknown, gets a second.
type Outcome string

// The outcomes.
const (
	OK          Outcome = "OK"
	Refused     Outcome = "REFUSED"
	Failed      Outcome = "FAILED"
	Unconfirmed Outcome = "UNCONFIRMED"
)

// Outcomes lists every outcome, for filters.
func Outcomes() []Outcome { return []Outcome{OK, Refused, Failed, Unconfirmed} }

// Kind is what sort of thing something was done to.
type Kind string

// The kinds of targets.
const (
	Asset      Kind = "ASSET"
	Policy     Kind = "POLICY"
	User       Kind = "USER"
	Key        Kind = "KEY"
	Connection Kind = "CONNECTION"
	Company    Kind = "COMPANY"
	Job        Kind = "JOB"
	Webhook    Kind = "WEBHOOK"
)

// Target is what something was done to.
type Target struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Change is one thing that is now otherwise. It never holds a secret: that
// one was set or replaced is said in words.
type Change struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Event is what a store records with a change.
type Event struct {
	Action  Action
	Target  Target
	Outcome Outcome // empty: OK
	// Reference is the id of the command or the proposal.
	Reference string
	Changes   []Change // the store names the first hundred, and says in one of the field "more" how many more there were
	// Actor is who did it; zero: who the context says, else the service.
	Actor access.Actor
	// Note is why; zero: what the context says.
	Note access.Note
}

// Entry is one line of the record. Its JSON is a line of an export as NDJSON, from which the hash can be recomputed.
type Entry struct {
	At        time.Time    `json:"at"`
	ID        string       `json:"id"`
	CompanyID string       `json:"companyId"`
	Actor     access.Actor `json:"actor"`
	Action    Action       `json:"action"`
	Target    Target       `json:"target"`
	Outcome   Outcome      `json:"outcome"`
	Reference string       `json:"reference"`
	Changes   []Change     `json:"changes"`
	RequestID string       `json:"requestId"`
	Address   string       `json:"address"`
	Client    string       `json:"client"`
	access.Note
	// Device is what the target device is called now: not part of the record.
	Device string `json:"device,omitempty"`
	// Proof is of Statement, by a key of the service; empty: the entry is from
	// before there were proofs, or was written without the key file.
	Proof string `json:"proof"`
	// Seq and Hash are the entry's place in its company's chain; zero until it
	// is sealed, a few seconds after it was written.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	// State and Detail are those of the command that Reference names, as it is
	// now: not part of the record either.
	State  string `json:"-"`
	Detail string `json:"-"`
}

// Recorder writes an entry that belongs to no change in the store. It fails as the database does.
type Recorder interface {
	RecordActivity(ctx context.Context, companyID string, e Event) error
}

// Differences returns the fields whose texts differ, in the order of fields.
func Differences(fields ...Change) []Change {
	changed := []Change{}
	for _, f := range fields {
		if f.Before != f.After {
			changed = append(changed, f)
		}
	}
	return changed
}
