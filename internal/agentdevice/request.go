package agentdevice

import (
	"context"
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

// RequestStore keeps the devices that ask to be enrolled again.
type RequestStore interface {
	// EnrollmentRequests returns those of a company that wait, oldest first; of one
	// asset, unless assetID is empty.
	EnrollmentRequests(ctx context.Context, companyID, assetID string) ([]Request, error)
	// ConfirmRequest lets the device of a request become its asset. While the asset's
	// device is in touch, by decides whether that may leave. It fails with
	// fault.NotFound if no such request waits, and with fault.Refused if the asset was
	// enrolled again since, or the device's code was revoked or is used up.
	ConfirmRequest(ctx context.Context, companyID, id string, by access.Replacement) error
	// DeclineRequest ends a request. Its device needs another code.
	DeclineRequest(ctx context.Context, companyID, id string) error
}
