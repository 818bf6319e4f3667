// Package oauth has what people let applications do for them: clients, connections,
// grants and tokens. The endpoints are in internal/surface/oauth.
package oauth

import (
	"context"
	"crypto/sha256"
	"github.com/musterhq/muster/internal/access"
	"time"
)

// Client is an application that people let act for them: registered
// dynamically (RFC 7591), or described by a metadata document at its id.
type Client struct {
	ID           string // for a metadata document: its https address
	Name         string // what the client calls itself; never verified
	RedirectURIs []string
	Dynamic      bool
	// SecretHash is the SHA-256 of the secret of a confidential client; zero:
	// a public client.
	SecretHash [sha256.Size]byte
	CreatedAt  time.Time
	ExpiresAt  time.Time // a registration without a consent by then is dropped; zero: never
}

// Confidential reports whether the client must prove itself with a secret.
func (c Client) Confidential() bool { return c.SecretHash != [sha256.Size]byte{} }

// MaxGrants is how many grants a connection keeps. One more ends the grant that
// was unused for longest.
const MaxGrants = 10

// The use of a refresh token that was rotated already. A client that calls tools
// in parallel refreshes once for each call that found its access token expired,
// and a client whose answer was lost asks again.
const (
	ReuseWindow = 120 * time.Second // from the rotation on
	MaxReuses   = 100               // no client calls so many tools at once
)

// Connection is what a person lets one client do: the sum of the grants
// that their consents made. It owns proposals and has a budget, so it outlives
// its grants and their tokens.
type Connection struct {
	ID         string
	CompanyID  string
	UserID     string
	ClientID   string
	ClientName string
	// Scopes are those of all grants together or, where the connection was
	// found by a token or a code, those of that grant. Each call is limited to
	// what the user may do as well.
	Scopes     access.Permission
	Grants     int  // live grants: one for each consent
	Frozen     bool // refused until an administrator unfreezes it
	CreatedAt  time.Time
	LastUsedAt time.Time // of the grant, where the connection was found by a token
	RevokedAt  time.Time // zero: live
	// GrantID and Grantable are known where the connection was found by a
	// token. Grantable is what its user may do now, and so consent to.
	GrantID   string
	Grantable access.Permission
}

// AuthorizationCode carries a consent until the client redeems it. Until then
// the consent has no effect.
type AuthorizationCode struct {
	Hash          access.SecretHash
	CompanyID     string
	UserID        string
	ClientID      string
	ClientName    string
	Scopes        access.Permission
	RedirectURI   string
	CodeChallenge string // S256
	Resource      string
	ExpiresAt     time.Time
}

// Tokens are the hashes of a pair that is handed out.
type Tokens struct {
	Access         access.SecretHash
	AccessExpires  time.Time
	Refresh        access.SecretHash
	RefreshExpires time.Time
}

// Store keeps clients, connections, codes and tokens. Find methods return
// fault.NotFound.
type Store interface {
	// OAuthClient returns a registered client, or fault.NotFound.
	OAuthClient(ctx context.Context, id string) (Client, error)
	// SaveOAuthClient stores a client; one with its id is replaced.
	SaveOAuthClient(ctx context.Context, c Client) error
	// SaveCode records a consent, which takes effect when its code is redeemed.
	SaveCode(ctx context.Context, code AuthorizationCode) error
	// RedeemCode makes a grant of the code's scopes if take accepts the code,
	// and issues the tokens, in one transaction. A code that was redeemed
	// before ends its grant and is fault.Refused; so is an unknown, expired or
	// not accepted one, which changes nothing. While changes in the portal are
	// stopped it is fault.Forbidden, and the code is not redeemed.
	RedeemCode(ctx context.Context, hash access.SecretHash, take func(AuthorizationCode) error, issue Tokens) (Connection, error)
	// RotateToken swaps a refresh token of the client for new tokens in one
	// transaction. The access token has the wanted scopes; zero means the
	// grant's, and more than the grant's is fault.Forbidden. A token that was
	// swapped before is swapped again within ReuseWindow, at most MaxReuses
	// times, until one of its successors was swapped; after that it ends its
	// grant and is fault.Refused. So does a token beside another of the same
	// swap that was swapped already: two use what one client got. An unknown,
	// expired or foreign token is refused and changes nothing.
	RotateToken(ctx context.Context, refresh access.SecretHash, clientID string, wanted access.Permission, issue Tokens) (Connection, error)
	// RevokeToken ends the grant that the token belongs to.
	RevokeToken(ctx context.Context, token access.SecretHash, clientID string) error
	// ConsentedScopes returns what the user lets the client do already.
	ConsentedScopes(ctx context.Context, userID, clientID string) (access.Permission, error)
}

// ConnectionStore reads and changes connections, for callers and people. Each method fails as the
// database does, and with the faults that it names.
type ConnectionStore interface {
	// ConnectionByToken returns the connection, not revoked, of a live access
	// token, as a principal whose permissions are the scopes of the token's
	// grant limited to its user's rights, with the company's settings, in one
	// query; or fault.NotFound.
	ConnectionByToken(ctx context.Context, access access.SecretHash) (Connection, access.Principal, error)
	// TouchConnection notes the use of a connection and of one of its grants.
	TouchConnection(ctx context.Context, id, grantID string) error
	// Connections returns those of a company, revoked ones included.
	Connections(ctx context.Context, companyID string) ([]Connection, error)
	// UpdateConnection changes what change changes, atomically; change must be
	// pure. Scopes that it adds or removes are added to or removed from each
	// grant. A connection that it revokes loses all grants and codes. It fails
	// with fault.NotFound, and with the error of change.
	UpdateConnection(ctx context.Context, companyID, id string, change func(*Connection) error) (Connection, error)
}
