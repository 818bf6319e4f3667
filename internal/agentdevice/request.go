package agentdevice

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// RequestLifetime is how long a device that asks to be enrolled again waits for a
// person, and how long it then has to come back.
const RequestLifetime = 7 * 24 * time.Hour

// The requests that may wait at one time.
const (
	MaxRequestsPerAsset   = 3
	MaxRequestsPerCompany = 100
)

// InTouch is how recently a device's key was used for the device to count as being in
// touch: who takes its place then replaces a managed device.
const InTouch = 24 * time.Hour

// ErrWaiting is returned while a person has not decided about a request.
var ErrWaiting = errors.New("the device asks to be enrolled again, and no person has decided yet")

// Request is a device that lost its key or its identity, came with a code of the
// company, and claims the serial number of an asset that has a managed device.
type Request struct {
	ID      string
	AssetID string
	// What the device says of itself.
	SerialNumber, Model, OSVersion string
	AskedAt, ExpiresAt             time.Time
	// InTouch: the asset's device was in touch within the last 24 hours, or is to be
	// erased or released.
	InTouch bool
}

// RequestStore keeps the devices that ask to be enrolled again. Each method fails as the database
// does, and with the faults that it names.
type RequestStore interface {
	// EnrollmentRequests returns those of a company that wait, oldest first; of one
	// asset, unless assetID is empty.
	EnrollmentRequests(ctx context.Context, companyID, assetID string) ([]Request, error)
	// ConfirmRequest lets the device of a request become its asset. While the asset's
	// device is in touch, by decides whether that may leave: its Refusal, or
	// fault.RateLimited above the limit of destructive commands. It fails with
	// fault.NotFound if no such request waits, and with fault.Refused if the asset was
	// enrolled again since, or the device's code was revoked or is used up.
	ConfirmRequest(ctx context.Context, companyID, id string, by access.Replacement) error
	// DeclineRequest ends a request. Its device needs another code. It fails with
	// fault.NotFound if no such request waits.
	DeclineRequest(ctx context.Context, companyID, id string) error
}

// AssetTokenLifetime is how long a token for one asset can be redeemed.
const AssetTokenLifetime = 24 * time.Hour

// AssetTokenStore keeps tokens for one asset each.
type AssetTokenStore interface {
	// CreateAssetToken keeps a token for the asset as it is now, under the policy
	// that the token names, or else the asset's own, in place of those that were made
	// for the asset before and not used. It fails with
	// fault.NotFound, with fault.Unsupported for a device that the platform
	// manages, and with fault.Refused if there is no such AGENT policy. While the
	// asset has a managed device, by decides whether that may leave: its Refusal, or
	// fault.RateLimited above the limit of destructive commands; nil: the operator.
	CreateAssetToken(ctx context.Context, t Token, by *access.Replacement) (Token, error)
}

// AssetTokens issues tokens with which a device enrolls as one asset.
type AssetTokens struct {
	Store AssetTokenStore
	Now   func() time.Time
}

// Issue makes a token and returns its text, which is shown once. policyID may be
// empty: the asset's own. by is nil for the operator.
func (a AssetTokens) Issue(ctx context.Context, companyID, assetID, policyID string, by *access.Replacement) (string, Token, error) {
	text := access.NewSecret(ManagerTokenPrefix)
	kept, err := a.Store.CreateAssetToken(ctx, Token{Hash: sha256.Sum256([]byte(text)), CompanyID: companyID, AssetID: assetID,
		PolicyID: policyID, ExpiresAt: a.Now().Add(AssetTokenLifetime)}, by)
	return text, kept, err
}

// What is kept of the logs that devices upload. The oldest goes first.
const (
	LogLifetime    = 30 * 24 * time.Hour
	LogsPerDevice  = 20
	LogsPerCompany = 1000
)

// Log is what a device uploaded of its agent's log when a command asked for it.
type Log struct {
	ID    string // the command's
	At    time.Time
	Bytes int    // of Text
	Text  string // lines of printable UTF-8; empty in lists
}

// LogStore keeps logs. Every method is bound to one company or device, and fails as the database
// does, or with the faults that it names.
type LogStore interface {
	// KeepLog keeps a log of a device that has the open command ID, once: a log that
	// is kept stays as it is. It fails with fault.NotFound for any other command.
	KeepLog(ctx context.Context, d Device, l Log) error
	// Logs lists those of an asset, newest first, without their texts.
	Logs(ctx context.Context, companyID, assetID string) ([]Log, error)
	// Log returns one with its text; fault.NotFound.
	Log(ctx context.Context, companyID, assetID, id string) (Log, error)
}
