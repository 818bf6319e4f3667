package agentdevice

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// CompanionTokenPrefix begins the tokens of companions, ManagerTokenPrefix all
// others: a token gives the role that it was made for and no other.
const (
	CompanionTokenPrefix = "mct_"
	ManagerTokenPrefix   = "met_"
)

// CompanionReport is what a companion reports about its device, cleaned.
type CompanionReport struct {
	Status   json.RawMessage // nil: none
	Location json.RawMessage // as an asset's location is kept; nil: none
	SeenAt   time.Time
}

// CompanionStore keeps companions. Find methods return fault.NotFound.
type CompanionStore interface {
	// CreateCompanionToken keeps a token that ties an agent to one enrollment of one
	// platform device. Which device that is was decided by who made the token: no
	// device can claim to be another.
	CreateCompanionToken(ctx context.Context, t Token) error
	// RedeemCompanionToken is Store.RedeemAgentToken for companions; the device
	// it returns is tied to its asset.
	RedeemCompanionToken(ctx context.Context, hash [sha256.Size]byte, d Device, again time.Time) (Device, error)
	// SetPushToken keeps where a device is reached by push, and notes at its
	// asset whether it is; empty: nowhere.
	SetPushToken(ctx context.Context, d Device, token string) error
	// ReportCompanion applies what a companion reports. false: its device is no
	// longer the one that it was tied to.
	ReportCompanion(ctx context.Context, d Device, r CompanionReport) (bool, error)
}

// Companions issues tokens for companions.
type Companions struct {
	Store CompanionStore
	Now   func() time.Time
}

// CompanionLifetime is how long a companion's token can be redeemed.
const CompanionLifetime = 24 * time.Hour

// Issue makes a token for one enrollment of an asset and returns its text, which
// is shown once.
func (c Companions) Issue(ctx context.Context, companyID, assetID string, epoch int) (string, time.Time, error) {
	text, expires := access.NewSecret(CompanionTokenPrefix), c.Now().Add(CompanionLifetime)
	err := c.Store.CreateCompanionToken(ctx, Token{Hash: sha256.Sum256([]byte(text)), CompanyID: companyID,
		AssetID: assetID, Epoch: epoch, ExpiresAt: expires})
	return text, expires, err
}

// IsCompanion reports whether the device is a companion.
func (d Device) IsCompanion() bool { return d.Role == protocol.Companion }
