package emulator

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/discovery"
)

// tokenMethod names the token endpoint in faults.
const tokenMethod = "token"

// tokenLifetime is how long an access token is good for.
const tokenLifetime = time.Hour

// account is a service account that may ask for access tokens.
type account struct {
	Email   string `json:"email"`
	KeyID   string `json:"keyId"`
	Key     []byte `json:"key"` // the public key, PKIX
	Revoked bool   `json:"revoked,omitempty"`
}

// NewServiceAccount makes a service account and gives its key file, whose token
// address is that of the emulator at base, such as "http://127.0.0.1:8099".
func (e *Emulator) NewServiceAccount(base string) (key []byte, err error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	email := "muster-" + randomText(6, lowerDigits) + "@" + DefaultProject + ".iam.gserviceaccount.com"
	a := &account{Email: email, KeyID: randomHex(20), Key: public}
	e.mu.Lock()
	e.world.Accounts[email] = a
	e.touch()
	e.mu.Unlock()
	return json.MarshalIndent(map[string]string{ // in the form that the vendor's libraries read
		"type": "service_account", "project_id": DefaultProject, "private_key_id": a.KeyID, "client_email": email,
		"client_id":   randomText(21, "0123456789"),
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), "token_uri": base + "/token",
	}, "", "  ")
}

// RevokeServiceAccount makes a service account and all its access tokens
// invalid. It reports whether there is such an account.
func (e *Emulator) RevokeServiceAccount(email string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.world.Accounts[email]
	if a == nil {
		return false
	}
	a.Revoked = true
	maps.DeleteFunc(e.world.bearers, func(_ string, b bearer) bool { return b.account == email })
	e.touch()
	return true
}

// bearer is an access token that was given out.
type bearer struct {
	account string
	scopes  []string
	ends    time.Time
}

// authorize refuses a call without a good access token of one of the method's
// scopes, if tokens are required.
func (e *Emulator) authorize(r *http.Request, method *discovery.Method) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.settings.RequireAuthorization {
		return nil
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = cmp.Or(r.URL.Query().Get("access_token"), r.URL.Query().Get("oauth_token"))
	}
	b, known := e.world.bearers[token]
	switch {
	case !known || !e.now().Before(b.ends):
		return usual(http.StatusUnauthorized)
	case !slices.ContainsFunc(method.Scopes, func(scope string) bool { return slices.Contains(b.scopes, scope) }):
		return fail(http.StatusForbidden, "Request had insufficient authentication scopes.")
	}
	return nil
}

// serveToken trades a service account's signed assertion for an access token.
func (e *Emulator) serveToken(w http.ResponseWriter, r *http.Request) {
	e.serve(w, r, []string{tokenMethod}, func() (any, error) { return e.grant(r) })
}

// grantError is an OAuth error.
type grantError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (g *grantError) Error() string { return g.Description }

func (e *Emulator) grant(r *http.Request) (any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, &grantError{"invalid_request", "The request is not a form."}
	}
	if r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return nil, &grantError{"unsupported_grant_type", "Invalid grant_type: " + r.PostForm.Get("grant_type")}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	email, scopes, err := e.verifyAssertion(r.PostForm.Get("assertion"))
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(e.world.bearers, func(_ string, b bearer) bool { return !e.now().Before(b.ends) })
	token := "ya29." + randomHex(32)
	e.world.bearers[token] = bearer{account: email, scopes: scopes, ends: e.now().Add(tokenLifetime)}
	text, err := json.Marshal(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLifetime / time.Second)})
	return json.RawMessage(text), err
}

// verifyAssertion checks a signed assertion and gives the account that made it,
// and the scopes that it asks for.
func (e *Emulator) verifyAssertion(assertion string) (email string, scopes []string, err error) {
	bad := func(why string) (string, []string, error) { return "", nil, &grantError{"invalid_grant", why} }
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return bad("Bad Request")
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Scope   string `json:"scope"`
		Expires int64  `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return bad("Bad Request")
	}
	a := e.world.Accounts[claims.Issuer]
	if a == nil || a.Revoked {
		return bad("Invalid grant: account not found")
	}
	public, err := x509.ParsePKIXPublicKey(a.Key)
	key, ok := public.(*rsa.PublicKey)
	signature, decodeErr := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !ok || decodeErr != nil {
		return bad("Invalid JWT Signature.")
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) != nil {
		return bad("Invalid JWT Signature.")
	}
	if e.now().Unix() > claims.Expires {
		return bad("Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.")
	}
	return a.Email, strings.Fields(claims.Scope), nil
}
