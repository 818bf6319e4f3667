// Package protocol is the language between Muster's agent and the service:
// the messages, and how requests, commands, policies and tombstones are signed.
// Both halves import it; it imports neither.
//
// Everything travels as JSON over HTTPS under /agent/v2:
//
//	POST /enroll       one-time token → device id            EnrollRequest → EnrollAnswer
//	POST /checkin      acks and reports up, commands down     CheckinRequest → CheckinResponse
//	GET  /policy/{id}  a policy document, ETag and 304        → Envelope of Policy
//	GET  /wake         a stream of events: hints to check in, and commands
//	GET  /file/{sha256}  a range of a file that an Update names
//	POST /push-token   registers an FCM token                 PushTokenRequest
//	POST /rotate       a new device key, signed by both       RotateRequest
//	POST /unenroll     the device's goodbye
//
// The device signs every request but /enroll with its own key (see Request).
// The service signs, with a key that is kept outside its database, whatever has
// power over a device (see Envelope): the identity that it gets, commands, policies,
// assignments of policies, tombstones, its own time. An answer without such a
// signature never ends an enrollment.
package protocol

// Base is the path under which the agent's door answers. Under FormerBase it
// answers every request with UpgradeRequired.
const (
	Base       = "/agent/v2"
	FormerBase = "/agent/v1"
)

// The headers of a signed request.
const (
	HeaderDevice    = "Muster-Device"
	HeaderTime      = "Muster-Time" // Unix milliseconds by the device's clock
	HeaderSequence  = "Muster-Seq"  // grows with every request of the device
	HeaderSignature = "Muster-Sig"  // base64url without padding
)

// A request for a wake stream that has HeaderWake with WakeCommands asks for commands on
// it: events of the type CommandEvent, with an Envelope of a Command as data. HeaderWake is
// not signed.
const (
	HeaderWake   = "Muster-Wake"
	WakeCommands = "commands"
	CommandEvent = "command"
)

// MaxStreamCommand is the limit of the data of a CommandEvent, in bytes.
const MaxStreamCommand = 64 << 10

// MaxSkew is how far, in milliseconds, a request's time may be from the
// service's.
const MaxSkew = 10 * 60 * 1000

// MaxBody is the limit of a request's body in bytes, after inflating.
const MaxBody = 256 << 10

// MaxLog is the limit of the log that a device uploads, in bytes.
const MaxLog = MaxBody

// Role is what an agent may do on its device.
type Role string

// The roles: the device's manager, or a companion on a device that the
// platform manages, which shows messages and reports but has no power.
const (
	Manager   Role = "manager"
	Companion Role = "companion"
)
