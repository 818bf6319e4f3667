package portal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// TestEscape_TextOfPeople puts the corpus into what people and programs may name:
// the company, users, keys, saved views, AI clients, policies with all that is
// beside their document. Each page shows it as text.
func TestEscape_TextOfPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	for i, text := range corpus() {
		shows := o.insertTexts(t, admin.User, i, text)
		for _, path := range []string{"/", "/devices", "/policies", "/proposals", "/access", "/activity", "/settings", "/users", "/account",
			"/setup", "/enrol"} {
			shows[path] += "" // every page is looked at, whether or not it must show something
		}
		for path, want := range shows {
			page := o.get(t, admin, path, 200)
			walk(t, page, func(tag string, attributes map[string]string, inner string) {
				if strings.Contains(inner, "alert(1)") && tag == "script" || tag == "iframe" || tag == "base" {
					t.Errorf("%s: %q became <%s>", path, text, tag)
				}
				for key, value := range attributes {
					if strings.HasPrefix(key, "on") || (key == "href" || key == "src") &&
						strings.HasPrefix(strings.TrimSpace(strings.ToLower(value)), "javascript:") {
						t.Errorf("%s: %q became <%s %s=%q>", path, text, tag, key, value)
					}
				}
			})
			if !strings.Contains(textOf(t, page), want) {
				t.Errorf("%s does not show %q as text", path, want)
			}
		}
	}
}

// insertTexts names everything with the text, and says what pages must show of it.
func (o *office) insertTexts(t *testing.T, user account.User, i int, text string) map[string]string {
	t.Helper()
	ctx, now, db := t.Context(), o.Now(), o.DB()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.UpdateCompany(ctx, o.Company.ID, func(c *company.Company) error { c.Name = text; return nil })
	ok(err)
	_, err = account.Users{Store: db, Passwords: account.NewPasswords(1), Now: o.Now}.Create(ctx, account.NewUserRequest{
		CompanyID: o.Company.ID, Email: fmt.Sprintf("u%d@acme.test", i), Name: text, Role: account.Viewer,
		Password: "correct horse battery"})
	ok(err)
	_, _, err = apikey.Keys{Store: db, Now: o.Now}.CreateForOperator(ctx,
		apikey.Request{CompanyID: o.Company.ID, Name: text, Permissions: access.DevicesRead})
	ok(err)
	ok(db.SaveView(ctx, asset.SavedView{ID: resource.NewID(), CompanyID: o.Company.ID, UserID: user.ID, Name: text, Query: "q=a",
		Shared: true, CreatedAt: now}))
	client := fmt.Sprintf("client-%d", i)
	ok(db.SaveOAuthClient(ctx, oauth.Client{ID: client, Name: text, RedirectURIs: []string{"https://a.test/cb"}, Dynamic: true,
		CreatedAt: now, ExpiresAt: now.AddDate(0, 0, 1)}))
	code := oauth.AuthorizationCode{Hash: access.HashSecret(client), CompanyID: o.Company.ID, UserID: user.ID,
		ClientID: client, ClientName: text,
		Scopes: access.DevicesRead, ExpiresAt: now.AddDate(0, 0, 1)}
	ok(db.SaveCode(ctx, code))
	_, err = db.RedeemCode(ctx, code.Hash, func(oauth.AuthorizationCode) error { return nil },
		oauth.Tokens{Access: access.HashSecret("a" + client), AccessExpires: code.ExpiresAt, Refresh: access.HashSecret("r" + client),
			RefreshExpires: code.ExpiresAt})
	ok(err)
	p, err := o.Admin().Policies.Create(ctx, policy.New{CompanyID: o.Company.ID, CompanySlug: o.Company.Slug, Type: policy.Platform,
		Name: fmt.Sprintf("%d%.40s", i, text), Description: text, Labels: []string{text}, Group: text},
		policy.Author{Kind: string(access.User), ID: user.ID, Name: text})
	ok(err)
	return map[string]string{"/access": text, "/users": text, "/devices": text, "/settings": text, "/policies": text[:min(len(text), 40)],
		"/policies/" + p.ID: text, "/policies/" + p.ID + "/revisions": text, "/policies/" + p.ID + "/json": "",
		"/policies/" + p.ID + "/devices": ""}
}
