package agentdevice

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// AssetTokenLifetime is how long a token for one asset can be redeemed.
const AssetTokenLifetime = 24 * time.Hour

// AssetTokenStore keeps tokens for one asset each.
type AssetTokenStore interface {
	// CreateAssetToken keeps a token for the asset as it is now, under the policy
	// that the token names, or else the asset's own. It fails with
	// fault.NotFound, with fault.Unsupported for a device that the platform
	// manages, and with fault.Refused if there is no such AGENT policy. While the
	// asset has a managed device, by decides whether that may leave; nil: the operator.
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
