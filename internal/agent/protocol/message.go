package protocol

import "encoding/json"

// Facts are what a device says of itself at enrollment.
type Facts struct {
	SerialNumber string            `json:"serialNumber,omitempty"`
	Manufacturer string            `json:"manufacturer,omitempty"`
	Brand        string            `json:"brand,omitempty"`
	Model        string            `json:"model,omitempty"`
	SDK          int               `json:"sdk,omitempty"`
	OSVersion    string            `json:"osVersion,omitempty"`
	More         map[string]string `json:"more,omitempty"`
}

// EnrollRequest redeems a token. Facts are kept as the bytes that were signed.
// The same token and key within an hour get the same answer again.
type EnrollRequest struct {
	Token        string          `json:"token"`
	Key          PublicKey       `json:"key"`
	Facts        json.RawMessage `json:"facts"` // a Facts
	AgentVersion string          `json:"agentVersion"`
	Role         Role            `json:"role"`
	Time         int64           `json:"time"` // Unix milliseconds
	// Former proves which enrolled device this was so far; nil: none, or its key
	// is lost.
	Former *Former `json:"former,omitempty"`
	// Lost: the device was enrolled, and has lost its key or its identity.
	Lost  *Lost  `json:"lost,omitempty"`
	Proof string `json:"proof"` // over Message
}

// Message is the text that Proof signs.
func (r EnrollRequest) Message() []byte {
	message := EnrollMessage(r.Token, r.Key, r.Facts, r.Time)
	if r.Lost != nil {
		message = append([]byte("muster-lost-v1\n"+r.Lost.KeyID+"\n"), message...)
	}
	return message
}

// Lost is what a device still knows that has lost its key or its identity.
type Lost struct {
	KeyID string `json:"keyId"` // the youngest command key that it trusts
}

// EnrollAnswer is the answer to an enrollment.
type EnrollAnswer struct {
	Envelope // of Enrolled
	// Keys, for a device that is Lost, are those that followed Lost.KeyID, oldest first.
	Keys []Envelope `json:"keys,omitempty"` // of CommandKey
}

// Enrolled is the device's new identity, in the answer to one request.
type Enrolled struct {
	DeviceID string    `json:"deviceId"`
	Key      PublicKey `json:"key"`   // the device's
	Proof    string    `json:"proof"` // Digest of the request's proof
	// CommandKey is the key that signed this: the one that the device trusts from
	// now on.
	CommandKey CommandKey `json:"commandKey"`
	Time       int64      `json:"time"` // Unix milliseconds
}

// CommandKey is a key that the service signs with. All but the first key that
// a device learns must come in an Envelope of a key it already trusts.
type CommandKey struct {
	ID        string    `json:"id"`
	Key       PublicKey `json:"key"`
	NotBefore int64     `json:"notBefore"` // Unix milliseconds
}

// PolicyRef says which policy a device has.
type PolicyRef struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
}

// Assignment says, for one device and in the answer to one request, which policy
// the device is to have.
type Assignment struct {
	DeviceID  string `json:"deviceId"`
	CompanyID string `json:"companyId"`
	PolicyID  string `json:"policyId"`
	Version   int    `json:"version"`
	// Number is the sequence number of the request that this answers: the device
	// takes no other, so that an assignment cannot be kept and used later.
	Number int64 `json:"number"`
	Time   int64 `json:"time"` // Unix milliseconds
}

// Policy is a policy document for agents; the bytes are the same for every
// device of a version. An Assignment gives it to a device.
type Policy struct {
	ID        string            `json:"id"`
	CompanyID string            `json:"companyId"`
	Version   int               `json:"version"`
	Settings  map[string]string `json:"settings"` // setting id → value
	VROnly    bool              `json:"vrOnly,omitempty"`
}

// Command is an order, valid for one device.
type Command struct {
	DeviceID  string          `json:"deviceId"`
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Args      json.RawMessage `json:"args,omitempty"`
	NotBefore int64           `json:"notBefore"`          // Unix milliseconds
	Deadline  int64           `json:"deadline,omitempty"` // Unix milliseconds; 0: none
}

// AckState is how far a device has come with a command.
type AckState string

// The states of an acknowledgment.
const (
	Accepted AckState = "ACCEPTED" // journalled, about to run
	Done     AckState = "DONE"
	Failed   AckState = "FAILED"
)

// Ack is a device's word about a command. It is repeated until the service
// confirms it.
type Ack struct {
	CommandID string   `json:"commandId"`
	State     AckState `json:"state"`
	Outcome   string   `json:"outcome,omitempty"`
	At        int64    `json:"at"` // Unix milliseconds, by the device's corrected clock
}

// SettingState is what became of one setting on the device.
type SettingState string

// The states of a setting.
const (
	Applied       SettingState = "applied"
	Pending       SettingState = "pending"
	Unsupported   SettingState = "unsupported"
	NotApplicable SettingState = "not_applicable"
	SettingFailed SettingState = "failed"
	RolledBack    SettingState = "rolled_back"
)

// SettingReport is the state of one setting, with the reason if it is not
// applied.
type SettingReport struct {
	ID     string       `json:"id"`
	State  SettingState `json:"state"`
	Detail string       `json:"detail,omitempty"`
}

// PolicyReport says what the device has applied.
type PolicyReport struct {
	PolicyRef
	Settings []SettingReport `json:"settings,omitempty"`
}

// Location is a fix.
type Location struct {
	Latitude       float64 `json:"latitude"`
	Longitude      float64 `json:"longitude"`
	AccuracyMeters float64 `json:"accuracyMeters"`
	At             int64   `json:"at"` // Unix milliseconds
	Stale          bool    `json:"stale,omitempty"`
}

