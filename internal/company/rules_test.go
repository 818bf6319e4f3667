package company_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 123456789, time.FixedZone("X", 3600))

func TestNew(t *testing.T) {
	t.Parallel()
	all := access.Settings{DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true, OAuthConnections: true}
	for _, c := range []struct {
		slug, name string
		settings   access.Settings
		field      string // at fault; empty: none
	}{
		{"acme", "Acme", access.Settings{}, ""},
		{"a", "A", all, ""},
		{"a-1-b", "Ünïcode & Söhne", access.Settings{DeviceCommands: true}, ""},
		{strings.Repeat("a", 40), strings.Repeat("ä", 100), access.Settings{PolicyChanges: true}, ""},
		{strings.Repeat("a", 41), "Acme", access.Settings{}, "slug"},
		{"", "Acme", access.Settings{}, "slug"},
		{"Acme", "Acme", access.Settings{}, "slug"},
		{"-acme", "Acme", access.Settings{}, "slug"},
		{"acme-", "Acme", access.Settings{}, "slug"},
		{"ac/me", "Acme", access.Settings{}, "slug"},
		{"acme\n", "Acme", access.Settings{}, "slug"},
		{"acme", "", access.Settings{}, "name"},
		{"acme", " Acme", access.Settings{}, "name"},
		{"acme", "Ac\x00me", access.Settings{}, "name"},
		{"acme", "Ac\xffme", access.Settings{}, "name"},
		{"acme", strings.Repeat("ä", 101), access.Settings{}, "name"},
		{"acme", "Acme", access.Settings{DestructiveCommands: true}, "destructiveCommands"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := company.New(c.slug, c.name, c.settings, start)
			if c.field != "" {
				if f := fault.From(err); f.Code != fault.InvalidArguments || len(f.Fields) != 1 || f.Fields[0].Field != c.field {
					t.Errorf("%q, %q: %+v", c.slug, c.name, f)
				}
				return
			}
			if err != nil {
				t.Fatalf("%q, %q: %v", c.slug, c.name, err)
			}
			if got.ID == "" || got.Connected() || got.InactiveAfter != company.DefaultInactiveAfter {
				t.Errorf("%+v", got)
			}
			if got.CreatedAt.Location() != time.UTC || got.CreatedAt.Nanosecond() != 123_000_000 {
				t.Errorf("created at %v, want milliseconds in UTC", got.CreatedAt)
			}
		})
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	acme, err := company.New("acme", "Acme", access.Settings{DeviceCommands: true}, start)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		edit func(*company.Company)
		want bool
	}{
		{"rename", func(c *company.Company) { c.Name = "Acme 2" }, true},
		{"destructive", func(c *company.Company) { c.Settings.DestructiveCommands = true }, true},
		{"destructive without commands", func(c *company.Company) { c.Settings = access.Settings{DestructiveCommands: true} }, false},
		{"slug", func(c *company.Company) { c.Slug = "other" }, false},
		{"inactive after a second", func(c *company.Company) { c.InactiveAfter = time.Second }, false},
		{"inactive after a minute", func(c *company.Company) { c.InactiveAfter = time.Minute }, true},
		{"inactive after a century", func(c *company.Company) { c.InactiveAfter = 100 * 365 * 24 * time.Hour }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := acme
			if err := company.Change(c.edit)(&changed); (err == nil) != c.want ||
				err != nil && fault.CodeOf(err) != fault.InvalidArguments {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}
