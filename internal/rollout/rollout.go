// Package rollout brings releases of the agent to the installation's devices, a ring at
// a time, and stops when devices fall silent (docs/states.md has the states).
//
// The operator adds releases and begins rollouts by command line. A device is told of a
// release in the signed answer to a check-in, and begins only after it has said that it is
// ready and was told again: a pause holds back every device that has not begun.
package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Release is one file of a version of the agent.
type Release struct {
	Version string
	Package string // what it is built for: an Android package, or a system such as linux-arm64
	Code    int64  // grows with each version
	SHA256  string // hexadecimal
	Size    int64  // bytes
	Signer  string // SHA-256 of the signer's certificate or key, base64url
	AddedAt time.Time
}

// Limits of releases.
const (
	MaxSize     = 64 << 20 // bytes of a file
	MaxReleases = 40       // files; the oldest that nothing needs make room
	PartSize    = 48 << 10 // bytes; files are kept and sent in parts
)

// State is the state of a rollout.
//
//	RUNNING ──95 % of the last ring──► DONE
//	  │ ▲                               │
//	  ▼ └───────── rollout ────────┐    │
//	PAUSED ◄───────────────────────┼────┘ devices fell silent, the operator, or a restore
//	  └──another version begins──► ENDED ◄── also from RUNNING; from DONE when replaced
type State string

// The states. RUNNING and DONE offer their version to devices.
const (
	Running State = "RUNNING"
	Paused  State = "PAUSED"
	Done    State = "DONE"
	Ended   State = "ENDED"
)

// Offers reports whether devices are told of the version.
func (s State) Offers() bool { return s == Running || s == Done }

// Rollout is how far a version is rolled out.
type Rollout struct {
	Version     string
	State       State
	Reason      string // why it is paused
	Goal        int    // percent of the installation's devices
	Ring        int    // percent that the present ring ends with; 0: none has begun
	Upto        int64  // the highest place in the present ring; see Place
	BeganAt     time.Time
	RingAt      time.Time // when the present ring began
	ResumedAt   time.Time // devices that were lost before do not pause it again
	WatchedFrom time.Time // since when the service has looked without a break
	WatchedAt   time.Time
}

// ByOperator is the reason of a pause that the operator made.
const ByOperator = "by the operator"

// PausedItself reports whether a rollout is paused because devices were lost, or the database was restored.
func (r Rollout) PausedItself() bool { return r.State == Paused && r.Reason != ByOperator }

// Outcome is what became of an update on a device.
type Outcome string

// The outcomes. A device that went back has started the new version, had no contact
// with it, and runs the one before again.
const (
	Offered   Outcome = "OFFERED"
	Began     Outcome = "BEGAN"
	Installed Outcome = "INSTALLED"
	Failed    Outcome = "FAILED"
	WentBack  Outcome = "WENT_BACK"
)

// Final reports whether a device has no more to say of the update.
func (o Outcome) Final() bool { return o == Installed || o == Failed || o == WentBack }

// Member is a device as a rollout sees it.
type Member struct {
	DeviceID    string
	CompanyID   string
	CompanySlug string
	AssetID     string
	Package     string
	Code        int64
	SeenAt      time.Time
	Held        bool // by a stop or a pause of its company
	Outcome     Outcome
	Detail      string
	Daily       bool // in touch every day before it began
	BeganAt     time.Time
	EndedAt     time.Time
}

// Place is where a device stands in the order of all devices: a ring is those up to a
// place. It is never negative.
func Place(deviceID string) int64 {
	sum := sha256.Sum256([]byte("muster-rollout\n" + deviceID))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// Offer is what a device is to install.
type Offer struct {
	Release
	// Outcome is what the service knows of the device's update.
	Outcome Outcome
}

// Word is what a device says about an update.
type Word struct {
	SHA256  string
	Outcome Outcome // final
	Detail  string
}

// Store keeps releases and rollouts. Find methods return fault.NotFound.
type Store interface {
	// AddRelease keeps a file. It fails with fault.Refused for a version that exists with
	// other bytes, is not higher than all before, or has another signer than they, and
	// where rollouts need all files that are kept. The same file again changes nothing.
	AddRelease(ctx context.Context, r Release, content []byte) error
	// Releases returns all releases, the newest first.
	Releases(ctx context.Context) ([]Release, error)
	// Rollouts returns the rollouts of all versions.
	Rollouts(ctx context.Context) ([]Rollout, error)
	// BeginRollout begins the rollout of a version, or lets it go on, and ends the others
	// that are not done. goal is the percentage of devices that get it; 0: as before, or 100 for
	// a new rollout. It fails with fault.NotFound without such a release, and with
	// fault.Refused for a goal below the present ring.
	BeginRollout(ctx context.Context, version string, goal int) (Rollout, error)
	// PauseRollouts pauses all that offer their version, for the reason ByOperator, and returns how many.
	PauseRollouts(ctx context.Context) (int, error)
	// MoveRollout changes a rollout that is still as it was. false: it was not.
	MoveRollout(ctx context.Context, was, is Rollout) (bool, error)
	// Members shows each device that the version could be for, or that has begun with it.
	Members(ctx context.Context, version string, show func(Member)) error
}

// Offers is what a rollout means for single devices. Each method fails as the database does, and with
// the faults that it names.
type Offers interface {
	// OfferUpdate returns the newest version that the device is to install now; false: none.
	// ready is the file that the device has, by its SHA-256: if it is that version's, the
	// device begins with it.
	OfferUpdate(ctx context.Context, deviceID, ready string) (Offer, bool, error)
	// UpdateTold keeps what a device says about an update that it was offered.
	UpdateTold(ctx context.Context, deviceID string, w Word) error
	// ReleasePart returns a part of a file that the device was offered. It fails with
	// fault.NotFound for any other, and with fault.Internal if the stored part is damaged.
	ReleasePart(ctx context.Context, deviceID, sha256 string, number int64) ([]byte, error)
	// ReleaseSize returns the size of such a file in bytes, or fault.NotFound.
	ReleaseSize(ctx context.Context, deviceID, sha256 string) (int64, error)
}

// Count is how many devices of a company run a version.
type Count struct {
	Version string // empty: they have not said
	Devices int
}

// Trouble is a device of a company on which a version failed.
type Trouble struct {
	AssetID string
	Name    string // of the asset
	Version string
	Outcome Outcome
	Detail  string
}
