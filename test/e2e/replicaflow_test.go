package e2e_test

import (
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	oauthserver "github.com/musterhq/muster/internal/surface/oauth"
)

// Two replicas on one database, every request at the other one: sign-in,
// consent, tokens, both generations of the protocol, a reviewed change.
func TestReplicas_NeedNoAffinity(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	front := env.StartBehindProxy(2)
	acme := env.Company("acme", servertest.Everything())
	p := env.Policy(acme, "Policy", policy.Platform)
	ada := env.Browser(acme, account.Admin)
	a, b := front.At(0), front.At(1)

	client := ada.Register(a)
	request := client.AuthorizationRequest(front.URL, "mcp:policies:write")
	ada.Send(b+oauthserver.AuthorizePath+"?"+request.Encode(), nil).Want(t, http.StatusSeeOther) // to sign in
	ada.SignIn(a)
	ada.Send(b+oauthserver.AuthorizePath+"?"+request.Encode(), nil).Want(t, http.StatusOK)
	code := ada.Consents(a, request, "mcp:policies:write")
	tokens := ada.Redeem(b, client, code)
	if tokens.Status != http.StatusOK {
		t.Fatalf("%+v", tokens)
	}
	if replay := ada.Redeem(a, client, code); replay.Error != "invalid_grant" {
		t.Errorf("the code again, at the other replica: %+v", replay)
	}
	if got := servertest.WithToken(t, b, tokens.Access).Call("list_policies", nil); got.Status != http.StatusUnauthorized {
		t.Errorf("after the replay, at the replica that gave the token: %d", got.Status)
	}

	tokens = ada.Connect(front.URL, "mcp:policies:write")
	for _, assistant := range []servertest.Assistant{servertest.WithToken(t, front.URL, tokens.Access),
		servertest.WithToken(t, front.URL, tokens.Access).Legacy()} {
		if assistant.Protocol == servertest.LegacyProtocol {
			hello := assistant.Request("initialize", map[string]any{"protocolVersion": assistant.Protocol, "capabilities": map[string]any{},
				"clientInfo": map[string]any{"name": "older", "version": "1"}})
			if hello.Want(t, http.StatusOK); hello.Error != nil || hello.Header.Get("Mcp-Session-Id") != "" {
				t.Fatalf("initialize: %v %s", hello.Header, hello.Body)
			}
			assistant.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).Want(t, http.StatusAccepted)
		}
		if len(assistant.Names()) == 0 {
			t.Error("no tools are listed")
		}
		var settings struct {
			Version  int
			Settings []struct{ ID, Value string }
		}
		target := map[string]any{"policyId": p.ID}
		assistant.Call("get_policy_settings", target).OK(t, &settings)
		value := "BLOCK"
		for _, s := range settings.Settings {
			if s.ID == "CAMERA" && s.Value == "BLOCK" {
				value = "ALLOW"
			}
		}
		var proposal struct{ ProposalID, Status string }
		assistant.Call("update_policy_settings",
			map[string]any{"policyId": p.ID, "changes": []any{map[string]any{"setting": "CAMERA", "value": value}}}).OK(t, &proposal)
		handle := map[string]any{"proposalId": proposal.ProposalID}
		assistant.Call("get_policy_proposal", handle).OK(t, nil)
		if e := assistant.Call("apply_policy_proposal", handle); e.IsError {
			t.Errorf("apply: %s", e.Body)
		}
		if e := assistant.Call("apply_policy_proposal", handle).Failed(t); e.Code != "not_pending" {
			t.Errorf("apply again: %+v", e)
		}
	}
}

// One refresh token at both replicas at once: exactly one wins, and because it
// was used twice, nothing of the connection lives on.
func TestReplicas_RefreshTokenUsedTwice(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	front := env.StartBehindProxy(2)
	ada := env.Browser(env.Company("acme", servertest.Everything()), account.Admin)
	for round := range 5 {
		tokens := ada.Connect(front.URL, "mcp:devices:read")
		var won atomic.Pointer[client.Tokens]
		var wins atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				got := ada.Swap(front.At(i%2), tokens)
				switch {
				case got.Status == http.StatusOK:
					wins.Add(1)
					won.Store(&got)
				case got.Error != "invalid_grant":
					t.Errorf("round %d: %+v", round, got)
				}
			})
		}
		all.Wait()
		if wins.Load() != 8 { // a client whose calls run in parallel refreshes in parallel
			t.Fatalf("round %d: %d of 8 won", round, wins.Load())
		}
		for i := range 2 {
			if got := servertest.WithToken(t, front.At(i), won.Load().Access).Call("count_assets", nil); got.Status != http.StatusOK {
				t.Errorf("round %d: a new access token at replica %d: %d", round, i, got.Status)
			}
		}
	}
}

