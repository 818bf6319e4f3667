package drill

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/service/portalclient"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/internal/surface/oauth"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

var keyText = regexp.MustCompile(`mk_[0-9A-Za-z]{8}_[0-9A-Za-z]+`)

// makeKeys makes keys that may do everything.
func (t *attacker) makeKeys(ctx context.Context) error {
	row := t.row("make API keys")
	for i := range attackerKeys {
		key, err := makeKey(ctx, t.owner, "thief "+strconv.Itoa(i))
		if err != nil {
			return err
		}
		row.note(answer{})
		t.callers = append(t.callers, t.rest(key, nil))
	}
	return nil
}

// makeKey makes a key that may do everything, and returns its text.
func makeKey(ctx context.Context, v *portalclient.Client, name string) (string, error) {
	fields, err := keyForm(ctx, v, name)
	if err != nil {
		return "", err
	}
	p, err := v.Post(ctx, frame.AccessPath+"/keys", fields...)
	if err != nil {
		return "", err
	}
	return p.Shown(keyText)
}

// keyForm is the form that makes a key that may do everything.
func keyForm(ctx context.Context, v *portalclient.Client, name string) ([]string, error) {
	p, err := v.Get(ctx, frame.AccessPath+"/keys/new")
	if err != nil {
		return nil, err
	}
	once, err := p.Field(frame.OnceField)
	fields := []string{"name", name, "expires", "90", frame.OnceField, once}
	for _, permission := range access.All.Names() {
		fields = append(fields, "permission", permission)
	}
	return fields, err
}

var invitation = regexp.MustCompile(`/invitation#[0-9A-Za-z_-]+`)

// makePeople makes administrators, and signs in as each.
func (t *attacker) makePeople(ctx context.Context) error {
	row := t.row("make administrators")
	for i := range attackerUsers {
		v, err := t.invite(ctx, fmt.Sprintf("thief%d@acme.test", i), "role", "admin")
		if err != nil {
			return err
		}
		row.note(answer{})
		if i < attackerUsers-1 {
			if err := v.AddPasskey(ctx); err != nil {
				return err
			}
		}
		t.people = append(t.people, v)
	}
	return nil
}

// invite has the owner invite a user, with more fields of the form, and opens the account.
func (t *attacker) invite(ctx context.Context, email string, fields ...string) (*portalclient.Client, error) {
	p, err := t.owner.Post(ctx, frame.UsersPath, append(fields, "email", email, "name", "Thief")...)
	if err != nil {
		return nil, err
	}
	link, err := p.Shown(invitation)
	if err != nil {
		return nil, err
	}
	v := portalclient.New(t.Service.PublicURL(), attackerPassword)
	_, code, _ := strings.Cut(link, "#")
	if p, err = v.Post(ctx, web.InvitationPath, "code", code, "password", attackerPassword, "again", attackerPassword); err != nil {
		return nil, err
	}
	if p.Status != http.StatusOK {
		return nil, fmt.Errorf("the invitation was refused: %d at %s", p.Status, p.Path)
	}
	return v, nil
}

const (
	clientRedirect = "https://thief.example/cb" // only the code in the address is used
	clientVerifier = "0123456789012345678901234567890123456789abc"
)

var onward = regexp.MustCompile(`https://thief\.example/cb\?[^"]+`)

// makeClients connects OAuth clients that may do everything.
func (t *attacker) makeClients(ctx context.Context) error {
	row := t.row("make connections")
	for i := range attackerClients {
		v := append([]*portalclient.Client{t.owner}, t.people...)[i]
		token, err := t.connectClient(ctx, v)
		if err != nil {
			return err
		}
		c, err := t.tools(ctx, "Authorization", "Bearer "+token, nil)
		if err != nil {
			return err
		}
		row.note(answer{})
		t.callers = append(t.callers, c)
	}
	return nil
}

// connectClient registers a client and lets the person consent to all scopes.
func (t *attacker) connectClient(ctx context.Context, v *portalclient.Client) (token string, err error) {
	var registered struct {
		ID string `json:"client_id"`
	}
	metadata := `{"client_name":"Thief","redirect_uris":["` + clientRedirect + `"],"token_endpoint_auth_method":"none"}`
	p, err := v.Do(ctx, http.MethodPost, oauth.RegisterPath, "application/json", metadata)
	if err == nil {
		err = decode(p, &registered)
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(clientVerifier))
	request := url.Values{"response_type": {"code"}, "client_id": {registered.ID}, "redirect_uri": {clientRedirect}, "state": {"s"},
		"scope": {strings.Join(access.All.Scopes(), " ")}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"}, "resource": {v.Base + mcp.Path}}
	fields := []string{"request", request.Encode(), "decision", "allow"}
	for _, scope := range access.All.Scopes() {
		fields = append(fields, "scope", scope)
	}
	if p, err = v.Post(ctx, oauth.AuthorizePath, fields...); err != nil {
		return "", err
	}
	back, err := p.Shown(onward)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(back)
	if err != nil {
		return "", err
	}
	var tokens struct {
		Access string `json:"access_token"`
	}
	p, err = v.Post(ctx, oauth.TokenPath, "grant_type", "authorization_code", "client_id", registered.ID, "code", u.Query().Get("code"),
		"redirect_uri", clientRedirect, "code_verifier", clientVerifier)
	if err == nil {
		err = decode(p, &tokens)
	}
	return tokens.Access, err
}

// decode reads a page that is JSON.
func decode(p portalclient.Page, into any) error {
	if p.Status >= http.StatusBadRequest {
		return fmt.Errorf("%s answers %d", p.Path, p.Status)
	}
	return json.Unmarshal([]byte(p.Body), into)
}
