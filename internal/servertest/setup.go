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
func (l *Env) Company(slug string, settings access.Settings) company.Company {
	l.TB.Helper()
	made, err := company.New(slug, strings.ToUpper(slug), settings, l.Now())
	if err == nil {
		err = l.Admin().Companies.CreateCompany(l.TB.Context(), made)
	}
	if err != nil {
		l.TB.Fatal(err)
	}
	return made
}

// Key creates an API key and returns its text.
func (l *Env) Key(c company.Company, permissions access.Permission) string {
	l.TB.Helper()
	_, text := l.KeyRow(c, permissions)
	return text
}

// KeyRow creates an API key and returns it with its text.
func (l *Env) KeyRow(c company.Company, permissions access.Permission) (apikey.Key, string) {
	l.TB.Helper()
	key, text, err := apikey.Keys{Store: l.Admin().Keys, Now: l.Now}.CreateForOperator(l.TB.Context(), apikey.Request{
		CompanyID: c.ID, Name: "test", Permissions: permissions,
	})
	if err != nil {
		l.TB.Fatal(err)
	}
	return key, text
}

// Policy creates a policy.
func (l *Env) Policy(c company.Company, displayName string, kind policy.Type) policy.Policy {
	l.TB.Helper()
	made, err := l.Admin().Policies.Create(l.TB.Context(), policy.New{
		CompanyID: c.ID, CompanySlug: c.Slug, Name: displayName, Type: kind,
	}, policy.Author{Kind: string(access.System), ID: "test", Name: "test"})
	if err != nil {
		l.TB.Fatal(err)
	}
	return made
}
