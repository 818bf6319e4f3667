package access

import (
	"context"
	"crypto/sha256"
	"time"
)

// OAuthClient is an application that people let act for them: registered
// dynamically (RFC 7591), or described by a metadata document at its id.
type OAuthClient struct {
	ID           string // for a metadata document: its https address
	Name         string // what the client calls itself; never verified
	RedirectURIs []string
	Dynamic      bool
	// SecretHash is the SHA-256 of the secret of a confidential client; zero:
	// a public client.
	SecretHash [sha256.Size]byte
	CreatedAt  time.Time
	ExpiresAt  time.Time // a registration that nobody consented to by then is dropped; zero: never
}

// Confidential reports whether the client must prove itself with a secret.
func (c OAuthClient) Confidential() bool { return c.SecretHash != [sha256.Size]byte{} }

// OAuthConnection is a person's consent to a client. It is the caller that
// proposals belong to and that a budget is counted for (contract 5.6, 8), so it
// outlives every token, and consenting again changes it in place.
type OAuthConnection struct {
	ID         string
	CompanyID  string
	UserID     string
	ClientID   string
	ClientName string
	Scopes     Permission // as consented; each call cuts them by the user's rights
	Frozen     bool       // set aside by an administrator: refused until thawed
	CreatedAt  time.Time
	LastUsedAt time.Time
	RevokedAt  time.Time // zero: live
	// Grantable is what the connection's user may do now, and so consent to;
	// known where the connection was found by its token.
	Grantable Permission
}

// SecretHash is how codes and tokens are found: they are never stored.
type SecretHash [sha256.Size]byte

// HashSecret returns the hash of a code or token.
func HashSecret(text string) SecretHash { return sha256.Sum256([]byte(text)) }

// NewSecret returns a fresh code or token of 256 random bits behind a prefix.
func NewSecret(prefix string) string {
	body := prefix + randomText(secretLength)
	return body + checksum(body)
}

// AuthorizationCode is a code between consent and token request.
type AuthorizationCode struct {
	Hash          SecretHash
	ConnectionID  string
	ClientID      string
	RedirectURI   string
	CodeChallenge string // S256
	Resource      string
	ExpiresAt     time.Time
}

// OAuthTokens are the hashes of a pair that is handed out.
type OAuthTokens struct {
	Access         SecretHash
	AccessExpires  time.Time
	Refresh        SecretHash
	RefreshExpires time.Time
}

// OAuthStore keeps clients, connections, codes and tokens. Find methods return
// fault.NotFound.
type OAuthStore interface {
	OAuthClient(ctx context.Context, id string) (OAuthClient, error)
	SaveOAuthClient(ctx context.Context, c OAuthClient) error
	// Connect records a consent: the user's live connection with the client
	// gets the scopes, or a new one is made; and the code, together.
	Connect(ctx context.Context, c OAuthConnection, code AuthorizationCode) (OAuthConnection, error)
	// RedeemCode takes the code if take agrees to it, and issues the tokens, in
	// one transaction. A code that was taken before revokes its connection and
	// is fault.Refused; so is an unknown, expired or disagreed one.
	RedeemCode(ctx context.Context, hash SecretHash, take func(AuthorizationCode) error, issue OAuthTokens) (OAuthConnection, error)
	// RotateToken swaps a refresh token of the client for new tokens in one
	// transaction. One that was used before revokes its connection and is
	// fault.Refused; so is an unknown, expired or foreign one.
	RotateToken(ctx context.Context, refresh SecretHash, clientID string, issue OAuthTokens) (OAuthConnection, error)
	// RevokeToken ends the connection that the token belongs to.
	RevokeToken(ctx context.Context, token SecretHash, clientID string) error
}

// ConnectionStore reads and changes connections, for callers and people.
type ConnectionStore interface {
	// ConnectionByToken returns the connection, not revoked, of a live access
	// token, as a principal whose permissions are its scopes cut by its user's rights,
	// with the company's settings, in one query.
	ConnectionByToken(ctx context.Context, access SecretHash) (OAuthConnection, Principal, error)
	TouchConnection(ctx context.Context, id string) error
	Connections(ctx context.Context, companyID string) ([]OAuthConnection, error)
	// UpdateConnection changes what change changes, atomically; change must be pure.
	UpdateConnection(ctx context.Context, companyID, id string, change func(*OAuthConnection) error) (OAuthConnection, error)
}