// StatusReport is what the policy lets the device tell; Values are the
// contract's members of managedDevice.statusReport.
type StatusReport struct {
	At             int64             `json:"at"` // Unix milliseconds
	Values         json.RawMessage   `json:"values"`
	Specifications map[string]string `json:"specifications,omitempty"`
}

// Capability is something that this device can do.
type Capability string

// The capabilities.
const (
	UserRestrictions Capability = "user_restrictions"
	Wipe             Capability = "wipe"
	Shutdown         Capability = "shutdown"
	Reboot           Capability = "reboot"
	OwnerAPI         Capability = "owner_api"
	FreshLocation    Capability = "fresh_location"
	Notify           Capability = "notify"
	Persistence      Capability = "persistence"
	SilentInstall    Capability = "silent_install"
	Launch           Capability = "launch"
)

// CheckinRequest is the one mutating call of daily life.
type CheckinRequest struct {
	AgentVersion string        `json:"agentVersion"`
	BootID       string        `json:"bootId,omitempty"`
	KeyID        string        `json:"keyId,omitempty"`        // the youngest command key that the device trusts
	Capabilities []Capability  `json:"capabilities,omitempty"` // sent when they changed
	Acks         []Ack         `json:"acks,omitempty"`
	Status       *StatusReport `json:"status,omitempty"`
	Location     *Location     `json:"location,omitempty"`
	Policy       *PolicyReport `json:"policy,omitempty"` // sent when it changed
	Build        *Build        `json:"build,omitempty"`
	Update       *UpdateReport `json:"update,omitempty"`
}

// CheckinResponse is the service's answer.
type CheckinResponse struct {
	ServerTime  int64      `json:"serverTime"`
	Commands    []Envelope `json:"commands,omitempty"`   // of Command
	Acked       []string   `json:"acked,omitempty"`      // command ids whose acks are durable
	Assignment  *Envelope  `json:"assignment,omitempty"` // of Assignment; none: the device keeps what it has
	Keys        []Envelope `json:"keys,omitempty"`       // of CommandKey: those that followed KeyID, oldest first
	NextSeconds int        `json:"nextSeconds"`          // until the next check-in, if not woken
	Update      *Envelope  `json:"update,omitempty"`     // of Update; none: nothing is to be installed
	// UpdateTold is the update report of the request, once it is durable.
	UpdateTold *UpdateReport `json:"updateTold,omitempty"`
}

// Former is a device's former identity, with its key's signature of the new one.
type Former struct {
	DeviceID string `json:"deviceId"`
	Sig      string `json:"sig"`
}

// Tombstone informs a device that the service releases it, in the answer to one
// request: a device takes no other, so that a tombstone cannot be kept and used
// later.
type Tombstone struct {
	DeviceID  string          `json:"deviceId"`
	Action    TombstoneAction `json:"action"`
	InReplyTo string          `json:"inReplyTo"` // the refused request's signature; that of an enrollment is its proof
	Time      int64           `json:"time"`      // Unix milliseconds
}

// TombstoneAction is what a tombstone orders.
type TombstoneAction string

// The actions.
const (
	Unenroll  TombstoneAction = "unenroll"
	WipeAgain TombstoneAction = "wipe"
	// Superseded: another device has become this device's asset. The device
	// keeps its policy and its key, and asks again later.
	Superseded TombstoneAction = "superseded"
)

// Time is the service's clock and the device's last sequence, bound to the
// request that it answers by that request's signature.
type Time struct {
	DeviceID     string `json:"deviceId"`
	ServerTime   int64  `json:"serverTime"`
	LastSequence int64  `json:"lastSequence"`
	InReplyTo    string `json:"inReplyTo"` // the refused request's signature
}

// ErrorCode is why the agent's door refused a request.
type ErrorCode string

// The codes.
const (
	ClockSkew       ErrorCode = "clock_skew"       // 401 with Signed of Time
	Replayed        ErrorCode = "replayed"         // 409 with Signed of Time
	BadSignature    ErrorCode = "bad_signature"    // 401
	BadToken        ErrorCode = "bad_token"        // 403: unknown, spent or expired
	Malformed       ErrorCode = "malformed"        // 400
	Waiting         ErrorCode = "waiting"          // 409: a person has not decided yet; ask again later
	Ended           ErrorCode = "ended"            // 410 with Signed of Tombstone
	Busy            ErrorCode = "busy"             // 503 with Retry-After
	RateLimited     ErrorCode = "rate_limited"     // 429 with Retry-After and Signed of Time
	NotFound        ErrorCode = "not_found"        // 404
	UpgradeRequired ErrorCode = "upgrade_required" // 426: another version of the protocol
	InternalErr     ErrorCode = "internal"         // 500
)

// Refusal is why the service refused a request, and the body of its answer. Only a
// verified Signed has any power over the device.
type Refusal struct {
	Code    ErrorCode `json:"error"`
	Message string    `json:"message"`
	Signed  *Envelope `json:"signed,omitempty"`
	// Keys lead from any key that the service ever had to the one that signed.
	Keys       []Envelope `json:"keys,omitempty"`
	RetryAfter int        `json:"-"` // seconds, with Busy and RateLimited
}

// Error implements error.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// PushTokenRequest registers, or with an empty token drops, an FCM token.
type PushTokenRequest struct {
	Token string `json:"token"`
}

// RotateRequest brings a new device key, signed by both keys.
type RotateRequest struct {
	Key    PublicKey `json:"key"`
	OldSig string    `json:"oldSig"`
	NewSig string    `json:"newSig"`
}
