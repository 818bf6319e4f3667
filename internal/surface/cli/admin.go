package cli

import (
	"context"
	"crypto/sha256"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	agentdevice "github.com/musterhq/muster/internal/agent/device"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
)

// Admin is what administration works with: an open database and, for what
// concerns the platform, the way there.
type Admin struct {
	Companies company.Store
	Keys      apikey.Store
	Assets    asset.Store
	// Companions are the agents beside the platform's management.
	Companions agentdevice.CompanionStore
	Identity   Identity
	Policies   policy.Service
	Users      account.UserStore
	Domains    account.DomainStore
	// Connections are the OAuth connections of people's applications.
	Connections oauth.ConnectionStore
	// Signed is what people signed with their passkeys.
	Signed SignedStore
	// Passkeys reads passkeys as the service at a public address does.
	Passkeys func(publicURL string) (Passkeys, error)
	// Activity is the record of who did what.
	Activity activity.Store
	// Chain makes the sealer of the record's chain, with the keys of a file;
	// empty: the file beside an embedded database.
	Chain func(store config.Store, keyFile string) (*activity.Sealer, error)
	// Backup makes an online copy of the database at a path that does not exist.
	Backup func(ctx context.Context, path string) error
	// Platform makes the way to the vendor's platform; publicURL is where the
	// running service is reached.
	Platform func(settings config.Platform, publicURL string) (Platform, error)
	// Provisioning makes enrollment tokens as the service with those settings does.
	// It refuses a key file that is not the database's.
	Provisioning func(ctx context.Context, settings config.Service) (*provisioning.Service, error)
	Tokens       TokenFinder
	// Unproved says why what the command records has no proof; empty: it has one.
	Unproved string
	Close    func() error
}

// Identity says which device an asset is.
type Identity interface {
	agentdevice.AssetTokenStore
	// MergeAssets makes the device of the other asset that of the kept one.
	MergeAssets(ctx context.Context, companyID, keptID, otherID string) error
}

// TokenFinder finds devices with our own agent, or returns fault.NotFound.
type TokenFinder interface {
	// AgentOfToken finds the device that a token enrolled, once it has its asset.
	AgentOfToken(ctx context.Context, hash [sha256.Size]byte) (agentdevice.Device, error)
	AgentDevice(ctx context.Context, id string) (agentdevice.Device, error)
}