// A connection ends on every replica within a second of its revocation: by the
// operator, by the client, or with its person; so does a key.
func TestReplicas_RevocationReachesAll(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		front := env.StartBehindProxy(2)
		acme := env.Company("acme", servertest.Everything())
		ada := env.Browser(acme, account.Admin)
		key, text := env.KeyRow(acme, access.DevicesRead)
		admin := env.Admin()
		for what, end := range map[string]func(client.Tokens) error{
			"the operator": func(tokens client.Tokens) error {
				_, err := admin.Connections.UpdateConnection(t.Context(), acme.ID, env.ConnectionOf(tokens.Access).ID,
					func(o *oauth.Connection) error {
						o.RevokedAt = env.Now()
						return nil
					})
				return err
			},
			"the client, by its refresh token": func(tokens client.Tokens) error {
				ada.Send(front.At(0)+oauthserver.RevokePath, url.Values{"token": {tokens.Refresh}, "client_id": {tokens.Client.ID}}).Want(t,
					http.StatusOK)
				return nil
			},
			"the client, by its access token": func(tokens client.Tokens) error {
				ada.Send(front.At(1)+oauthserver.RevokePath, url.Values{"token": {tokens.Access}, "client_id": {tokens.Client.ID}}).Want(t,
					http.StatusOK)
				return nil
			},
		} {
			t.Run(what, func(t *testing.T) {
				tokens := ada.Connect(front.URL, "mcp:devices:read")
				for i := range 2 {
					servertest.WithToken(t, front.At(i), tokens.Access).Call("count_assets", nil).OK(t, nil)
				}
				ada.Send(front.URL+oauthserver.RevokePath, url.Values{"token": {"mat_unknown"}, "client_id": {tokens.Client.ID}}).Want(t,
					http.StatusOK)
				start := time.Now()
				if err := end(tokens); err != nil {
					t.Fatal(err)
				}
				for i := range 2 {
					if got := servertest.WithToken(t, front.At(i), tokens.Access).Call("count_assets",
						nil); got.Status != http.StatusUnauthorized {
						t.Errorf("ended by %s: replica %d answers %d after %v", what, i, got.Status, time.Since(start))
					}
				}
				if got := ada.Swap(front.URL, tokens); got.Error != "invalid_grant" {
					t.Errorf("ended by %s: refresh %+v", what, got)
				}
			})
		}
		for i := range 2 {
			servertest.WithKey(t, front.At(i), text).Call("count_assets", nil).OK(t, nil)
		}
		if _, err := admin.Keys.RevokeKey(t.Context(), acme.ID, key.ID, env.Now()); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if got := servertest.WithKey(t, front.At(i), text).Call("count_assets", nil); got.Status != http.StatusUnauthorized {
				t.Errorf("a revoked key at replica %d: %d", i, got.Status)
			}
		}
	})
}

// Limits by address are one count over all replicas.
func TestReplicas_ShareAddressLimits(t *testing.T) {
	t.Parallel()
	env := servertest.NewPostgres(t)
	front := env.StartBehindProxy(2)
	ada := env.Browser(env.Company("acme", servertest.Everything()), account.Admin)
	count := func(what string, limit int, attempt func() int) {
		t.Helper()
		for i := range limit {
			if got := attempt(); got == http.StatusTooManyRequests {
				t.Fatalf("%s: limited at attempt %d of %d", what, i+1, limit)
			}
		}
		if got := attempt(); got != http.StatusTooManyRequests {
			t.Errorf("%s: attempt %d answers %d", what, limit+1, got)
		}
	}
	count("registration", 30, func() int {
		return ada.SendJSON(front.URL+oauthserver.RegisterPath, `{"redirect_uris":["https://a.example/cb"]}`).Status
	})
	count("sign-in with one e-mail address", 5, func() int {
		return ada.Send(front.URL+"/signin", url.Values{"email": {ada.User.Email}, "password": {"wrong password"}}).Status
	})
	count("sign-in from one network", 24, func() int { // five and one were spent before
		return ada.Send(front.URL+"/signin", url.Values{"email": {servertest.UniqueSlug() + "@acme.test"}, "password": {"wrong password"}}).
			Status
	})
}
