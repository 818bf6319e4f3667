package protocol

// KindUpdate is the kind of an Update.
const KindUpdate = "update"

// Build says, in each check-in, which build of the agent runs.
type Build struct {
	// Package is what the agent's updates are built for: an Android package, or a
	// system such as linux-arm64; empty: the agent does not update itself.
	Package string `json:"package,omitempty"`
	Code    int64  `json:"code"` // grows with each version
}

// File is a file that is known by its bytes: GET /file/{sha256} answers ranges of it.
type File struct {
	SHA256 string `json:"sha256"` // hexadecimal
	Size   int64  `json:"size"`   // bytes
}

// MaxRange is how many bytes of a file one answer holds at most: a longer range is shortened. A request names one range, from
// and to; it is refused without one.
const MaxRange = 1 << 20

// Update says, for one device and in the answer to one request, which build the device is
// to install. It has no power of its own: the device installs only what is higher than
// what runs, is for the same package, and has the same signer.
type Update struct {
	DeviceID string `json:"deviceId"`
	Package  string `json:"package"`
	Version  string `json:"version"`
	Code     int64  `json:"code"`
	File     File   `json:"file"`
	// Number is the sequence number of the request that this answers: the device takes
	// no other.
	Number int64 `json:"number"`
	Time   int64 `json:"time"` // Unix milliseconds
}

// UpdateState is how far a device has come with an update.
type UpdateState string

// The states. A device begins only once an answer to UpdateReady names the update again.
// The others are repeated until the service confirms them. UpdateWentBack is final for its file. After UpdateFailed, the
// device tries again when its pause is over, if an answer still names the update.
const (
	UpdateReady     UpdateState = "ready"     // its file is on the device and verified
	UpdateInstalled UpdateState = "installed" // the new version runs and is in touch
	UpdateFailed    UpdateState = "failed"    // the version before runs
	UpdateWentBack  UpdateState = "went_back" // the new version had no contact: the one before runs again
)

// UpdateReport is a device's word about an update.
type UpdateReport struct {
	SHA256 string      `json:"sha256"`
	State  UpdateState `json:"state"`
	Detail string      `json:"detail,omitempty"` // one line
}
