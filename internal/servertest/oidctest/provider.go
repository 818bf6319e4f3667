// Package oidctest is an OpenID Connect provider for tests. It signs everyone
// in as the person that the test names, and checks what a provider has to check: client,
// redirect address, PKCE, one use of each code.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Browser is who signs in.
type Browser struct {
	Subject, Email, Name string
	Unverified           bool // the address is not verified
}

// Provider is the running provider.
type Provider struct {
	URL, ClientID, Secret string

	mu     sync.Mutex
	person Browser
	now    func() time.Time
	key    *rsa.PrivateKey
	codes  map[string]url.Values // what each code was asked for
	spoil  func(claims map[string]any)
	asked  func() // called once, when the provider is described
}

// New runs a provider until the test ends.
func New(tb testing.TB, now func() time.Time) *Provider {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Provider{ClientID: "muster", Secret: "hush", key: key, now: now, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", p.keys)
	server := httptest.NewServer(mux)
	tb.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Be says who signs in from now on; spoil, if not nil, alters the claims.
func (p *Provider) Be(who Browser, spoil func(claims map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person, p.spoil = who, spoil
}

// Asked sets what is called when the provider is next asked to describe itself, before it answers.
func (p *Provider) Asked(then func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = then
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) describe(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	asked := p.asked
	p.asked = nil
	p.mu.Unlock()
	if asked != nil {
		asked()
	}
	reply(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"jwks_uri": p.URL + "/keys", "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"}})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	public := p.key.PublicKey
	reply(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
		"n": encode(public.N.Bytes()), "e": encode(big.NewInt(int64(public.E)).Bytes())}}})
}

// authorize sends the person straight back: they are signed in here.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != p.ClientID || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" ||
		q.Get("state") == "" {
		http.Error(w, "this request is not as it should be", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	p.mu.Lock()
	authorization := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	who, spoil := p.person, p.spoil
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if authorization == nil || id != p.ClientID || secret != p.Secret || encode(sum[:]) != authorization.Get("code_challenge") ||
		authorization.Get("redirect_uri") != r.PostFormValue("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]string{"error": "invalid_grant"})
		return
	}
	now := p.now()
	claims := map[string]any{"iss": p.URL, "aud": p.ClientID, "sub": who.Subject, "email": who.Email, "email_verified": !who.Unverified,
		"name": who.Name, "nonce": authorization.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"auth_time": now.Unix()}
	if spoil != nil {
		spoil(claims)
	}
	reply(w, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": p.sign(claims)})
}

// sign makes a JSON web token of the claims.
func (p *Provider) sign(claims map[string]any) string {
	head, _ := json.Marshal(map[string]string{"alg": "RS256", "kid": "1", "typ": "JWT"})
	body, _ := json.Marshal(claims)
	text := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	return text + "." + encode(signature)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
