package servertest

import (
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/policy"
)

// Everything turns on every setting of a company.
func Everything() access.Settings {
	return access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true, OAuthConnections: true}
}

// Company creates a company.
func (e *Env) Company(slug string, settings access.Settings) company.Company {
	e.TB.Helper()
	made, err := company.New(slug, strings.ToUpper(slug), settings, e.Now())
	if err == nil {
		err = e.Admin().Companies.CreateCompany(e.TB.Context(), made)
	}
	need(e.TB, err)
	return made
}

// Key creates an API key and returns its text.
func (e *Env) Key(c company.Company, permissions access.Permission) string {
	e.TB.Helper()
	_, text := e.KeyRow(c, permissions)
	return text
}

// KeyRow creates an API key and returns it with its text.
func (e *Env) KeyRow(c company.Company, permissions access.Permission) (apikey.Key, string) {
	e.TB.Helper()
	key, text, err := apikey.Keys{Store: e.Admin().Keys, Now: e.Now}.CreateForOperator(e.TB.Context(), apikey.Request{
		CompanyID: c.ID, Name: "test", Permissions: permissions,
	})
	need(e.TB, err)
	return key, text
}

// Policy creates a policy.
func (e *Env) Policy(c company.Company, displayName string, kind policy.Type) policy.Policy {
	e.TB.Helper()
	made, err := e.Admin().Policies.Create(e.TB.Context(), policy.New{
		CompanyID: c.ID, CompanySlug: c.Slug, Name: displayName, Type: kind,
	}, policy.Author{Kind: string(access.System), ID: "test", Name: "test"})
	need(e.TB, err)
	return made
}
